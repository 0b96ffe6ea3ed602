/* whole: loads whole models, frees them, says what they can do, and finds their attentions. */
#include "config/build/whole.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/build/trial.h"
#include "config/build/whole_adapter.h"
#include "config/build/whole_numbers.h"
#include "config/build/whole_pieces.h"
#include "config/build/whole_plan_make.h"
#include "config/build/whole_tokenizer.h"
#include "config/describe/definition.h"
#include "config/document/text.h"
#include "core/base/size.h"

bool whole_is_meant(const json_t *definition) { return json_object_get(definition, "transformer"); }

/* --- stacks --- */

/* Makes a stack; the numbers of only one of its layers are in memory as read. */
static struct stack *make_stack(const struct whole_plan *p, const struct whole_stack *s,
                                const struct stack *lender, struct error *e) {
  struct stack *made = NULL;
  struct stack_form form;
  struct stack_layer layer;
  struct arena a;
  arena_init(&a, NULL);
  if (whole_numbers_stack(p, s, &a, &form, e) == STATUS_OK) {
    form.embedding.lender = lender;
    made = stack_new(&form, e);
    if (!made) whole_numbers_blame(p, s, s->form.layers, e);
  }
  for (size_t i = 0; made && i < s->form.layers && e->status == STATUS_OK; i++) {
    arena_free(&a);
    if (whole_numbers_layer(p, s, i, &a, &layer, e) == STATUS_OK &&
        stack_set_layer(made, &layer, e) != STATUS_OK)
      whole_numbers_blame(p, s, i, e);
  }
  arena_free(&a);
  return made;
}

/* A table of tokens that both stacks use belongs to the decoder: it is packed if it is tied. */
static enum status make_stacks(struct whole *w, const struct whole_plan *p, struct error *e) {
  const struct whole_stack *encoder = &p->stack[WHOLE_ENCODER];
  const struct whole_stack *decoder = &p->stack[WHOLE_DECODER];
  if (decoder->family) w->decoder = make_stack(p, decoder, NULL, e);
  const struct stack *lender = whole_plan_is_lent(p, encoder, WHOLE_TOKEN) ? w->decoder : NULL;
  if (encoder->family && e->status == STATUS_OK) w->encoder = make_stack(p, encoder, lender, e);
  return e->status;
}

/* --- attentions --- */

/* Describes one attention of a stack as a model of its own. */
static void make_part(const struct model *m, const struct whole_stack *s, const struct stack *made,
                      size_t number, struct whole_part *part) {
  const struct stack_form *f = &s->form;
  const size_t layer = number % f->layers;
  const bool cross = number >= f->layers;
  const struct stack_kind *kind = stack_layer_kind(made, layer);
  const struct layout_matrix *table = whole_plan_part(s, WHOLE_RELATIVE, 0);
  const bool relative = table->found && !cross;
  uint64_t count = relative ? (uint64_t)table->weight.rows * table->weight.columns : 0;
  bool bias = false;
  for (unsigned role = ROLE_QUERY; role < ROLE_PROJECTIONS; role++) {
    const enum whole_role of = (enum whole_role)((cross ? WHOLE_CROSS_QUERY : WHOLE_QUERY) + role);
    const struct layout_matrix *matrix = whole_plan_part(s, of, layer);
    count += (uint64_t)matrix->weight.rows * matrix->weight.columns;
    count += matrix->has_bias ? matrix->bias.columns : 0;
    bias |= matrix->has_bias;
  }
  snprintf(part->name, sizeof part->name, "%.8s.%u.%s", f->name,
           (unsigned)layer % (DEFINITION_LAYER_MAX + 1), cross ? "cross" : "self");
  part->model = (struct model){.name = m->name,
                               .kind = MODEL_ATTENTION,
                               .layer = (struct layer *)stack_attention(made, number),
                               .shape = cross ? f->cross : kind->self,
                               .score = "scaled_dot",
                               .weighting = "softmax",
                               .projection = "linear",
                               .compute = m->compute,
                               .layout = m->layout,
                               .bias = bias,
                               .causal = f->causal && !cross,
                               .window = cross ? 0 : kind->window,
                               .cross = cross,
                               .parameters = count,
                               .source = m->source,
                               .digest_name = m->digest_name};
  memcpy(part->model.digest, m->digest, sizeof m->digest);
}

static enum status make_parts(struct model *m, const struct whole_plan *p, struct error *e) {
  struct whole *w = m->whole;
  const struct stack *const made[WHOLE_SIDES] = {w->encoder, w->decoder};
  size_t count = 0;
  for (enum whole_side i = 0; i < WHOLE_SIDES; i++)
    count += stack_form_attentions(&p->stack[i].form);
  w->part = calloc(count + 1, sizeof *w->part);
  if (!w->part) return error_no_memory(e);
  for (enum whole_side i = 0; i < WHOLE_SIDES; i++)
    for (size_t number = 0; number < stack_form_attentions(&p->stack[i].form); number++)
      make_part(m, &p->stack[i], made[i], number, &w->part[w->parts++]);
  return STATUS_OK;
}

/* --- description and defaults --- */

/* Adds a token to the banned ones, once. */
static void ban(struct whole *w, int32_t token) {
  for (size_t i = 0; i < w->choice.banned_count; i++)
    if (w->banned[i] == token) return;
  w->banned[w->choice.banned_count++] = token;
}

/* Sets the tokens that are never generated; requests may add to them. A definition may ban only
 * tokens of the vocabulary; files of Hugging Face transformers may name others, which are noted. */
static enum status describe_banned(struct whole *w, struct whole_plan *p, const json_t *definition,
                                   struct error *e) {
  const json_t *generate = json_object_get(definition, "generate");
  const bool own = json_object_get(generate, "banned_tokens") != NULL;
  const struct whole_choice *said = &p->said.choice;
  const int64_t pad = p->words.type && p->words.type->pad_banned ? w->token.pad : -1;
  const bool bans_pad = pad >= 0 && (uint64_t)pad < w->target_vocabulary;
  if (said->banned == 0 && !bans_pad) return STATUS_OK;
  w->choice.banned = w->banned = calloc(said->banned + 1, sizeof *w->banned);
  if (!w->banned) return error_no_memory(e);
  for (size_t i = 0; i < said->banned; i++) {
    const bool known = (size_t)said->ban[i] < w->target_vocabulary;
    if (!known && own)
      return error_set(e, STATUS_CONFIG,
                       "generate: banned_tokens: %d is outside the vocabulary of %zu tokens",
                       (int)said->ban[i], w->target_vocabulary);
    if (known)
      ban(w, said->ban[i]);
    else
      notes_add(&p->notes, "banned token %d is outside the vocabulary of %zu", (int)said->ban[i],
                w->target_vocabulary);
  }
  if (bans_pad) ban(w, (int32_t)pad);
  return STATUS_OK;
}

/* -1 for a token outside the vocabulary: files of Hugging Face transformers name some that are
 * never used. */
static int64_t known_token(const struct whole *w, int64_t token) {
  return token >= 0 && (uint64_t)token < w->target_vocabulary ? token : -1;
}

/* Copies classes, labels and function of the classifier. */
static enum status describe_classes(struct whole *w, const struct whole_plan *p, struct error *e) {
  const size_t count = json_array_size(p->labels);
  w->head = p->head;
  w->classes = whole_plan_reader(p)->form.classifier.count;
  if (count == 0) return STATUS_OK;
  w->function = p->function;
  w->label = calloc(count, sizeof *w->label);
  bool good = w->label;
  for (size_t i = 0; good && i < count; i++)
    good = (w->label[i] = strdup(json_string_value(json_array_get(p->labels, i))));
  return good ? STATUS_OK : error_no_memory(e);
}

/* Sets everything that a request or a description may ask for, except the tokenizer. */
static enum status describe(struct model *m, struct whole_plan *p, const json_t *definition,
                            struct error *e) {
  struct whole *w = calloc(1, sizeof *w);
  const char *file = p->source.file ? text_file_name(checkpoint_path(p->source.file)) : "random";
  m->whole = w;
  m->source = strdup(file);
  if (!w || !m->source) return error_no_memory(e);
  m->kind = p->kind;
  m->layout = w->family = p->source.file ? p->family->name : "random";
  w->builtin = p->source.builtin;
  m->parameters = p->count;
  m->score = m->weighting = m->projection = "";
  if (p->said.has_compute) m->compute = p->said.compute;
  for (enum whole_side i = 0; i < WHOLE_SIDES; i++) p->stack[i].form.compute = m->compute;

  const struct whole_stack *reader = whole_plan_reader(p);
  const struct whole_stack *decoder = &p->stack[WHOLE_DECODER];
  const struct whole_stack *last = decoder->family ? decoder : reader;
  w->vocabulary = reader->form.embedding.tokens;
  w->types = reader->form.embedding.types;
  w->positions = reader->positions;
  w->target_vocabulary = last->form.embedding.tokens;
  w->target_positions = last->positions;
  w->aside = p->aside;
  w->pool = p->pool;
  w->normalize = p->normalize;
  w->adapters = whole_adapter_describe(p);
  if (p->adapters && !w->adapters) return error_no_memory(e);

  const struct whole_tokens *t = &p->said.token;
  w->token = *t;
  w->choice = p->said.choice.choice;
  w->says_temperature = p->said.choice.says_temperature;
  w->max_tokens = p->said.choice.max_tokens;
  w->choice.end = w->ends;
  for (size_t i = 0; i < t->ends; i++)
    if (known_token(w, t->end[i]) >= 0) w->ends[w->choice.ends++] = (int32_t)t->end[i];
  w->choice.forced_begin = known_token(w, t->forced_begin);
  w->choice.forced_end = known_token(w, t->forced_end);
  if (describe_banned(w, p, definition, e) == STATUS_OK) describe_classes(w, p, e);
  m->notes = p->notes;
  return e->status;
}

/* --- the model --- */

static enum status check_unchanged(const struct whole_plan *p, struct error *e) {
  if (p->source.file) checkpoint_check_unchanged(p->source.file, e);
  if (p->source.weigher && !e->status) checkpoint_check_unchanged(p->source.weigher, e);
  for (size_t i = 0; i < WHOLE_DENSES && !e->status; i++)
    if (p->source.dense[i].file) checkpoint_check_unchanged(p->source.dense[i].file, e);
  return e->status;
}

enum status whole_load(struct model *m, const json_t *definition, const char *directory,
                       enum compute compute, struct error *e) {
  struct whole_plan p;
  m->compute = compute;
  if (whole_plan_make(&p, definition, directory, e) == STATUS_OK &&
      describe(m, &p, definition, e) == STATUS_OK && whole_adapter_merge(&p, e) == STATUS_OK &&
      (whole_tokenizer_find(m->whole, &p, definition, directory, e) ||
       whole_numbers_check_copies(&p, e) ||
       whole_numbers_digest(&p, m->digest, &m->digest_name, e) || make_stacks(m->whole, &p, e) ||
       check_unchanged(&p, e)))
    whole_plan_blame(&p, e);
  if (e->status == STATUS_OK && m->whole->chat && m->whole->chat->why.status)
    notes_add(&m->notes, "chat template: %s", m->whole->chat->why.detail);
  if (e->status == STATUS_OK &&
      trial_stacks(m->whole->encoder, m->whole->decoder, e) == STATUS_OK &&
      make_parts(m, &p, e) == STATUS_OK)
    whole_pieces_list(m->whole, &p, e);
  whole_plan_free(&p);
  return e->status;
}

enum status whole_measure(const json_t *definition, const char *directory, uint64_t *bytes,
                          struct error *e) {
  struct whole_plan p;
  *bytes = whole_plan_make(&p, definition, directory, e) ? 0 : whole_plan_bytes(&p);
  whole_plan_free(&p);
  return e->status;
}

void whole_free(struct whole *w) {
  if (!w) return;
  stack_free(w->encoder);
  stack_free(w->decoder);
  free(w->part);
  free(w->block);
  free(w->banned);
  free(w->special);
  free(w->dropped);
  for (size_t i = 0; w->label && i < w->classes; i++) free(w->label[i]);
  free(w->label);
  tokenizer_free(w->tokenizer);
  chat_free(w->chat);
  json_decref(w->adapters);
  json_decref(w->prompts);
  json_decref(w->prompt);
  free(w);
}

size_t whole_scratch_bytes(const struct whole *w) {
  const size_t encoder = w->encoder ? stack_scratch_bytes(w->encoder) : 0;
  return size_max(encoder, w->decoder ? stack_scratch_bytes(w->decoder) : 0);
}

bool whole_lacks_begin(const struct whole *w) { return whole_is_pair(w) && w->token.begin < 0; }

bool whole_can_fill(const struct whole *w) {
  return w && w->encoder && stack_has_output(w->encoder);
}

bool whole_can_weigh(const struct whole *w) {
  return w && w->encoder && !w->decoder && stack_has_sparse(w->encoder);
}

bool whole_has_rows(const struct whole *w) {
  return w && stack_form(whole_reader(w))->pooling.each;
}

bool whole_has_logits(const struct whole *w) { return w->decoder && stack_has_output(w->decoder); }

bool whole_has_output(const struct whole *w) {
  return w && whole_has_logits(w) && !whole_lacks_begin(w);
}

bool whole_can_generate(const struct whole *w) {
  return w && w->decoder && !whole_lacks_begin(w) && stack_can_generate(w->decoder);
}

const struct whole_part *whole_find_part(const struct whole *w, const char *name) {
  for (size_t i = 0; i < w->parts; i++)
    if (strcmp(w->part[i].name, name) == 0) return &w->part[i];
  return NULL;
}
