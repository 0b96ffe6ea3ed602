/* stack_limits: sums of rows, pairs and bytes, each with a check for overflow. */
#include "server/model/check/stack_limits.h"

#include <stdio.h>

#include "core/base/size.h"
#include "server/answer/answer.h"
#include "server/model/answer/stack_answer_sequences.h"
#include "server/model/check/stack_ablation_check.h"
#include "server/model/check/stack_texts.h"
#include "server/number/number.h"

/* What the items of a side have together. */
struct stack_sums {
  size_t rows;
  size_t pairs, across; /* of a query and a key: among the rows themselves, and with the source's */
};

/* Adds rows that are there so many times, each with so many keys of either sort. */
static bool add_rows(struct stack_sums *s, size_t rows, size_t keys, size_t across, size_t times) {
  size_t pairs, far;
  if (times == 0) return true; /* whatever their shape says */
  return size_mul(rows, times, &rows) && size_mul(rows, keys, &pairs) &&
         size_mul(rows, across, &far) && size_add(s->rows, rows, &s->rows) &&
         size_add(s->pairs, pairs, &s->pairs) && size_add(s->across, far, &s->across);
}

/* The rows of a source that each row of main attends to; of a source itself there are none. */
static size_t source_rows(const struct stack_check *k, const struct stack_side *s, size_t item) {
  return s == k->main ? stack_request_source_rows(k->out, item) : 0;
}

/* --- the work --- */

static bool has_sequences(const struct stack_check *k, const struct stack_side *s) {
  return k->out->generates && s == k->main;
}

/* Of sequences all rows count that they may come to have. */
static bool sum_work(const struct stack_check *k, const struct stack_side *s,
                     struct stack_sums *sums) {
  const struct geometry *g = &s->run->geometry;
  for (size_t i = 0; i < g->items; i++) {
    const size_t rows = has_sequences(k, s) ? stack_texts_rows(k->out, i) : g->item[i].q;
    if (!add_rows(sums, rows, rows, source_rows(k, s, i), 1)) return false;
  }
  return true;
}

/* Every head of every layer meets every pair. */
static bool add_work(const struct stack_check *k, const struct stack_side *s, size_t *work) {
  struct stack_sums sums = {0};
  size_t own, across;
  return sum_work(k, s, &sums) && size_mul(sums.pairs, s->form->self.heads, &own) &&
         size_mul(own, s->form->layers, &own) &&
         size_mul(sums.across, s->form->cross.heads, &across) &&
         size_mul(across, s->form->layers, &across) && size_add(own, across, &own) &&
         size_add(*work, own, work);
}

enum status stack_limits_refuse_pairs(const struct stack_form *source,
                                      const struct stack_form *main, bool weighs, size_t work,
                                      size_t most, struct error *e) {
  char count[64];
  snprintf(count, sizeof count, "%s%zu", work > most ? "" : "more than ",
           work > most ? work : most);
  if (weighs)
    return error_limit(e, "max_pairs",
                       "the request has %s query-key pairs, counted for each head of all layers, "
                       "and again without each head that is measured; the limit is %zu: name fewer "
                       "\"attentions\"",
                       count, most);
  if (source)
    return error_limit(e, "max_pairs",
                       "the request has %s query-key pairs, counted for each head in %zu encoder "
                       "layers and %zu decoder layers; the limit is %zu: send fewer or shorter "
                       "items",
                       count, source->layers, main->layers, most);
  return error_limit(e, "max_pairs",
                     "the request has %s query-key pairs, counted for each of %zu heads in %zu "
                     "layers; the limit is %zu: send fewer or shorter items",
                     count, main->self.heads, main->layers, most);
}

static enum status check_work(struct stack_check *k) {
  const struct stack_side *main = k->main;
  size_t source = 0, own = 0, work = 0;
  const bool counted = (!stack_check_has_source(k) || add_work(k, k->reader, &source)) &&
                       add_work(k, main, &own) && size_add(source, own, &work) &&
                       (!k->out->weighs || stack_ablation_pairs(k, source, own, &work));
  if (counted && work <= k->limits->max_pairs) return STATUS_OK;
  return stack_limits_refuse_pairs(stack_check_has_source(k) ? k->reader->form : NULL, main->form,
                                   k->out->weighs, counted ? work : 0, k->limits->max_pairs, k->e);
}

/* --- the answer --- */

/* Bytes that a number of the answer takes at most. Of text it is one with what parts it from the
 * next. */
enum { TEXT = NUMBER_TEXT_MAX + 1, BASE64 = 6, FLOAT = 4 };

/* An answer that has no form as safetensors is sent as JSON, or not at all. */
static bool is_binary(const struct stack_check *k) {
  return k->terms->wants_binary && stack_request_has_binary(k->out);
}

/* Is the answer made of rectangles? */
static bool is_rectangle(const struct stack_check *k) {
  return k->terms->form == BODY_V2 || is_binary(k) || k->out->base64;
}

/* Of a float of all arrays, but for those of v2. */
static size_t bytes_of_float(const struct stack_check *k) {
  if (is_binary(k)) return FLOAT;
  return k->out->base64 ? BASE64 : TEXT;
}

/* Is the item in the answer? Of a search the sequences that are returned are. */
static bool is_shown(const struct stack_check *k, const struct stack_side *s, size_t item) {
  return !has_sequences(k, s) || item % k->out->each < k->out->returns;
}

/* The rows and columns of an item's weights, at most. */
static void shape_of(const struct stack_check *k, const struct stack_side *s, size_t item,
                     bool across, size_t *rows, size_t *columns) {
  const bool sequences = has_sequences(k, s);
  *rows = sequences ? k->out->generation.sequence[item].most : s->run->geometry.item[item].q;
  *columns = across ? source_rows(k, s, item) : sequences ? stack_texts_rows(k->out, item) : *rows;
}

/* The rows that are shown of a side. Those of rectangles count, also those behind an item's; of
 * sequences there is one of each token that is chosen. */
static bool sum_answer(const struct stack_check *k, const struct stack_side *s,
                       struct stack_sums *sums) {
  const size_t items = s->run->geometry.items;
  size_t most = 0, keys = 0, shown = 0;
  if (is_rectangle(k) && !has_sequences(k, s))
    return add_rows(sums, s->widest, s->widest, s == k->main ? k->out->source.widest : 0, items);
  for (size_t i = 0; i < items; i++) {
    size_t rows, columns;
    if (!is_shown(k, s, i)) continue;
    shown++;
    shape_of(k, s, i, false, &rows, &columns);
    most = size_max(most, rows);
    keys = size_max(keys, columns);
    if (!is_rectangle(k) && !add_rows(sums, rows, columns, source_rows(k, s, i), 1)) return false;
  }
  return !is_rectangle(k) || add_rows(sums, most, keys, k->out->source.widest, shown);
}

/* Bytes of an answer, added up until they are too many. */
struct stack_answer_bytes {
  size_t count;
  bool fits;
};

static void add_bytes(struct stack_answer_bytes *b, size_t each, size_t times, size_t size) {
  size_t product;
  b->fits = b->fits && size_mul(each, times, &product) && size_mul(product, size, &product) &&
            size_add(b->count, product, &b->count);
}

/* In JSON each item's thumbnails have its own size, and three of their bytes take four letters. */
static void add_thumbnails(struct stack_answer_bytes *b, const struct stack_check *k,
                           const struct stack_side *s, size_t attention) {
  enum { IN_LETTERS = 3, LETTERS = 4 };
  const struct geometry *g = &s->run->geometry;
  const bool across = stack_side_is_across(s, attention);
  const size_t heads = stack_side_shape(s, attention)->heads, most = s->wish[attention].thumbnail;
  if (is_binary(k)) {
    const size_t columns = across ? k->out->source.widest : s->widest;
    add_bytes(b, size_min(most, s->widest) * size_min(most, columns), heads * g->items, 1);
    return;
  }
  for (size_t i = 0; i < g->items; i++) {
    size_t rows, columns;
    if (!is_shown(k, s, i)) continue;
    shape_of(k, s, i, across, &rows, &columns);
    const size_t bytes = heads * size_min(rows, most) * size_min(columns, most);
    add_bytes(b, (bytes + IN_LETTERS - 1) / IN_LETTERS, 1, LETTERS);
  }
}

static void add_weights(struct stack_answer_bytes *b, const struct stack_check *k,
                        const struct stack_side *s, size_t attention,
                        const struct stack_sums *sums) {
  const enum stack_weights weights = s->wish[attention].weights;
  const size_t size = bytes_of_float(k), heads = stack_side_shape(s, attention)->heads;
  const size_t pairs = stack_side_is_across(s, attention) ? sums->across : sums->pairs;
  if (weights == STACK_WEIGHTS_AVERAGE) add_bytes(b, pairs, 1, size);
  if (weights == STACK_WEIGHTS_PER_HEAD) add_bytes(b, pairs, heads, size);
  if (weights == STACK_WEIGHTS_THUMBNAILS) add_thumbnails(b, k, s, attention);
}

/* What is shown of the parts of a side. */
static bool add_parts(struct stack_answer_bytes *b, const struct stack_check *k,
                      const struct stack_side *s) {
  const size_t width = s->form->width, size = bytes_of_float(k);
  struct stack_sums sums = {0};
  if (!sum_answer(k, s, &sums)) return false;
  if (s->embedded) add_bytes(b, sums.rows, width, size);
  for (size_t i = 0; i < stack_form_attentions(s->form); i++) {
    if (s->wish[i].hidden) add_bytes(b, sums.rows, width, size);
    if (s->wish[i].input) add_bytes(b, sums.rows, width, size);
    add_weights(b, k, s, i, &sums);
  }
  return true;
}

/* Of what follows a target, and of each of the likeliest tokens in its place: those of the outputs,
 * and of each hidden state. */
static void add_scores(struct stack_answer_bytes *b, const struct stack_check *k) {
  const struct stack_request *out = k->out;
  const size_t each = is_binary(k) ? 2 * FLOAT : STACK_TOP_ROOM;
  size_t targets = out->targets;
  if (is_rectangle(k)) b->fits = b->fits && size_mul(out->most_targets, k->items, &targets);
  add_bytes(b, targets, 1, bytes_of_float(k));
  if (!is_binary(k)) targets = out->targets;
  add_bytes(b, targets, out->top, each);
  add_bytes(b, targets, out->logit_lens * (k->main->form->layers + 1), each);
}

/* Of each sequence what stands around its tokens; of each token itself, its log probability, and
 * the likeliest in its place. Of each step of a search its beams. */
static void add_sequences(struct stack_answer_bytes *b, const struct stack_check *k) {
  const struct stack_request *out = k->out;
  for (size_t text = 0; text < out->texts; text++) {
    const size_t most = out->generation.sequence[text * out->each].most;
    add_bytes(b, stack_sequence_room(out, most, out->top), out->returns, 1);
    if (out->search) add_bytes(b, most, out->each, STACK_BEAM_ROOM);
  }
}

static bool add_outputs(struct stack_answer_bytes *b, const struct stack_check *k) {
  const struct stack_run *r = k->main->run;
  const struct stack_form *f = k->main->form;
  struct stack_sums sums = {0};
  if (!sum_answer(k, k->main, &sums)) return false;
  if (r->pool == STACK_POOL_NONE)
    add_bytes(b, sums.rows, f->width, bytes_of_float(k));
  else
    add_bytes(b, k->items, r->dimensions ? r->dimensions : stack_check_pooled(f, r->pool),
              bytes_of_float(k));
  return true;
}

static bool add_native(struct stack_answer_bytes *b, const struct stack_check *k) {
  if (k->out->generates)
    add_sequences(b, k);
  else if (k->out->scored)
    add_scores(b, k);
  else if (!add_outputs(b, k))
    return false;
  return (!stack_check_has_source(k) || add_parts(b, k, k->reader)) && add_parts(b, k, k->main);
}

/* Each output that is named has a form of its own. */
static bool add_v2(struct stack_answer_bytes *b, const struct stack_check *k) {
  const struct body_v2_asked *v2 = &k->out->v2;
  const struct stack_form *f = k->main->form;
  struct stack_sums main = {0}, read = {0};
  if (!sum_answer(k, k->main, &main) || !sum_answer(k, k->reader, &read)) return false;
  for (size_t i = 0; i < v2->outputs; i++) {
    const size_t size = v2->output[i].binary ? FLOAT : TEXT;
    const unsigned which = v2->output[i].which;
    const size_t rows = which == STACK_V2_POOLER_OUTPUT  ? k->items
                        : which == STACK_V2_ENCODER_ROWS ? read.rows
                                                         : main.rows;
    add_bytes(b, rows, which == STACK_V2_LOGITS ? f->embedding.tokens : f->width, size);
  }
  return true;
}

/* Of each key of the query that is traced. */
static bool add_trace(const struct stack_check *k, size_t *bytes) {
  const struct stack_values *v = k->values;
  const struct stack_side *s = v->traced_source ? k->reader : k->main;
  const struct trace *t = k->out->trace;
  if (!t) return true;
  const size_t keys = stack_side_is_across(s, v->traced) ? source_rows(k, s, t->item)
                                                         : s->run->geometry.item[t->item].k;
  return attention_traced_count(keys, stack_side_shape(s, v->traced), TEXT, bytes);
}

static bool count_bytes(const struct stack_check *k, size_t *bytes) {
  struct stack_answer_bytes b = {.fits = true};
  if (!(k->terms->form == BODY_V2 ? add_v2(&b, k) : add_native(&b, k))) return false;
  *bytes = b.count;
  return b.fits && add_trace(k, bytes);
}

enum status stack_limits_check(struct stack_check *k) {
  size_t bytes;
  if (check_work(k) || k->out->stream || k->out->weighs) return k->e->status;
  /* Brackets and names are not counted here: the whole text is counted when it is planned. */
  const bool counted = count_bytes(k, &bytes);
  if (counted && bytes <= k->limits->max_answer_bytes) return STATUS_OK;
  return answer_refuse_size(counted, bytes, k->limits->max_answer_bytes, k->e);
}
