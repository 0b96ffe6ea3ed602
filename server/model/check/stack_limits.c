/* stack_limits: sums of rows, pairs and bytes, each with a check for overflow. */
#include "server/model/check/stack_limits.h"

#include <stdio.h>

#include "core/base/size.h"
#include "server/answer/answer.h"
#include "server/model/answer/stack_answer_sequences.h"
#include "server/model/check/stack_texts.h"
#include "server/number/number.h"

/* Totals over all items of one side. */
struct stack_sums {
  size_t rows;
  size_t pairs, across; /* of a query and a key: of the side itself, and of its source */
};

/* Adds `times` items with so many rows, keys and keys of the source. False: an overflow. */
static bool add_rows(struct stack_sums *s, size_t rows, size_t keys, size_t across, size_t times) {
  size_t pairs, far;
  if (times == 0) return true; /* the shape of no item may overflow */
  return size_mul(rows, times, &rows) && size_mul(rows, keys, &pairs) &&
         size_mul(rows, across, &far) && size_add(s->rows, rows, &s->rows) &&
         size_add(s->pairs, pairs, &s->pairs) && size_add(s->across, far, &s->across);
}

/* The rows of a source that each row of main attends to; 0 for the source itself. */
static size_t source_rows(const struct stack_check *k, const struct stack_side *s, size_t item) {
  return s == k->main ? stack_request_source_rows(k->out, item) : 0;
}

/* Whether the side's items are generated sequences. */
static bool has_sequences(const struct stack_check *k, const struct stack_side *s) {
  return k->out->generates && s == k->main;
}

/* --- work --- */

/* Adds a side's pairs of a query and a key, for each head of each layer. Sequences count with all
 * rows that they may have. */
static bool add_work(const struct stack_check *k, const struct stack_side *s, size_t *work) {
  const struct geometry *g = &s->run->geometry;
  struct stack_sums sums = {0};
  size_t own, across;
  for (size_t i = 0; i < g->items; i++) {
    const size_t rows = has_sequences(k, s) ? stack_texts_rows(k->out, i) : g->item[i].q;
    if (!add_rows(&sums, rows, rows, source_rows(k, s, i), 1)) return false;
  }
  return size_mul(sums.pairs, s->form->self.heads, &own) && size_mul(own, s->form->layers, &own) &&
         size_mul(sums.across, s->form->cross.heads, &across) &&
         size_mul(across, s->form->layers, &across) && size_add(own, across, &own) &&
         size_add(*work, own, work);
}

/* Adds the pairs of the forward passes without each of a side's heads that are measured. A pass
 * begins at the head's layer: the side has `own` pairs in all its layers, and the layers of the
 * other side after it have `after`. */
static bool add_ablation(const struct stack_side *s, size_t own, size_t after, size_t *work) {
  for (size_t i = 0; s->stack && i < stack_form_attentions(s->form); i++) {
    const size_t layers = s->form->layers, left = layers - stack_side_layer(s, i);
    size_t pass;
    if (!s->wish[i].ablation) continue;
    if (!size_add(own / layers * left, after, &pass) ||
        !size_mul(pass, stack_side_shape(s, i)->heads, &pass) || !size_add(*work, pass, work))
      return false;
  }
  return true;
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

/* --- the response --- */

/* The most bytes of a number: as text with a separator, as base64, and in binary. */
enum { TEXT = NUMBER_TEXT_MAX + 1, BASE64 = 6, FLOAT = 4 };

/* Whether the response is safetensors: one without that form is JSON or an error. */
static bool is_binary(const struct stack_check *k) {
  return k->terms->wants_binary && stack_request_has_binary(k->out);
}

/* Whether arrays are rectangles, with zeros after shorter items. */
static bool is_rectangle(const struct stack_check *k) {
  return k->terms->form == BODY_V2 || is_binary(k) || k->out->base64;
}

/* Bytes per float in every array except v2's. */
static size_t bytes_of_float(const struct stack_check *k) {
  if (is_binary(k)) return FLOAT;
  return k->out->base64 ? BASE64 : TEXT;
}

/* Whether the item is in the response: all are, except sequences that are not returned. */
static bool is_shown(const struct stack_check *k, const struct stack_side *s, size_t item) {
  return !has_sequences(k, s) || item % k->out->each < k->out->returns;
}

/* The most rows and columns of an item's weights. */
static void shape_of(const struct stack_check *k, const struct stack_side *s, size_t item,
                     bool across, size_t *rows, size_t *columns) {
  const bool sequences = has_sequences(k, s);
  *rows = sequences ? k->out->generation.sequence[item].most : s->run->geometry.item[item].q;
  *columns = across ? source_rows(k, s, item) : sequences ? stack_texts_rows(k->out, item) : *rows;
}

/* Sums the rows of a side in the response, with the zeros of rectangles. A sequence has a row for
 * each generated token. False: an overflow. */
static bool sum_shown(const struct stack_check *k, const struct stack_side *s,
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

/* Bytes of a response, added up. */
struct stack_answer_bytes {
  size_t count;
  bool fits; /* whether nothing overflowed */
};

static void add_bytes(struct stack_answer_bytes *b, size_t each, size_t times, size_t size) {
  size_t product;
  b->fits = b->fits && size_mul(each, times, &product) && size_mul(product, size, &product) &&
            size_add(b->count, product, &b->count);
}

/* In JSON each item's thumbnails have a size of their own, and three bytes take four letters. */
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

/* Adds the hidden states and weights of a side. */
static void add_parts(struct stack_answer_bytes *b, const struct stack_check *k,
                      const struct stack_side *s) {
  const size_t width = s->form->width, size = bytes_of_float(k);
  struct stack_sums sums = {0};
  b->fits = b->fits && sum_shown(k, s, &sums);
  if (s->embedded) add_bytes(b, sums.rows, width, size);
  for (size_t i = 0; i < stack_form_attentions(s->form); i++) {
    const struct stack_wish *wish = &s->wish[i];
    const size_t pairs = stack_side_is_across(s, i) ? sums.across : sums.pairs;
    if (wish->hidden) add_bytes(b, sums.rows, width, size);
    if (wish->input) add_bytes(b, sums.rows, width, size);
    if (wish->weights == STACK_WEIGHTS_AVERAGE) add_bytes(b, pairs, 1, size);
    if (wish->weights == STACK_WEIGHTS_PER_HEAD)
      add_bytes(b, pairs, stack_side_shape(s, i)->heads, size);
    if (wish->weights == STACK_WEIGHTS_THUMBNAILS) add_thumbnails(b, k, s, i);
  }
}

/* Adds the log probability of each target, and the most likely tokens in its place: by the outputs,
 * and by each hidden state. */
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

/* Adds everything except v2's outputs and the trace. */
static void add_native(struct stack_answer_bytes *b, const struct stack_check *k) {
  const struct stack_request *out = k->out;
  const struct stack_run *r = k->main->run;
  struct stack_sums sums = {0};
  if (out->generates) {
    /* The sequences, and the beams of each step of a search. */
    for (size_t text = 0; text < out->texts; text++) {
      const size_t most = out->generation.sequence[text * out->each].most;
      add_bytes(b, stack_sequence_room(out, most, out->top), out->returns, 1);
      if (out->search) add_bytes(b, most, out->each, STACK_BEAM_ROOM);
    }
  } else if (out->scored) {
    add_scores(b, k);
  } else if (r->pool == STACK_POOL_NONE) {
    b->fits = b->fits && sum_shown(k, k->main, &sums);
    add_bytes(b, sums.rows, k->main->form->width, bytes_of_float(k));
  } else {
    add_bytes(b, k->items,
              r->dimensions ? r->dimensions : stack_check_pooled(k->main->form, r->pool),
              bytes_of_float(k));
  }
  if (stack_check_has_source(k)) add_parts(b, k, k->reader);
  add_parts(b, k, k->main);
}

/* Adds the outputs that a v2 request names, each of which is binary or text. */
static void add_v2(struct stack_answer_bytes *b, const struct stack_check *k) {
  const struct body_v2_asked *v2 = &k->out->v2;
  const struct stack_form *f = k->main->form;
  struct stack_sums main = {0}, read = {0};
  b->fits = b->fits && sum_shown(k, k->main, &main) && sum_shown(k, k->reader, &read);
  for (size_t i = 0; i < v2->outputs; i++) {
    const size_t size = v2->output[i].binary ? FLOAT : TEXT;
    const unsigned which = v2->output[i].which;
    const size_t rows = which == STACK_V2_POOLER_OUTPUT  ? k->items
                        : which == STACK_V2_ENCODER_ROWS ? read.rows
                                                         : main.rows;
    add_bytes(b, rows, which == STACK_V2_LOGITS ? f->embedding.tokens : f->width, size);
  }
}

/* Adds the trace of one query, which has numbers for each key. False: an overflow. */
static bool add_trace(const struct stack_check *k, size_t *bytes) {
  const struct stack_values *v = k->values;
  const struct stack_side *s = v->traced_source ? k->reader : k->main;
  const struct trace *t = k->out->trace;
  if (!t) return true;
  const size_t keys = stack_side_is_across(s, v->traced) ? source_rows(k, s, t->item)
                                                         : s->run->geometry.item[t->item].k;
  return attention_traced_count(keys, stack_side_shape(s, v->traced), TEXT, bytes);
}

/* --- both limits --- */

enum status stack_limits_check(struct stack_check *k) {
  const struct stack_side *main = k->main;
  const struct stack_request *out = k->out;
  const bool source = stack_check_has_source(k);
  size_t of_source = 0, own = 0, work = 0;
  const bool counted = (!source || add_work(k, k->reader, &of_source)) && add_work(k, main, &own) &&
                       size_add(of_source, own, &work) &&
                       (!out->weighs || (add_ablation(&out->main, own, 0, &work) &&
                                         add_ablation(&out->source, of_source, own, &work)));
  if (!counted || work > k->limits->max_pairs)
    return stack_limits_refuse_pairs(source ? k->reader->form : NULL, main->form, out->weighs,
                                     counted ? work : 0, k->limits->max_pairs, k->e);
  if (out->stream || out->weighs) return STATUS_OK;

  /* Brackets and names are not counted here: the whole text is counted when it is planned. */
  struct stack_answer_bytes b = {.fits = true};
  (k->terms->form == BODY_V2 ? add_v2 : add_native)(&b, k);
  const bool fits = b.fits && add_trace(k, &b.count);
  if (fits && b.count <= k->limits->max_answer_bytes) return STATUS_OK;
  return answer_refuse_size(fits, b.count, k->limits->max_answer_bytes, k->e);
}
