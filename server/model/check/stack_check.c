/* stack_check: the fields of a request held against each other, and the core's runs made of them.
 *
 * The core computes what passes here without looking again. */
#include "server/model/check/stack_check.h"

#include <stdio.h>
#include <string.h>

#include "core/base/size.h"
#include "server/model/check/stack_fill.h"
#include "server/model/check/stack_items.h"
#include "server/model/check/stack_limits.h"
#include "server/model/check/stack_targets.h"
#include "server/model/check/stack_texts.h"
#include "server/model/check/stack_tokenize.h"
#include "server/tokenize/tokenize_texts.h"

/* --- the sides --- */

/* Makes the runs of main and of the source, if there is one, without items. If a request encodes,
 * only tokens for the decoder make the encoder a source. */
static enum status make_runs(struct stack_check *k) {
  struct stack_request *out = k->out;
  struct arena *a = k->reading->arena;
  const bool encodes = body_ask_encodes(k->terms->ask);
  const int64_t begin = k->w->token.begin;
  out->main = k->values->main;
  out->source = k->values->source;
  if (encodes && out->source.stack && !stack_check_tensor(k, STACK_FIELD_DECODER_TOKENS)) {
    if (stack_check_tensor(k, STACK_FIELD_DECODER_MASK))
      return error_at(k->e, stack_field_pointer(STACK_FIELD_DECODER_MASK),
                      "the mask requires the input \"decoder_input_ids\"");
    out->main = out->source;
    out->source = (struct stack_side){0};
  }
  k->main = k->reader = &out->main;
  if (!(out->main.run = stack_run_new(out->main.stack, a, k->e))) return k->e->status;
  if (!out->source.stack) return STATUS_OK;
  if (!(out->source.run = stack_run_new(out->source.stack, a, k->e))) return k->e->status;
  k->reader = &out->source;
  out->main.run->source = out->source.run;
  if (encodes || (begin >= 0 && (uint64_t)begin < k->w->target_vocabulary)) return STATUS_OK;
  return error_set(k->e, STATUS_INVALID_REQUEST,
                   "this model has no decoder start token: set \"begin\" in its definition "
                   "(decoder_start_token_id)");
}

/* Finds the field that has the rows: tokens or embeddings. */
static enum status find_rows(struct stack_check *k) {
  const struct tensor *tokens = stack_check_tensor(k, STACK_FIELD_TOKENS),
                      *embeddings = stack_check_tensor(k, STACK_FIELD_EMBEDDINGS);
  if (tokens && embeddings)
    return error_at(k->e, "/embeddings", "%s are present, too: send one of both",
                    stack_check_shown(k, STACK_FIELD_TOKENS));
  if (!tokens && !embeddings) {
    const enum stack_field field = k->w->vocabulary ? STACK_FIELD_TOKENS : STACK_FIELD_EMBEDDINGS;
    return error_at(k->e, stack_field_pointer(field), "the %s \"%s\" is missing",
                    k->terms->form == BODY_V2 ? "input" : "field", stack_check_shown(k, field));
  }
  if (tokens && !k->w->vocabulary)
    return error_at(k->e, "/tokens", "this model has no token embeddings: send \"%s\"",
                    stack_check_shown(k, STACK_FIELD_EMBEDDINGS));
  k->rows = tokens ? tokens : embeddings;
  k->field = tokens ? STACK_FIELD_TOKENS : STACK_FIELD_EMBEDDINGS;
  k->out->unbatched = stack_is_unbatched(k->rows, tokens ? 1 : 2);
  return STATUS_OK;
}

/* --- outputs --- */

/* The index of this output among those that a v2 request names; their number if it is not there. */
static size_t find_output(const struct stack_check *k, enum stack_v2_output which) {
  const struct body_v2_asked *v2 = &k->out->v2;
  size_t i = 0;
  while (i < v2->outputs && v2->output[i].which != which) i++;
  return i;
}

/* Reports an error at a v2 request's output, or at this field of another one. */
static enum status refuse_output(struct stack_check *k, enum stack_v2_output which,
                                 const char *field, const char *why) {
  char pointer[ERROR_POINTER_SIZE];
  snprintf(pointer, sizeof pointer, "/outputs/%zu", find_output(k, which));
  return error_at(k->e, k->terms->form == BODY_V2 ? pointer : field, "%s", why);
}

/* Sets how tokens become entities, whose scores are probabilities. */
static enum status set_group(struct stack_check *k) {
  const struct stack_values *v = k->values;
  struct stack_request *out = k->out;
  if (!stack_field_is_seen(k->reading, STACK_FIELD_GROUP)) return STATUS_OK;
  if (stack_field_is_seen(k->reading, STACK_FIELD_FUNCTION) &&
      v->function != STACK_FUNCTION_SOFTMAX)
    return error_at(k->e, "/function",
                    "with \"group\" the function is \"softmax\": the scores of entities are "
                    "probabilities");
  out->grouped = true;
  out->group = v->group;
  k->main->run->function = STACK_FUNCTION_SOFTMAX;
  return STATUS_OK;
}

/* Makes the logits of a v2 request those of the model's classes, if it has them and no language
 * modeling head. Returns whether it does. */
static bool set_class_logits(struct stack_check *k) {
  struct stack_run *run = k->main->run;
  const size_t classes =
      whole_classes(k->w, WHOLE_HEAD_CLASSES) + whole_classes(k->w, WHOLE_HEAD_TOKENS);
  if (stack_check_has_source(k) || classes == 0) return false;
  if (run->after & STACK_AFTER_POOLER)
    refuse_output(k, STACK_V2_LOGITS, "",
                  "pooler_output and the logits of classes exclude each other: name one of both");
  run->want_logits = false;
  run->vectors = k->main->form->classifier.vectors;
  run->after = STACK_AFTER_CLASSES;
  run->function = STACK_FUNCTION_NONE;
  run->output_size = classes;
  return true;
}

/* Sets what main's run computes from its last rows: pooled embeddings, classes, logits. */
static enum status set_outputs(struct stack_check *k) {
  const struct stack_values *v = k->values;
  struct stack_run *run = k->main->run;
  const struct stack_form *f = k->main->form;
  const bool sparse = v->pool == STACK_POOL_SPARSE, of_v2 = k->terms->form == BODY_V2;
  const bool pooled = v->pool != STACK_POOL_NONE && !sparse;
  const bool several = v->pool == STACK_POOL_MULTI_VECTOR;
  const size_t pooled_size = several ? stack_form_dense(f) : stack_form_pooled(f);
  if (v->pool == STACK_POOL_POOLER && !stack_has_pooler(k->main->stack))
    return refuse_output(k, STACK_V2_POOLER_OUTPUT, "/pool", "this model has no pooler");
  if (v->pool == STACK_POOL_POOLER && f->pooling.ends && k->field != STACK_FIELD_TOKENS)
    return error_at(k->e, "/pool", "the pooler of this model requires tokens, not embeddings");
  if (sparse && !stack_has_sparse(k->main->stack))
    return error_at(k->e, "/pool",
                    "this model has neither a masked language modeling head nor sparse_linear: its "
                    "embeddings cannot be sparse");
  if (several && !f->pooling.each)
    return error_at(k->e, "/pool",
                    "this model has no colbert_linear and no dense layer for token embeddings: it "
                    "makes no multi-vector embeddings");
  if ((sparse || several) && k->terms->ablation)
    return error_at(k->e, "/pool", "the importance of heads is not measured for %s embeddings",
                    sparse ? "sparse" : "multi-vector");
  if (several && stack_field_is_seen(k->reading, STACK_FIELD_NORMALIZE) && !v->normalize)
    return error_at(k->e, "/normalize", "multi-vector embeddings are always normalized");
  if (sparse && (v->dimensions || v->normalize))
    return error_at(k->e, v->dimensions ? "/dimensions" : "/normalize",
                    "sparse embeddings are neither cut nor normalized");
  if (!pooled && v->normalize && stack_field_is_seen(k->reading, STACK_FIELD_NORMALIZE))
    return error_at(k->e, "/normalize",
                    "\"normalize\" requires pooling: set \"pool\" (for example \"mean\")");
  if (!pooled && v->dimensions)
    return error_at(k->e, "/dimensions",
                    "\"dimensions\" requires pooling: set \"pool\" (for example \"mean\")");
  if (v->dimensions > pooled_size)
    return error_at(k->e, "/dimensions", "%zu dimensions exceed the %zu of the model's embeddings",
                    v->dimensions, pooled_size);
  stack_set_pool(run, v->pool);
  run->special = k->w->special;
  run->specials = k->w->specials;
  if (sparse && f->sparse.row.weight && k->field != STACK_FIELD_TOKENS)
    return error_at(k->e, "/pool",
                    "sparse embeddings of this model require tokens, not embeddings");
  if (of_v2 || f->pooling.each != several) run->after &= ~(unsigned)STACK_AFTER_DENSE;
  run->dimensions = v->dimensions;
  run->output_size = of_v2 || !pooled ? f->width : v->dimensions ? v->dimensions : pooled_size;
  run->normalize = pooled && (several ? !of_v2 : v->normalize);
  if (v->classifies) {
    run->vectors = f->classifier.vectors;
    run->after = STACK_AFTER_CLASSES;
    run->function = v->function;
    run->output_size = f->classifier.count;
    k->out->classes_of = k->w;
    if (set_group(k)) return k->e->status;
  }
  run->want_logits = of_v2 && find_output(k, STACK_V2_LOGITS) < k->out->v2.outputs;
  if (!run->want_logits || stack_has_output(k->main->stack)) return STATUS_OK;
  if (set_class_logits(k)) return k->e->status;
  return refuse_output(k, STACK_V2_LOGITS, "",
                       !stack_check_has_source(k) && whole_has_logits(k->w)
                           ? "logits require the input \"decoder_input_ids\""
                           : "this model has no language modeling head and no classes: it has no "
                             "logits");
}

/* --- items --- */

/* Items without any row, which a shape may announce: they take memory, but no bytes of the body. */
enum { BARE_ITEMS_MAX = 512 };

/* Counts what is fed to main: the item's rows, or after a source the token that begins and the
 * targets. With /v2 the decoder's tokens are fed as they are. */
static enum status count_fed(struct stack_check *k) {
  const bool source = stack_check_has_source(k);
  k->begun = k->lens;
  if (source) {
    k->main->widest = 1;
    k->begun = arena_alloc(k->reading->arena, k->items, sizeof *k->begun, k->e);
    if (!k->begun) return k->e->status;
    for (size_t i = 0; i < k->items; i++) k->begun[i] = 1;
  }
  if (k->terms->ask == ASK_FILL) return stack_fill_count(k);
  if (body_ask_encodes(k->terms->ask)) return source ? stack_targets_fed(k) : STATUS_OK;
  return k->terms->ask == ASK_SCORE ? stack_targets_count(k) : stack_targets_begin(k);
}

/* Makes the items of a side's run, which have `lens` rows each, end to end. */
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

/* Whether items have several vectors. */
static bool makes_several(const struct stack_check *k) {
  return k->values->pool == STACK_POOL_MULTI_VECTOR && k->terms->form != BODY_V2;
}

/* Whether a row of an item has a vector. Without late interaction the first one has none: it stands
 * for the whole text. */
static bool keeps_row(const struct stack_check *k, size_t item, size_t row) {
  const struct tokenize_texts *d = k->out->tokenized;
  if (!k->w->interacts) return row > 0;
  if (!d || !k->w->dropped) return true;
  const enum whole_text role = stack_tokenize_role(k->values, d->texts, item);
  return !(k->w->dropped[d->tokens.token[d->first[item] + row].id] >> role & 1);
}

/* Masks the padding of queries, whose rows have vectors all the same. */
static enum status mask_padding(struct stack_check *k) {
  const struct tokenize_texts *d = k->out->tokenized;
  const struct whole_text_form *query = &k->w->text[WHOLE_TEXT_QUERY];
  struct geometry *g = &k->main->run->geometry;
  bool padded = false;
  if (!makes_several(k) || !d || !query->filled || query->attends) return STATUS_OK;
  for (size_t i = 0; i < k->items; i++) padded = padded || d->own[i] < g->item[i].q;
  if (!padded) return STATUS_OK;
  int32_t *lens = arena_alloc(k->reading->arena, g->q_rows, sizeof *lens, k->e);
  for (size_t i = 0; lens && i < k->items; i++)
    for (size_t row = 0; row < g->item[i].q; row++)
      lens[g->item[i].q_row + row] = (int32_t)d->own[i];
  g->lens = lens;
  return k->e->status;
}

/* Lists the rows of each item that have a vector of several. */
static enum status keep_rows(struct stack_check *k) {
  struct stack_run *run = k->main->run;
  const struct geometry *g = &run->geometry;
  struct stack_request *out = k->out;
  struct arena *a = k->reading->arena;
  if (!makes_several(k)) return STATUS_OK;
  size_t *kept = arena_alloc(a, g->q_rows, sizeof *kept, k->e);
  out->kept = arena_alloc(a, k->items, sizeof *out->kept, k->e);
  out->vector_lens = arena_alloc(a, k->items, sizeof *out->vector_lens, k->e);
  out->positions = arena_alloc(a, g->q_rows, sizeof *out->positions, k->e);
  if (k->e->status) return k->e->status;
  for (size_t i = 0; i < k->items; i++) {
    const struct item *item = &g->item[i];
    const size_t first = run->keeps;
    for (size_t row = 0; row < item->q; row++) {
      if (!keeps_row(k, i, row)) continue;
      out->positions[run->keeps] = (int32_t)row;
      kept[run->keeps++] = item->q_row + row;
    }
    out->kept[i] = (struct stack_kept){run->keeps - first, first};
    out->vector_lens[i] = (int32_t)out->kept[i].count;
    out->most_kept = size_max(out->most_kept, out->kept[i].count);
    if (run->keeps == first)
      return stack_items_refuse(k, k->field, i, "no token of this item has a vector");
  }
  run->kept = kept;
  return STATUS_OK;
}

/* Finds out how many rows each item has, and makes the items of both runs. */
static enum status make_items(struct stack_check *k) {
  const struct tensor *t = k->rows;
  struct stack_side *reader = k->reader;
  const bool masked = stack_check_tensor(k, STACK_FIELD_ATTENTION_MASK) &&
                      !stack_check_tensor(k, STACK_FIELD_VALID_LENS);
  k->items = k->out->unbatched ? 1 : t->elements;
  if (k->items > k->limits->max_items)
    return error_limit(k->e, "max_items", "%zu items exceed the limit of %zu", k->items,
                       k->limits->max_items);
  if (k->items > BARE_ITEMS_MAX && t->shaped && t->count == 0)
    return error_limit(k->e, "max_items",
                       "the shape has %zu empty items; without data, the limit is %d", k->items,
                       BARE_ITEMS_MAX);
  k->lens = arena_alloc(k->reading->arena, k->items, sizeof *k->lens, k->e);
  if (!k->lens) return k->e->status;

  /* An empty batch has no items, but `[0, 5]` gives them 5 rows: so does the response. */
  if (k->items == 0) reader->widest = t->common.dim[0];
  for (size_t i = 0; i < k->items; i++) {
    if (stack_items_count(k, k->field, i) > INT32_MAX)
      return error_limit(k->e, "max_pairs", "item %zu has more than %d positions", i, INT32_MAX);
    reader->widest = size_max(reader->widest, stack_items_count(k, k->field, i));
  }

  /* The valid rows of each item. */
  if (masked ? stack_items_mask(k, STACK_FIELD_ATTENTION_MASK, k->field, k->lens)
             : stack_items_lens(k, STACK_FIELD_VALID_LENS, k->field, k->lens))
    return k->e->status;
  for (size_t i = 0; i < k->items; i++) {
    const size_t rows = (size_t)k->lens[i];
    if (k->w->positions && rows > k->w->positions)
      return stack_items_refuse(k, k->field, i,
                                "%zu %s exceed the model's context length of %zu: %s", rows,
                                k->field == STACK_FIELD_TOKENS ? "tokens" : "positions",
                                k->w->positions,
                                k->reading->texts ? k->values->advice : "shorten the input");
    if (rows == 0 && (!stack_has_rows(k->main->run) || k->main->run->want_sparse))
      return stack_items_refuse(k, k->field, i, "an empty item has no %s",
                                k->values->classifies ? "class" : "vector to be pooled");
    if (rows < 2 && makes_several(k) && !k->w->interacts)
      return stack_items_refuse(k, k->field, i,
                                "multi-vector embeddings require 2 positions: the first one of an "
                                "item has no vector");
  }
  if (count_fed(k) || place_items(k, reader, k->lens) || mask_padding(k) || keep_rows(k))
    return k->e->status;
  return stack_check_has_source(k) ? place_items(k, k->main, k->begun) : STATUS_OK;
}

/* Excludes the rows of prompts from pooling, if they were counted. */
static enum status leave_out_prompts(struct stack_check *k) {
  const struct tokenize_texts *d = k->out->tokenized;
  if (!d || (!d->prompt_tokens[TOKENIZE_OF_TEXT] && !d->prompt_tokens[TOKENIZE_OF_QUERY]))
    return STATUS_OK;
  size_t *rows = arena_alloc(k->reading->arena, k->items, sizeof *rows, k->e);
  for (size_t i = 0; rows && i < k->items; i++) {
    rows[i] = d->prompt_tokens[tokenize_kind_of(d->texts, i)];
    if (rows[i] >= (size_t)k->lens[i] && rows[i] > 0)
      return stack_items_refuse(k, k->field, i,
                                "the item has %d tokens, and its prompt, which this model excludes "
                                "from pooling, has %zu: nothing is left to pool",
                                (int)k->lens[i], rows[i]);
  }
  k->main->run->left_out = rows;
  return k->e->status;
}

/* --- wishes --- */

/* Gives the wishes of a side to its run, unless there are none. */
static void set_wishes(const struct stack_side *side) {
  side->run->embedded = side->embedded;
  for (size_t i = 0; i < stack_form_attentions(side->form); i++) {
    const struct stack_wish *w = &side->wish[i];
    if (w->weights != STACK_WEIGHTS_NONE || w->head_mask || w->hidden || w->input || w->trace ||
        w->ablation)
      side->run->wish = side->wish;
  }
}

/* Selects the heads to measure: those of the attentions that the request names, else all. */
static void set_ablation(struct stack_check *k) {
  struct stack_request *out = k->out;
  struct stack_side *const sides[STACK_SIDES] = {&out->source, &out->main};
  out->weighs = true;
  out->stream = k->values->stream;
  if (stack_field_is_seen(k->reading, STACK_FIELD_ATTENTIONS)) return;
  for (unsigned n = 0; n < STACK_SIDES; n++)
    for (size_t i = 0; sides[n]->stack && i < stack_form_attentions(sides[n]->form); i++)
      sides[n]->wish[i].ablation = true;
}

/* --- the rows --- */

/* Moves the valid rows of a side's field together, to lie end to end; each has `size` bytes. */
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

/* Packs a side's field with a number for each row. Each must be below `count`. */
static enum status pack_numbers(struct stack_check *k, const struct stack_side *side,
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

static enum status pack_tokens(struct stack_check *k, struct stack_side *side,
                               enum stack_field field, size_t vocabulary) {
  const int32_t **tokens = &side->run->tokens;
  if (pack_numbers(k, side, field, vocabulary, tokens)) return k->e->status;
  /* Without rows there is no array, but NULL would mean that there are embeddings. */
  if (!*tokens) *tokens = arena_alloc(k->reading->arena, 0, 1, k->e);
  return k->e->status;
}

/* Packs the fields in place, and gives them to the runs. */
static enum status set_rows(struct stack_check *k) {
  const bool encodes = body_ask_encodes(k->terms->ask), source = stack_check_has_source(k);
  if ((encodes || source) && k->field == STACK_FIELD_TOKENS) {
    if (pack_tokens(k, k->reader, k->field, k->w->vocabulary)) return k->e->status;
  } else if (encodes || source) {
    pack_rows(k, k->reader, k->field, stack_form_embedded(k->reader->form) * sizeof(float));
    k->reader->run->embeddings = k->rows->data;
  }
  if (k->terms->ask == ASK_FILL)
    stack_fill_set(k);
  else if (k->terms->ask == ASK_SCORE)
    stack_targets_set(k);
  else if (!encodes)
    stack_texts_set(k);
  else if (source)
    pack_tokens(k, k->main, STACK_FIELD_DECODER_TOKENS, k->w->target_vocabulary);
  if (k->e->status || !stack_check_tensor(k, STACK_FIELD_TOKEN_TYPES)) return k->e->status;
  if (!k->w->types) return error_at(k->e, "/token_types", "this model has no token types");
  if (stack_items_alike(k, STACK_FIELD_TOKEN_TYPES, k->field)) return k->e->status;
  return pack_numbers(k, k->reader, STACK_FIELD_TOKEN_TYPES, k->w->types, &k->reader->run->types);
}

/* --- the whole check --- */

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
  out->main_tokenizer = w->tokenizer;
  if (make_runs(&k) || find_rows(&k) || set_outputs(&k) || make_items(&k) || leave_out_prompts(&k))
    return k.e->status;
  if (v->trace.asked) {
    const struct stack_side *side = v->traced_source ? &out->source : &out->main;
    const size_t heads = stack_side_shape(side, v->traced)->heads;
    out->trace = side->wish[v->traced].trace =
        attention_traced_find(&v->trace, &side->run->geometry, heads, reading->arena, k.e);
    if (k.e->status) return k.e->status;
  }
  if (terms->ablation) set_ablation(&k);
  const size_t tokens = out->main.form->embedding.tokens;
  if (terms->ask != ASK_QUESTION) out->main.run->top = out->top = size_min(v->top, tokens);
  out->main.run->logit_lens = out->logit_lens = size_min(v->logit_lens, tokens);
  set_wishes(&out->main);
  if (out->source.run) set_wishes(&out->source);
  if (terms->ask == ASK_GENERATE && stack_texts_check(&k)) return k.e->status;
  if (stack_limits_check(&k) || set_rows(&k)) return k.e->status;
  /* The windows of one question are several items of one response. */
  if (out->windows) out->unbatched = out->windows->alone;
  return STATUS_OK;
}
