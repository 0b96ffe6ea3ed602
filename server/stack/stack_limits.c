/* stack_limits: what a request would cost, counted before anything is allocated for it. */
#include "core/run/size.h"
#include "server/stack/stack_answer_sequences.h"
#include "server/stack/stack_check.h"
#include "server/stack/stack_texts.h"
#include "server/text/number.h"

/* What the items have together. */
struct stack_sums {
  size_t rows, pairs; /* of a query and a key */
};

static bool add_item(struct stack_sums *s, size_t rows, size_t times) {
  size_t pairs;
  if (times == 0) return true; /* whatever their shape says */
  return size_mul(rows, rows, &pairs) && size_mul(pairs, times, &pairs) &&
         size_add(s->pairs, pairs, &s->pairs) && size_mul(rows, times, &rows) &&
         size_add(s->rows, rows, &s->rows);
}

static bool sum_items(const struct geometry *g, struct stack_sums *s) {
  for (size_t i = 0; i < g->items; i++)
    if (!add_item(s, g->item[i].q, 1)) return false;
  return true;
}

static bool add_shown(struct stack_sums *s, size_t tokens, size_t keys, size_t times) {
  size_t rows, pairs;
  return size_mul(tokens, times, &rows) && size_mul(rows, keys, &pairs) &&
         size_add(s->rows, rows, &s->rows) && size_add(s->pairs, pairs, &s->pairs);
}

/* What may be shown of sequences: a row of each token that is chosen. */
static bool sum_shown(const struct stack_request *r, bool rectangle, struct stack_sums *s) {
  const size_t items = r->run->geometry.items;
  size_t tokens = 0, keys = 0;
  for (size_t i = 0; i < items; i++) {
    tokens = size_max(tokens, r->generation.sequence[i].most);
    keys = size_max(keys, stack_texts_rows(r, i));
    if (!rectangle && !add_shown(s, r->generation.sequence[i].most, stack_texts_rows(r, i), 1))
      return false;
  }
  return !rectangle || add_shown(s, tokens, keys, items);
}

/* Of sequences all rows count that they may come to have. */
static bool sum_sequences(const struct stack_request *r, struct stack_sums *s) {
  for (size_t i = 0; i < r->run->geometry.items; i++)
    if (!add_item(s, stack_texts_rows(r, i), 1)) return false;
  return true;
}

/* Every head of every layer meets every pair. */
static enum status check_work(struct stack_check *k) {
  const size_t heads = k->form->self.heads, layers = k->form->layers;
  struct stack_sums sums = {0};
  size_t work;
  if ((k->out->generates ? sum_sequences(k->out, &sums) : sum_items(&k->run->geometry, &sums)) &&
      size_mul(sums.pairs, heads, &work) && size_mul(work, layers, &work) &&
      work <= k->limits->max_pairs)
    return STATUS_OK;
  return error_limit(k->e, "max_pairs",
                     "more than %zu pairs of a query and a key, counted for each of %zu heads in "
                     "each of %zu layers",
                     k->limits->max_pairs, heads, layers);
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

/* The rows and columns of an item's weights, at most. */
static void shape_of(const struct stack_check *k, size_t item, size_t *rows, size_t *columns) {
  *rows = *columns = k->run->geometry.item[item].q;
  if (!k->out->generates) return;
  *rows = k->out->generation.sequence[item].most;
  *columns = stack_texts_rows(k->out, item);
}

/* In JSON each item's thumbnails have its own size, and three of their bytes take four letters. */
static void add_thumbnails(struct stack_answer_bytes *b, const struct stack_check *k, size_t most) {
  enum { IN_LETTERS = 3, LETTERS = 4 };
  const struct geometry *g = &k->run->geometry;
  const size_t heads = k->form->self.heads, widest = size_min(most, k->out->widest);
  if (is_binary(k)) {
    add_bytes(b, widest * widest, heads * g->items, 1);
    return;
  }
  for (size_t i = 0; i < g->items; i++) {
    size_t rows, columns;
    shape_of(k, i, &rows, &columns);
    const size_t bytes = heads * size_min(rows, most) * size_min(columns, most);
    add_bytes(b, (bytes + IN_LETTERS - 1) / IN_LETTERS, 1, LETTERS);
  }
}

static void add_weights(struct stack_answer_bytes *b, const struct stack_check *k,
                        const struct stack_wish *w, const struct stack_sums *sums) {
  const size_t size = bytes_of_float(k);
  if (w->weights == STACK_WEIGHTS_AVERAGE) add_bytes(b, sums->pairs, 1, size);
  if (w->weights == STACK_WEIGHTS_PER_HEAD) add_bytes(b, sums->pairs, k->form->self.heads, size);
  if (w->weights == STACK_WEIGHTS_THUMBNAILS) add_thumbnails(b, k, w->thumbnail);
}

/* Of what follows a target, and of each of the likeliest tokens in its place. */
static void add_scores(struct stack_answer_bytes *b, const struct stack_check *k) {
  const struct stack_request *out = k->out;
  const size_t each = is_binary(k) ? 2 * FLOAT : STACK_TOP_ROOM;
  size_t targets = out->targets;
  if (is_rectangle(k))
    b->fits = b->fits && size_mul(out->most_targets, k->run->geometry.items, &targets);
  add_bytes(b, targets, 1, bytes_of_float(k));
  add_bytes(b, is_binary(k) ? targets : out->targets, out->top, each);
}

/* Of each sequence what stands around its tokens; of each token itself, its log probability, and
 * the likeliest in its place. */
static void add_sequences(struct stack_answer_bytes *b, const struct stack_check *k) {
  const struct stack_request *out = k->out;
  for (size_t i = 0; i < k->run->geometry.items; i++)
    add_bytes(b, stack_sequence_room(out->generation.sequence[i].most, out->top), 1, 1);
}

static void add_native(struct stack_answer_bytes *b, const struct stack_check *k,
                       const struct stack_sums *sums) {
  const struct stack_run *r = k->run;
  const size_t width = k->form->width, size = bytes_of_float(k);
  if (k->out->generates)
    add_sequences(b, k);
  else if (k->out->scored)
    add_scores(b, k);
  else if (r->pool == STACK_POOL_NONE)
    add_bytes(b, sums->rows, width, size);
  else
    add_bytes(b, r->geometry.items, r->dimensions ? r->dimensions : stack_check_pooled(k->form),
              size);
  if (r->embedded) add_bytes(b, sums->rows, width, size);
  for (size_t l = 0; l < k->form->layers && r->wish; l++) {
    if (r->wish[l].hidden) add_bytes(b, sums->rows, width, size);
    if (r->wish[l].input) add_bytes(b, sums->rows, width, size);
    add_weights(b, k, &r->wish[l], sums);
  }
}

/* Each output that is named has a form of its own. */
static void add_v2(struct stack_answer_bytes *b, const struct stack_check *k,
                   const struct stack_sums *sums) {
  const struct body_v2_asked *v2 = &k->out->v2;
  for (size_t i = 0; i < v2->outputs; i++) {
    const size_t size = v2->output[i].binary ? FLOAT : TEXT;
    const unsigned which = v2->output[i].which;
    const size_t rows = which == STACK_V2_POOLER_OUTPUT ? k->run->geometry.items : sums->rows;
    add_bytes(b, rows, which == STACK_V2_LOGITS ? k->form->embedding.tokens : k->form->width, size);
  }
}

/* The rows of rectangles count, also those behind an item's. */
static bool sum_answer(const struct stack_check *k, struct stack_sums *sums) {
  if (k->out->generates) return sum_shown(k->out, is_rectangle(k), sums);
  if (is_rectangle(k)) return add_item(sums, k->out->widest, k->run->geometry.items);
  return sum_items(&k->run->geometry, sums);
}

static bool count_bytes(const struct stack_check *k, size_t *bytes) {
  struct stack_sums sums = {0};
  struct stack_answer_bytes b = {.fits = true};
  if (!sum_answer(k, &sums)) return false;
  if (k->terms->form == BODY_V2)
    add_v2(&b, k, &sums);
  else
    add_native(&b, k, &sums);
  *bytes = b.count;
  return b.fits && (!k->out->trace || attention_traced_count(k->out->trace, &k->run->geometry,
                                                             &k->form->self, TEXT, bytes));
}

enum status stack_check_limits(struct stack_check *k) {
  size_t bytes;
  if (check_work(k) || k->out->stream) return k->e->status;
  /* Brackets and names are not counted here: the whole text is counted when it is planned. */
  if (count_bytes(k, &bytes) && bytes <= k->limits->max_answer_bytes) return STATUS_OK;
  return error_limit(k->e, "max_answer_bytes", "the answer may need more than %zu bytes",
                     k->limits->max_answer_bytes);
}
