/* model: loads a layer, or has a whole model loaded, and describes it. */
#include "config/build/model.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/build/layer/layout_place.h"
#include "config/build/layer/parameters.h"
#include "config/build/trial.h"
#include "config/build/whole.h"
#include "config/checkpoint/checkpoint.h"
#include "config/describe/definition.h"
#include "config/describe/hints/hints_compare.h"
#include "config/document/file.h"
#include "config/document/text.h"

/* The state of a load. */
struct model_loading {
  struct definition definition;
  struct checkpoint *checkpoint; /* NULL: none */
  struct hints hints;            /* of its config.json */
  struct error unread;           /* the reason why there are none */
  struct parameters parameters;
};

static enum status open_checkpoint(struct model_loading *l, const char *directory,
                                   struct error *e) {
  must(!l->definition.all_layers);
  if (!l->definition.checkpoint) return STATUS_OK;
  char *path = file_path(directory, l->definition.checkpoint);
  if (!path) return error_no_memory(e);
  l->checkpoint = checkpoint_open(path, e);
  free(path);
  l->definition.hints = &l->hints;
  if (!l->checkpoint || layout_place_mark(l->checkpoint, e)) return e->status;
  return hints_read(&l->hints, checkpoint_path(l->checkpoint), &l->unread, e);
}

/* Adds notes about differences from the checkpoint's config.json. */
static void add_notes(struct model *m, const struct model_loading *l) {
  const struct parameters *p = &l->parameters;
  const struct hints_served is = {.at = {.family = p->family,
                                         .address = p->family              ? p->address
                                                    : l->definition.prefix ? l->definition.prefix
                                                                           : "",
                                         .numbered = p->numbered,
                                         .layer = p->layer},
                                  .said = &l->definition,
                                  .shape = &p->shape,
                                  .causal = p->causal};
  m->notes = p->notes;
  if (!l->checkpoint || strcmp(p->layout, "none") == 0) return;
  if (l->unread.status) notes_add(&m->notes, "%s: it is ignored", l->unread.detail);
  hints_compare_unsaid(&l->hints, &is, &m->notes);
  hints_compare_unserved(&l->hints, &is, &m->notes);
}

/* The address in a form that may be shown anywhere: one line of UTF-8. */
static char *printable_address(const struct parameters *p) {
  struct error shown = {0};
  const bool good = text_is_utf8(p->address, strlen(p->address));
  snprintf(shown.detail, sizeof shown.detail, "%s", p->address);
  for (char *at = shown.detail; *at && !good; at++)
    if ((unsigned char)*at >= 0x80) *at = '?';
  text_plain(&shown);
  return strdup(shown.detail);
}

static enum status describe_model(struct model *m, const char *name, const struct model_loading *l,
                                  struct error *e) {
  const struct definition *d = &l->definition;
  m->name = strdup(name);
  m->source = strdup(l->checkpoint ? text_file_name(checkpoint_path(l->checkpoint))
                     : d->random   ? "random"
                                   : "none");
  if (l->parameters.family) m->place = printable_address(&l->parameters);
  if (!m->name || !m->source || (l->parameters.family && !m->place)) return error_no_memory(e);
  m->shape = l->parameters.shape;
  m->layout = l->parameters.layout;
  m->score = d->score;
  m->weighting = d->weighting;
  m->projection = d->projection;
  m->bias = parameters_have_bias(&l->parameters);
  m->causal = l->parameters.causal;
  m->hinted = l->parameters.hinted;

  /* The digest is over the numbers in the order of the roles. */
  struct digest_part part[2 * ROLE_COUNT];
  unsigned char digest[DIGEST_SIZE];
  size_t bytes = 0;
  for (enum role role = 0; role < ROLE_COUNT; role++) {
    const struct parameters_matrix *x = &l->parameters.matrix[role];
    part[2 * role] =
        (struct digest_part){x->weight, x->weight ? x->out * x->in * sizeof *x->weight : 0};
    part[2 * role + 1] = (struct digest_part){x->bias, x->bias ? x->out * sizeof *x->bias : 0};
    bytes += part[2 * role].size + part[2 * role + 1].size;
  }
  m->parameters = bytes / sizeof(float);
  m->digest_name = bytes > MODEL_SMALL ? "digest" : "sha256";
  if (bytes > MODEL_SMALL) return digest_tree_text(part, 2 * ROLE_COUNT, m->digest, e);
  digest_parts(part, 2 * ROLE_COUNT, digest);
  digest_hex(digest, m->digest);
  return STATUS_OK;
}

/* Puts the checkpoint's path before the error. */
static enum status name_checkpoint(const struct model_loading *l, struct error *e) {
  return l->checkpoint ? text_before(e, "%.100s: ", text_tail(l->definition.checkpoint))
                       : e->status;
}

/* Frees the state, and puts the model's name before an error. */
static enum status loading_end(struct model_loading *l, const char *name, struct error *e) {
  parameters_free(&l->parameters);
  hints_free(&l->hints);
  checkpoint_free(l->checkpoint);
  if (e->status == STATUS_OK) return STATUS_OK;
  text_before(e, "model %.193s: ", name);
  text_plain(e);
  return e->status;
}

static enum status load_layer(struct model *m, struct model_loading *l, const char *name,
                              const json_t *definition, const char *directory,
                              enum gemm_engine engine, enum compute compute, struct error *e) {
  if (definition_read(&l->definition, definition, e) || open_checkpoint(l, directory, e))
    return e->status;
  if (parameters_read(&l->parameters, &l->definition, l->checkpoint, e))
    return name_checkpoint(l, e);
  if (describe_model(m, name, l, e)) return e->status;
  add_notes(m, l);
  m->compute = l->definition.has_compute ? l->definition.compute : compute;
  m->layer = trial_make(&l->parameters, gemm_engine_for(m->compute, engine), e);
  return e->status;
}

struct model *model_share(const struct model *root, const char *name, struct error *e) {
  struct model *m = malloc(sizeof *m);
  if (m) *m = *root;
  if (m) m->root = root;
  if (m && (m->name = strdup(name))) return m;
  free(m);
  error_no_memory(e);
  return NULL;
}

struct model *model_load(const char *name, const json_t *definition, const char *directory,
                         enum gemm_engine engine, enum compute compute, struct error *e) {
  struct model_loading l = {0};
  struct model *m = calloc(1, sizeof *m);
  if (!m) {
    error_no_memory(e);
  } else if (!whole_is_meant(definition)) {
    load_layer(m, &l, name, definition, directory, engine, compute, e);
  } else if ((m->name = strdup(name))) {
    whole_load(m, definition, directory, compute, e);
  } else {
    error_no_memory(e);
  }
  if (m) m->loaded = time(NULL);
  if (loading_end(&l, name, e) == STATUS_OK) return m;
  model_free(m);
  return NULL;
}

enum status model_measure(const char *name, const json_t *definition, const char *directory,
                          uint64_t *bytes, struct error *e) {
  struct model_loading l = {0};
  if (whole_is_meant(definition)) {
    whole_measure(definition, directory, bytes, e);
    return loading_end(&l, name, e);
  }
  if (definition_read(&l.definition, definition, e) == STATUS_OK &&
      open_checkpoint(&l, directory, e) == STATUS_OK &&
      parameters_measure(&l.parameters, &l.definition, l.checkpoint, e) != STATUS_OK)
    name_checkpoint(&l, e);
  *bytes = l.parameters.weights * sizeof(float);
  return loading_end(&l, name, e);
}

const char *model_kind_name(enum model_kind kind) {
  static const char *const names[] = {[MODEL_ATTENTION] = "attention",
                                      [MODEL_ENCODER] = "encoder",
                                      [MODEL_DECODER] = "decoder",
                                      [MODEL_SEQ2SEQ] = "seq2seq"};
  return names[kind];
}

bool model_uses_nothing(const struct model *m) {
  return m->parameters == 0 && strcmp(m->source, "none") != 0;
}

void model_free(struct model *m) {
  if (!m) return;
  if (!m->root) {
    whole_free(m->whole);
    layer_free(m->layer);
    free(m->source);
    free(m->place);
  }
  free(m->name);
  free(m);
}
