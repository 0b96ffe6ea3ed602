/* whole_load: makes whole models. */
#include "config/model/whole_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/document/text.h"
#include "config/layer/definition.h"
#include "config/model/trial.h"
#include "config/model/whole_numbers.h"
#include "config/model/whole_tied.h"

bool whole_load_is_meant(const json_t *definition) {
  return json_object_get(definition, "transformer");
}

/* Of the numbers of all layers only those of one are in memory beside the stack. */
static enum status make_stack(struct whole *w, const struct whole_plan *p, struct error *e) {
  struct stack_form form;
  struct stack_layer layer;
  struct arena a;
  arena_init(&a, NULL);
  struct stack **made = p->kind == MODEL_DECODER ? &w->decoder : &w->encoder;
  if (whole_numbers_model(p, &a, &form, e) == STATUS_OK) *made = stack_new(&form, e);
  for (size_t i = 0; *made && i < p->form.layers && e->status == STATUS_OK; i++) {
    arena_free(&a);
    if (whole_numbers_layer(p, i, &a, &layer, e) == STATUS_OK) stack_set_layer(*made, &layer, e);
  }
  arena_free(&a);
  return e->status;
}

static bool has_bias(const struct whole_plan *p, size_t layer) {
  for (enum whole_role role = WHOLE_QUERY; role <= WHOLE_OUTPUT; role++)
    if (whole_plan_part(p, role, layer)->has_bias) return true;
  return false;
}

/* The numbers of one attention. */
static uint64_t count_part(const struct whole_plan *p, size_t layer) {
  const struct layout_matrix *table = whole_plan_part(p, WHOLE_RELATIVE, 0);
  uint64_t count = table->found ? (uint64_t)table->weight.rows * table->weight.columns : 0;
  for (enum whole_role role = WHOLE_QUERY; role <= WHOLE_OUTPUT; role++) {
    const struct layout_matrix *m = whole_plan_part(p, role, layer);
    count += (uint64_t)m->weight.rows * m->weight.columns + (m->has_bias ? m->bias.columns : 0);
  }
  return count;
}

static enum status make_parts(struct model *m, const struct whole_plan *p, struct error *e) {
  struct whole *w = m->whole;
  w->part = calloc(p->form.layers, sizeof *w->part);
  if (!w->part) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a model");
  for (; w->parts < p->form.layers; w->parts++) {
    struct whole_part *part = &w->part[w->parts];
    snprintf(part->name, sizeof part->name, "%.8s.%u.self", p->form.name,
             (unsigned)w->parts % (DEFINITION_LAYER_MAX + 1));
    part->model =
        (struct model){.name = m->name,
                       .kind = MODEL_ATTENTION,
                       .layer = (struct layer *)stack_attention(whole_reader(w), w->parts),
                       .shape = p->form.self,
                       .score = "scaled_dot",
                       .weighting = "softmax",
                       .projection = "linear",
                       .layout = m->layout,
                       .bias = has_bias(p, w->parts),
                       .causal = p->form.causal,
                       .window = p->form.window,
                       .parameters = count_part(p, w->parts),
                       .source = m->source,
                       .digest_name = m->digest_name};
    memcpy(part->model.digest, m->digest, sizeof m->digest);
  }
  return STATUS_OK;
}

/* What a request bans is banned besides. */
static enum status describe_banned(struct whole *w, const struct whole_choice *said,
                                   struct error *e) {
  if (said->banned == 0) return STATUS_OK;
  w->banned = calloc(said->banned, sizeof *w->banned);
  if (!w->banned) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a model");
  for (size_t i = 0; i < said->banned; i++) {
    if ((size_t)said->ban[i] >= w->vocabulary)
      return error_set(e, STATUS_CONFIG,
                       "generate: banned_tokens: %d is beyond the vocabulary of %zu tokens",
                       (int)said->ban[i], w->vocabulary);
    w->banned[w->choice.banned_count++] = said->ban[i];
  }
  w->choice.banned = w->banned;
  return STATUS_OK;
}

/* It ends where its file says. */
static enum status describe_choice(struct whole *w, const struct whole_choice *said,
                                   struct error *e) {
  const struct whole_tokens *t = &w->token;
  w->choice = said->choice;
  w->max_tokens = said->max_tokens;
  w->choice.end = w->ends;
  for (size_t i = 0; i < t->ends; i++)
    if (t->end[i] >= 0 && (uint64_t)t->end[i] < w->vocabulary)
      w->ends[w->choice.ends++] = (int32_t)t->end[i];
  if (t->forced_end >= 0 && (uint64_t)t->forced_end < w->vocabulary)
    w->choice.forced_end = t->forced_end;
  return describe_banned(w, said, e);
}

static enum status describe(struct model *m, const struct whole_plan *p, struct error *e) {
  struct whole *w = calloc(1, sizeof *w);
  const char *file = p->source.file ? text_file_name(checkpoint_path(p->source.file)) : "random";
  m->whole = w;
  m->source = strdup(file);
  if (!w || !m->source) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a model");
  m->kind = p->kind;
  m->layout = w->family = p->source.file ? p->family->name : "random";
  m->parameters = p->count;
  m->notes = p->notes;
  m->score = m->weighting = m->projection = "";
  w->vocabulary = p->form.embedding.tokens;
  w->types = p->form.embedding.types;
  w->positions = p->positions;
  w->target_vocabulary = w->vocabulary;
  w->target_positions = w->positions;
  w->aside = p->aside;
  w->token = p->said.token;
  w->pool = p->pool;
  w->normalize = p->normalize;
  return describe_choice(w, &p->said.choice, e);
}

static enum status check_unchanged(const struct whole_plan *p, struct error *e) {
  if (p->source.file && checkpoint_check_unchanged(p->source.file, e)) return e->status;
  return p->source.dense ? checkpoint_check_unchanged(p->source.dense, e) : STATUS_OK;
}

enum status whole_load(struct model *m, const json_t *definition, const char *directory,
                       struct error *e) {
  struct whole_plan p;
  if (whole_plan_make(&p, definition, directory, e) == STATUS_OK &&
      describe(m, &p, e) == STATUS_OK &&
      (whole_tied_check(&p, e) || whole_numbers_digest(&p, m->digest, &m->digest_name, e) ||
       make_stack(m->whole, &p, e) || check_unchanged(&p, e)))
    whole_plan_blame(&p, e);
  if (e->status == STATUS_OK && trial_stack(whole_reader(m->whole), e) == STATUS_OK)
    make_parts(m, &p, e);
  whole_plan_free(&p);
  return e->status;
}

enum status whole_load_measure(const json_t *definition, const char *directory, uint64_t *bytes,
                               struct error *e) {
  struct whole_plan p;
  whole_plan_make(&p, definition, directory, e);
  *bytes = p.count * sizeof(float);
  whole_plan_free(&p);
  return e->status;
}
