/* stack_check: the fields held against each other, and the core's run made of them.
 *
 * What passes here the core computes without looking again. */
#include "server/model/check/stack_check.h"

#include <stdio.h>
#include <string.h>

#include "core/base/size.h"
#include "server/model/check/stack_ablation_check.h"
#include "server/model/check/stack_items.h"
#include "server/model/check/stack_limits.h"
#include "server/model/check/stack_targets.h"
#include "server/model/check/stack_texts.h"
#include "server/tokenize/tokenize_texts.h"

/* --- items --- */

/* Items without any row, which a shape may announce: they take memory, but no bytes of the body. */
enum { BARE_ITEMS_MAX = 512 };

static enum status refuse_nothing(struct stack_check *k) {
  const enum stack_field field = k->w->vocabulary ? STACK_FIELD_TOKENS : STACK_FIELD_EMBEDDINGS;
  return error_at(k->e, stack_field_pointer(field), "the %s \"%s\" is missing",
                  k->terms->form == BODY_V2 ? "input" : "field", stack_check_shown(k, field));
}

static enum status find_rows(struct stack_check *k) {
  const struct tensor *tokens = stack_check_tensor(k, STACK_FIELD_TOKENS),
                      *embeddings = stack_check_tensor(k, STACK_FIELD_EMBEDDINGS);
  if (tokens && embeddings)
    return error_at(k->e, "/embeddings", "%s are present, too: send one of both",
                    stack_check_shown(k, STACK_FIELD_TOKENS));
  if (!tokens && !embeddings) return refuse_nothing(k);
  if (tokens && !k->w->vocabulary)
    return error_at(k->e, "/tokens", "this model has no token embeddings: send \"%s\"",
                    stack_check_shown(k, STACK_FIELD_EMBEDDINGS));
  k->rows = tokens ? tokens : embeddings;
  k->field = tokens ? STACK_FIELD_TOKENS : STACK_FIELD_EMBEDDINGS;
  k->out->unbatched = stack_is_unbatched(k->rows, tokens ? 1 : 2);
  return STATUS_OK;
}

/* --- the items --- */

static enum status check_rows(struct stack_check *k, size_t item, size_t rows) {
  if (k->w->positions && rows > k->w->positions)
    return stack_items_refuse(
        k, k->field, item, "%zu %s exceed the model's context length of %zu: %s", rows,
        k->field == STACK_FIELD_TOKENS ? "tokens" : "positions", k->w->positions,
        k->reading->texts ? "shorten the text or set \"truncate\": true" : "shorten the input");
  if (rows == 0 && k->values->pool != STACK_POOL_NONE)
    return stack_items_refuse(k, k->field, item, "an empty item has no %s",
                              k->values->pool == STACK_POOL_CLASSES ? "class"
                                                                    : "vector to be pooled");
  return STATUS_OK;
}

/* The rows of each item that count. */
static enum status count_rows(struct stack_check *k) {
  const bool masked = stack_check_tensor(k, STACK_FIELD_ATTENTION_MASK) &&
                      !stack_check_tensor(k, STACK_FIELD_VALID_LENS);
  if (masked) return stack_items_mask(k, STACK_FIELD_ATTENTION_MASK, k->field, k->lens);
  return stack_items_lens(k, STACK_FIELD_VALID_LENS, k->field, k->lens);
}

/* What is fed to main: a text, or behind a source one token that begins; and targets behind it. Of
 * /v2 what comes for a decoder is fed as it is. */
static enum status count_fed(struct stack_check *k) {
  k->begun = k->lens;
  if (stack_check_has_source(k)) {
    k->main->widest = 1;
    k->begun = arena_alloc(k->reading->arena, k->items, sizeof *k->begun, k->e);
    for (size_t i = 0; k->begun && i < k->items; i++) k->begun[i] = 1;
  }
  if (k->e->status) return k->e->status;
  if (body_ask_encodes(k->terms->ask))
    return stack_check_has_source(k) ? stack_targets_fed(k) : STATUS_OK;
  return k->terms->ask == ASK_SCORE ? stack_targets_count(k) : stack_targets_begin(k);
}

/* Makes the items of a side, which have `lens` rows each, end to end. */
static enum status place_items(struct stack_check *k, struct stack_side *side,
                               const int32_t *lens) {
  struct geometry *g = &side->run->geometry;
  g->items = k->items;
  g->item = arena_alloc(k->reading->arena, k->items, sizeof *g->item, k->e);
  side->lens = lens;
  side->rectangular = true;
  for (size_t i = 0; g->item && i < k->items; i++) {
    const size_t n = (size_t)lens[i];
    g->item[i] = (struct item){.q = n, .k = n, .q_row = g->q_rows, .k_row = g->k_rows};
    g->q_rows += n; /* rows that lie in memory: no sum of them overflows */
    g->k_rows += n;
    side->rectangular = side->rectangular && n == side->widest;
  }
  return k->e->status;
}

static enum status make_items(struct stack_check *k) {
  struct stack_side *reader = k->reader;
  k->lens = arena_alloc(k->reading->arena, k->items, sizeof *k->lens, k->e);
  if (!k->lens) return k->e->status;
  /* An empty batch has no items, but `[0, 5]` gives them 5 rows: so does the answer. */
  if (k->items == 0) reader->widest = k->rows->common.dim[0];
  for (size_t i = 0; i < k->items; i++) {
    if (stack_items_count(k, k->field, i) > INT32_MAX)
      return error_limit(k->e, "max_pairs", "item %zu has more than %d positions", i, INT32_MAX);
    reader->widest = size_max(reader->widest, stack_items_count(k, k->field, i));
  }
  if (count_rows(k)) return k->e->status;
  for (size_t i = 0; i < k->items; i++)
    if (check_rows(k, i, (size_t)k->lens[i])) return k->e->status;
  if (count_fed(k) || place_items(k, reader, k->lens)) return k->e->status;
  return stack_check_has_source(k) ? place_items(k, k->main, k->begun) : STATUS_OK;
}

static enum status check_items(struct stack_check *k) {
  const struct tensor *t = k->rows;
  k->items = k->out->unbatched ? 1 : t->elements;
  if (k->items > k->limits->max_items)
    return error_limit(k->e, "max_items", "%zu items exceed the limit of %zu", k->items,
                       k->limits->max_items);
  if (k->items > BARE_ITEMS_MAX && t->shaped && t->count == 0)
    return error_limit(k->e, "max_items",
                       "the shape has %zu empty items; without data, the limit is %d", k->items,
                       BARE_ITEMS_MAX);
  return make_items(k);
}

/* --- what the rows hold --- */

/* Moves the rows of a field that count, those of a side, together, to lie end to end; each is
 * `size` bytes. */
static void pack_rows(const struct stack_check *k, const struct stack_side *side,
                      enum stack_field field, size_t size) {
  char *const data = stack_check_tensor(k, field)->data, *from = data;
  if (!data) return;
  for (size_t i = 0; i < k->items; i++) {
    const struct item *item = &side->run->geometry.item[i];
    char *to = data + item->q_row * size;
    if (to != from && item->q > 0) memmove(to, from, item->q * size);
    from += stack_items_count(k, field, i) * size;
  }
}

/* Takes the numbers of a field with one for each row of a side, of `count` that the model has. */
static enum status take_numbers(struct stack_check *k, const struct stack_side *side,
                                enum stack_field field, size_t count, const int32_t **out) {
  const struct tensor *t = stack_check_tensor(k, field);
  pack_rows(k, side, field, sizeof(int32_t));
  const int32_t *number = t->data;
  for (size_t i = 0; i < k->items; i++) {
    const size_t rows = side->run->geometry.item[i].q;
    if (stack_items_below(k, field, i, number, rows, count)) return k->e->status;
    if (rows) number += rows;
  }
  *out = t->data;
  return STATUS_OK;
}

static enum status take_tokens(struct stack_check *k, struct stack_side *side,
                               enum stack_field field, size_t vocabulary) {
  const int32_t **tokens = &side->run->tokens;
  if (take_numbers(k, side, field, vocabulary, tokens)) return k->e->status;
  /* Without rows there is no array, but NULL would mean that there are embeddings. */
  if (!*tokens) *tokens = arena_alloc(k->reading->arena, 0, 1, k->e);
  return k->e->status;
}

static enum status take_read(struct stack_check *k) {
  if (k->field == STACK_FIELD_TOKENS) return take_tokens(k, k->reader, k->field, k->w->vocabulary);
  pack_rows(k, k->reader, k->field, k->reader->form->width * sizeof(float));
  k->reader->run->embeddings = k->rows->data;
  return STATUS_OK;
}

static enum status take_rows(struct stack_check *k) {
  const bool encodes = body_ask_encodes(k->terms->ask), source = stack_check_has_source(k);
  if ((encodes || source) && take_read(k)) return k->e->status;
  if (k->terms->ask == ASK_SCORE) return stack_targets_take(k);
  if (!encodes) return stack_texts_take(k);
  if (!source) return STATUS_OK;
  return take_tokens(k, k->main, STACK_FIELD_DECODER_TOKENS, k->w->target_vocabulary);
}

static enum status take_types(struct stack_check *k) {
  if (!stack_check_tensor(k, STACK_FIELD_TOKEN_TYPES)) return STATUS_OK;
  if (!k->w->types) return error_at(k->e, "/token_types", "this model has no token types");
  if (stack_items_alike(k, STACK_FIELD_TOKEN_TYPES, k->field)) return k->e->status;
  return take_numbers(k, k->reader, STACK_FIELD_TOKEN_TYPES, k->w->types, &k->reader->run->types);
}

/* --- what is made of them --- */

/* The output of this name that a v2 request asks for: its place; or as many as there are. */
static size_t find_output(const struct stack_check *k, enum stack_v2_output which) {
  const struct body_v2_asked *v2 = &k->out->v2;
  size_t i = 0;
  while (i < v2->outputs && v2->output[i].which != which) i++;
  return i;
}

static enum status refuse_output(struct stack_check *k, enum stack_v2_output which,
                                 const char *otherwise, const char *why) {
  char pointer[ERROR_POINTER_SIZE];
  snprintf(pointer, sizeof pointer, "/outputs/%zu", find_output(k, which));
  return error_at(k->e, k->terms->form == BODY_V2 ? pointer : otherwise, "%s", why);
}

static enum status check_logits(struct stack_check *k) {
  if (k->terms->form != BODY_V2 || find_output(k, STACK_V2_LOGITS) == k->out->v2.outputs)
    return STATUS_OK;
  if (!stack_has_output(k->main->stack))
    return refuse_output(k, STACK_V2_LOGITS, "",
                         !stack_check_has_source(k) && whole_has_logits(k->w)
                             ? "logits require the input \"decoder_input_ids\""
                             : "this model has no language modeling head: it has no logits");
  k->main->run->want_logits = true;
  return STATUS_OK;
}

static enum status check_pool(struct stack_check *k) {
  const struct stack_values *v = k->values;
  const bool pooled = v->pool != STACK_POOL_NONE;
  if (v->pool == STACK_POOL_POOLER && !stack_has_pooler(k->main->stack))
    return refuse_output(k, STACK_V2_POOLER_OUTPUT, "/pool", "this model has no pooler");
  if (!pooled && v->normalize && stack_field_is_seen(k->reading, STACK_FIELD_NORMALIZE))
    return error_at(k->e, "/normalize",
                    "\"normalize\" requires pooling: set \"pool\" (for example \"mean\")");
  if (!pooled && v->dimensions)
    return error_at(k->e, "/dimensions",
                    "\"dimensions\" requires pooling: set \"pool\" (for example \"mean\")");
  if (v->dimensions > stack_check_pooled(k->main->form, v->pool))
    return error_at(k->e, "/dimensions", "%zu dimensions exceed the %zu of the model's embeddings",
                    v->dimensions, stack_check_pooled(k->main->form, v->pool));
  struct stack_run *run = k->main->run;
  run->pool = v->pool;
  run->function = v->function;
  if (v->pool == STACK_POOL_CLASSES) k->out->classes_of = k->w;
  run->dimensions = v->dimensions;
  run->normalize = pooled && v->normalize;
  run->dense_left = k->terms->form == BODY_V2;
  return check_logits(k);
}

/* The rows of prompts are left out where they were counted. */
static enum status leave_out(struct stack_check *k) {
  const struct tokenize_texts *d = k->out->tokenized;
  if (!d || (!d->prompt_tokens[TOKENIZE_OF_TEXT] && !d->prompt_tokens[TOKENIZE_OF_QUERY]))
    return STATUS_OK;
  size_t *rows = arena_alloc(k->reading->arena, k->items, sizeof *rows, k->e);
  for (size_t i = 0; rows && i < k->items; i++) {
    rows[i] = d->prompt_tokens[tokenize_prompt_of(d->texts, i)];
    if (rows[i] >= (size_t)k->lens[i] && rows[i] > 0)
      return stack_items_refuse(k, k->field, i,
                                "the item has %d tokens, and its prompt, which this model excludes "
                                "from pooling, has %zu: nothing is left to pool",
                                (int)k->lens[i], rows[i]);
  }
  k->main->run->left_out = rows;
  return k->e->status;
}

static bool wishes_nothing(const struct stack_wish *w) {
  return w->weights == STACK_WEIGHTS_NONE && !w->head_mask && !w->hidden && !w->input &&
         !w->trace && !w->ablation;
}

/* Its query is to be there; its layer then is to make the trace. */
static enum status find_trace(struct stack_check *k) {
  const struct stack_values *v = k->values;
  const struct stack_side *side = v->traced_source ? &k->out->source : k->main;
  if (v->trace.asked)
    k->out->trace = side->wish[v->traced].trace =
        attention_traced_find(&v->trace, &side->run->geometry,
                              stack_side_shape(side, v->traced)->heads, k->reading->arena, k->e);
  return k->e->status;
}

static void take_wishes(const struct stack_side *side) {
  side->run->embedded = side->embedded;
  for (size_t i = 0; i < stack_form_attentions(side->form); i++)
    if (!wishes_nothing(&side->wish[i])) side->run->wish = side->wish;
}

static enum status check_begin(struct stack_check *k) {
  const int64_t begin = k->w->token.begin;
  if (body_ask_encodes(k->terms->ask) || (begin >= 0 && (uint64_t)begin < k->w->target_vocabulary))
    return STATUS_OK;
  return error_set(k->e, STATUS_INVALID_REQUEST,
                   "this model has no decoder start token: set \"begin\" in its definition "
                   "(decoder_start_token_id)");
}

/* Of a request that encodes, only tokens for the decoder make a source of the encoder. */
static enum status choose_sides(struct stack_check *k) {
  struct stack_request *out = k->out;
  out->main = k->values->main;
  out->source = k->values->source;
  if (!body_ask_encodes(k->terms->ask) || !out->source.stack ||
      stack_check_tensor(k, STACK_FIELD_DECODER_TOKENS))
    return STATUS_OK;
  if (stack_check_tensor(k, STACK_FIELD_DECODER_MASK))
    return error_at(k->e, stack_field_pointer(STACK_FIELD_DECODER_MASK),
                    "the mask requires the input \"decoder_input_ids\"");
  out->main = out->source;
  out->source = (struct stack_side){0};
  return STATUS_OK;
}

/* Makes the runs of both sides, where there are two, without items. */
static enum status make_runs(struct stack_check *k) {
  struct stack_request *out = k->out;
  struct arena *a = k->reading->arena;
  if (choose_sides(k)) return k->e->status;
  k->main = k->reader = &out->main;
  if (!(out->main.run = stack_run_new(out->main.stack, a, k->e))) return k->e->status;
  if (!out->source.stack) return STATUS_OK;
  if (!(out->source.run = stack_run_new(out->source.stack, a, k->e))) return k->e->status;
  k->reader = &out->source;
  out->main.run->source = out->source.run;
  return check_begin(k);
}

enum status stack_check(const struct contract_reading *reading, const struct whole *w,
                        const struct body_terms *terms, const struct body_limits *limits,
                        struct stack_request *out) {
  const struct stack_values *v = reading->values;
  struct stack_check k = {.reading = reading,
                          .values = v,
                          .w = w,
                          .terms = terms,
                          .limits = limits,
                          .out = out,
                          .e = reading->e};
  out->base64 = v->base64;
  if (make_runs(&k) || find_rows(&k) || check_pool(&k) || check_items(&k) || leave_out(&k) ||
      find_trace(&k))
    return k.e->status;
  if (terms->ablation) stack_ablation_take(&k);
  const size_t tokens = out->main.form->embedding.tokens;
  out->main.run->top = out->top = size_min(v->top, tokens);
  out->main.run->logit_lens = out->logit_lens = size_min(v->logit_lens, tokens);
  take_wishes(&out->main);
  if (out->source.run) take_wishes(&out->source);
  if (terms->ask == ASK_GENERATE && stack_texts_check(&k)) return k.e->status;
  if (stack_limits_check(&k) || take_rows(&k)) return k.e->status;
  return take_types(&k);
}
