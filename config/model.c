/* model: from a definition to a layer that can serve. */
#include "config/model.h"

#include <stdlib.h>
#include <string.h>

#include "config/checkpoint.h"
#include "config/definition.h"
#include "config/digest.h"
#include "config/file.h"
#include "config/parameters.h"
#include "config/text.h"
#include "config/trial.h"

/* What is needed only while loading. */
struct loading {
  struct definition definition;
  struct checkpoint *checkpoint;
  struct parameters parameters;
};

static enum status read_checkpoint(struct loading *l, const char *directory, struct error *e) {
  if (!l->definition.checkpoint) return STATUS_OK;
  char *path = file_path(directory, l->definition.checkpoint);
  if (!path) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a path");
  l->checkpoint = checkpoint_open(path, e);
  free(path);
  return e->status;
}

static char *source_of(const struct definition *d) {
  if (!d->checkpoint) return strdup(d->random ? "random" : "none");
  const char *slash = strrchr(d->checkpoint, '/');
  return strdup(slash ? slash + 1 : d->checkpoint);
}

/* Counts the numbers and takes their digest, in the order of the roles. */
static enum status take_identity(struct model *m, const struct parameters *p, struct error *e) {
  struct digest *digest = digest_new();
  if (!digest) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a digest");
  for (enum role role = 0; role < ROLE_COUNT; role++) {
    const struct parameter_matrix *matrix = &p->matrix[role];
    size_t weights = matrix->weight ? matrix->out * matrix->in : 0;
    size_t biases = matrix->bias ? matrix->out : 0;
    digest_floats(digest, matrix->weight, weights);
    digest_floats(digest, matrix->bias, biases);
    m->parameters += weights + biases;
  }
  digest_text(digest, m->sha256);
  digest_free(digest);
  return STATUS_OK;
}

static enum status describe(struct model *m, const char *name, const struct loading *l,
                            struct error *e) {
  const struct definition *d = &l->definition;
  m->name = strdup(name);
  m->source = source_of(d);
  if (l->parameters.family) m->place = strdup(l->parameters.address);
  if (!m->name || !m->source || (l->parameters.family && !m->place))
    return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a name");
  m->shape = l->parameters.shape;
  m->layout = l->parameters.layout;
  m->notes = l->parameters.notes;
  m->score = d->score;
  m->weighting = d->weighting;
  m->projection = d->projection;
  m->bias = parameters_have_bias(&l->parameters);
  m->causal = l->parameters.causal;
  return take_identity(m, &l->parameters, e);
}

static enum status load(struct model *m, struct loading *l, const char *name,
                        const json_t *definition, const char *directory, enum gemm_engine engine,
                        struct error *e) {
  if (definition_read(&l->definition, definition, e) != STATUS_OK ||
      read_checkpoint(l, directory, e) != STATUS_OK)
    return e->status;
  if (parameters_read(&l->parameters, &l->definition, l->checkpoint, e) != STATUS_OK) {
    if (l->checkpoint) text_before(e, "%.100s: ", text_tail(l->definition.checkpoint));
    return e->status;
  }
  if (describe(m, name, l, e) != STATUS_OK) return e->status;
  m->layer = trial_make(&l->parameters, engine, e);
  return e->status;
}

struct model *model_load(const char *name, const json_t *definition, const char *directory,
                         enum gemm_engine engine, struct error *e) {
  struct loading l = {0};
  struct model *m = calloc(1, sizeof *m);
  if (!m) {
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a model");
  } else {
    load(m, &l, name, definition, directory, engine, e);
  }
  parameters_free(&l.parameters);
  checkpoint_free(l.checkpoint);
  if (e->status == STATUS_OK) return m;
  text_before(e, "model %.64s: ", name);
  text_plain(e);
  model_free(m);
  return NULL;
}

bool model_uses_nothing(const struct model *m) {
  return m->parameters == 0 && strcmp(m->source, "none") != 0;
}

void model_free(struct model *m) {
  if (!m) return;
  layer_free(m->layer);
  free(m->name);
  free(m->source);
  free(m->place);
  free(m);
}
