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

/* Of the numbers of all layers only those of one are in memory beside the stack. What has the table
 * of tokens already lends it. */
static struct stack *make_stack(const struct whole_plan *p, const struct stack *lender,
                                struct error *e) {
  struct stack_form form;
  struct stack_layer layer;
  struct arena a;
  struct stack *s = NULL;
  arena_init(&a, NULL);
  if (whole_numbers_model(p, lender, &a, &form, e) == STATUS_OK) s = stack_new(&form, e);
  for (size_t i = 0; s && i < p->form.layers && e->status == STATUS_OK; i++) {
    arena_free(&a);
    if (whole_numbers_layer(p, i, &a, &layer, e) == STATUS_OK) stack_set_layer(s, &layer, e);
  }
  arena_free(&a);
  return s;
}

/* A tied table is packed with the decoder, which is made first therefore. */
static enum status make_stacks(struct whole *w, const struct whole_plan *p, struct error *e) {
  const struct whole_plan *last = whole_plan_last(p);
  if (p->kind != MODEL_ENCODER) w->decoder = make_stack(last, NULL, e);
  if (p->kind == MODEL_DECODER || e->status) return e->status;
  w->encoder = make_stack(p, p->decoder && p->decoder->shares ? w->decoder : NULL, e);
  return e->status;
}

/* --- the attentions --- */

/* One of them: the roles of its matrices begin with this one. */
struct attention {
  const struct whole_plan *p;
  const struct stack *stack;
  const struct layer_shape *shape;
  enum whole_role first;
  size_t number; /* in its stack */
  size_t layer;
};

static bool has_bias(const struct attention *a) {
  for (size_t i = 0; i < ROLE_PROJECTIONS; i++)
    if (whole_plan_part(a->p, (enum whole_role)(a->first + i), a->layer)->has_bias) return true;
  return false;
}

/* Its numbers. */
static uint64_t count_numbers(const struct attention *a) {
  const struct layout_matrix *table = whole_plan_part(a->p, WHOLE_RELATIVE, 0);
  const bool relative = table->found && a->first == WHOLE_QUERY;
  uint64_t count = relative ? (uint64_t)table->weight.rows * table->weight.columns : 0;
  for (size_t i = 0; i < ROLE_PROJECTIONS; i++) {
    const struct layout_matrix *m =
        whole_plan_part(a->p, (enum whole_role)(a->first + i), a->layer);
    count += (uint64_t)m->weight.rows * m->weight.columns + (m->has_bias ? m->bias.columns : 0);
  }
  return count;
}

static void add_part(struct model *m, const struct attention *a) {
  struct whole_part *part = &m->whole->part[m->whole->parts++];
  const struct stack_form *f = &a->p->form;
  const bool across = a->first != WHOLE_QUERY;
  snprintf(part->name, sizeof part->name, "%.8s.%u.%s", f->name,
           (unsigned)a->layer % (DEFINITION_LAYER_MAX + 1), across ? "cross" : "self");
  part->model = (struct model){.name = m->name,
                               .kind = MODEL_ATTENTION,
                               .layer = (struct layer *)stack_attention(a->stack, a->number),
                               .shape = *a->shape,
                               .score = "scaled_dot",
                               .weighting = "softmax",
                               .projection = "linear",
                               .layout = m->layout,
                               .bias = has_bias(a),
                               .causal = f->causal && !across,
                               .window = across ? 0 : f->window,
                               .parameters = count_numbers(a),
                               .source = m->source,
                               .digest_name = m->digest_name};
  memcpy(part->model.digest, m->digest, sizeof m->digest);
}

static void add_parts(struct model *m, const struct whole_plan *p, const struct stack *s) {
  const struct stack_form *f = &p->form;
  for (size_t i = 0; i < stack_form_attentions(f); i++) {
    const bool across = i >= f->layers;
    add_part(m, &(struct attention){.p = p,
                                    .stack = s,
                                    .shape = across ? &f->cross : &f->self,
                                    .first = across ? WHOLE_CROSS_QUERY : WHOLE_QUERY,
                                    .number = i,
                                    .layer = across ? i - f->layers : i});
  }
}

static enum status make_parts(struct model *m, const struct whole_plan *p, struct error *e) {
  struct whole *w = m->whole;
  const size_t beside = p->decoder ? stack_form_attentions(&p->decoder->form) : 0;
  w->part = calloc(stack_form_attentions(&p->form) + beside, sizeof *w->part);
  if (!w->part) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a model");
  add_parts(m, p, whole_reader(w));
  if (p->decoder) add_parts(m, p->decoder, w->decoder);
  return STATUS_OK;
}

/* What a request bans is banned besides. */
static enum status describe_banned(struct whole *w, const struct whole_choice *said,
                                   struct error *e) {
  if (said->banned == 0) return STATUS_OK;
  w->banned = calloc(said->banned, sizeof *w->banned);
  if (!w->banned) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a model");
  for (size_t i = 0; i < said->banned; i++) {
    if ((size_t)said->ban[i] >= w->target_vocabulary)
      return error_set(e, STATUS_CONFIG,
                       "generate: banned_tokens: %d is beyond the vocabulary of %zu tokens",
                       (int)said->ban[i], w->target_vocabulary);
    w->banned[w->choice.banned_count++] = said->ban[i];
  }
  w->choice.banned = w->banned;
  return STATUS_OK;
}

/* Files name tokens that are not in the vocabulary, and never use them. */
static int64_t known_token(const struct whole *w, int64_t token) {
  return token >= 0 && (uint64_t)token < w->target_vocabulary ? token : -1;
}

/* It begins and ends where its file says. */
static enum status describe_choice(struct whole *w, const struct whole_choice *said,
                                   struct error *e) {
  const struct whole_tokens *t = &w->token;
  w->choice = said->choice;
  w->max_tokens = said->max_tokens;
  w->choice.end = w->ends;
  for (size_t i = 0; i < t->ends; i++)
    if (known_token(w, t->end[i]) >= 0) w->ends[w->choice.ends++] = (int32_t)t->end[i];
  w->choice.forced_begin = known_token(w, t->forced_begin);
  w->choice.forced_end = known_token(w, t->forced_end);
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
  w->target_vocabulary = whole_plan_last(p)->form.embedding.tokens;
  w->target_positions = whole_plan_last(p)->positions;
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
       make_stacks(m->whole, &p, e) || check_unchanged(&p, e)))
    whole_plan_blame(&p, e);
  if (e->status == STATUS_OK && trial_stacks(m->whole->encoder, m->whole->decoder, e) == STATUS_OK)
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
