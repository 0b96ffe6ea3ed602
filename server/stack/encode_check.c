/* encode_check: the fields held against each other, and the core's run made of them.
 *
 * What passes here the core computes without looking again. */
#include "server/stack/encode_check.h"

#include <stdio.h>
#include <string.h>

#include "core/run/size.h"

static const struct tensor *tensor_of(const struct encode_check *k, enum encode_field field) {
  return k->reading->tensor[field];
}

/* --- where --- */

/* "/tokens/3", or "/tokens" where there is but one item, which is no batch. */
static size_t point_at_item(const struct encode_check *k, enum encode_field field, size_t item,
                            char pointer[ERROR_POINTER_SIZE]) {
  size_t n = (size_t)snprintf(pointer, ERROR_POINTER_SIZE, "%.40s", encode_field_pointer(field));
  if (!k->out->unbatched) n += (size_t)snprintf(pointer + n, ERROR_POINTER_SIZE - n, "/%zu", item);
  return n;
}

static enum status refuse_item(struct encode_check *k, enum encode_field field, size_t item,
                               const char *format, ...) __attribute__((format(printf, 4, 5)));
static enum status refuse_item(struct encode_check *k, enum encode_field field, size_t item,
                               const char *format, ...) {
  char pointer[ERROR_POINTER_SIZE];
  va_list args;
  point_at_item(k, field, item, pointer);
  va_start(args, format);
  error_at_v(k->e, pointer, format, args);
  va_end(args);
  return k->e->status;
}

/* A number of an item that is not one of `count`, which are counted from 0. */
static enum status refuse_number(struct encode_check *k, enum encode_field field, size_t item,
                                 size_t row, const char *what, int32_t number, size_t count) {
  char pointer[ERROR_POINTER_SIZE];
  const size_t n = point_at_item(k, field, item, pointer);
  snprintf(pointer + n, sizeof pointer - n, "/%zu", row);
  return error_at(k->e, pointer, "%s %d is beyond the %s, 0 to %zu", what, (int)number,
                  field == ENCODE_TOKENS ? "vocabulary" : "model's types", count - 1);
}

/* --- items --- */

/* Items without any row, which a shape may announce: they take memory, but no bytes of the body. */
enum { BARE_ITEMS_MAX = 512 };

static const char *shown(const struct encode_check *k, enum encode_field field) {
  return encode_field_shown(field, k->terms->form);
}

static enum status refuse_nothing(struct encode_check *k) {
  const enum encode_field field = k->w->vocabulary ? ENCODE_TOKENS : ENCODE_EMBEDDINGS;
  return error_at(k->e, encode_field_pointer(field), "the %s \"%s\" is missing",
                  k->terms->form == BODY_V2 ? "input" : "field", shown(k, field));
}

static enum status find_rows(struct encode_check *k) {
  const struct tensor *tokens = tensor_of(k, ENCODE_TOKENS),
                      *embeddings = tensor_of(k, ENCODE_EMBEDDINGS);
  if (tokens && embeddings)
    return error_at(k->e, "/embeddings", "there are %s, too: only one of both can be",
                    shown(k, ENCODE_TOKENS));
  if (!tokens && !embeddings) return refuse_nothing(k);
  if (tokens && !k->w->vocabulary)
    return error_at(k->e, "/tokens", "this model has no table of tokens: it takes \"%s\"",
                    shown(k, ENCODE_EMBEDDINGS));
  k->rows = tokens ? tokens : embeddings;
  k->field = tokens ? ENCODE_TOKENS : ENCODE_EMBEDDINGS;
  k->out->unbatched = encode_is_unbatched(k->rows, tokens ? 1 : 2);
  return STATUS_OK;
}

/* The rows of an item in a field that has a list of them for each item. */
static size_t rows_of(const struct encode_check *k, const struct tensor *t, size_t item) {
  return k->out->unbatched ? t->elements : tensor_shape_at(t, item).dim[0];
}

/* Do tokens or their like of another field belong to the same items, as many to each? */
static enum status check_beside(struct encode_check *k, enum encode_field field) {
  const struct tensor *t = tensor_of(k, field);
  const size_t items = k->run->geometry.items;
  const unsigned depth = k->out->unbatched ? 1 : 2;
  const bool open = !t->shaped && t->count == 0 && t->depth < depth;
  if (t->depth != depth && !open)
    return error_at(k->e, encode_field_pointer(field), "%s of depth %u; %u belongs here",
                    shown(k, field), t->depth, depth);
  if (!k->out->unbatched && t->elements != items)
    return error_at(k->e, encode_field_pointer(field), "%s of %zu items beside %s of %zu",
                    shown(k, field), t->elements, shown(k, k->field), items);
  for (size_t i = 0; i < items; i++)
    if (rows_of(k, t, i) != rows_of(k, k->rows, i))
      return refuse_item(k, field, i, "%zu numbers; the item has %zu rows", rows_of(k, t, i),
                         rows_of(k, k->rows, i));
  return STATUS_OK;
}

/* --- how many rows of an item count --- */

static enum status read_lens(struct encode_check *k, int32_t *lens) {
  const struct tensor *t = tensor_of(k, ENCODE_VALID_LENS);
  const size_t items = k->run->geometry.items;
  if (t->depth != (k->out->unbatched ? 0u : 1u))
    return error_at(k->e, "/valid_lens", "valid_lens of depth %u; %s", t->depth,
                    k->out->unbatched ? "one item alone takes one length, not an array"
                                      : "a batch takes a list of them");
  if (!k->out->unbatched && t->elements != items)
    return error_at(k->e, "/valid_lens", "%zu valid lengths for %zu items", t->elements, items);
  for (size_t i = 0; i < items; i++) {
    const int32_t len = ((const int32_t *)t->data)[i];
    if (len < 0 || (size_t)len > rows_of(k, k->rows, i))
      return refuse_item(k, ENCODE_VALID_LENS, i, "a valid length of %d; the item has %zu rows",
                         (int)len, rows_of(k, k->rows, i));
    lens[i] = len;
  }
  return STATUS_OK;
}

/* A mask of ones, and zeros behind them. */
static enum status read_mask(struct encode_check *k, int32_t *lens) {
  const int32_t *mask = tensor_of(k, ENCODE_ATTENTION_MASK)->data;
  if (check_beside(k, ENCODE_ATTENTION_MASK)) return k->e->status;
  for (size_t i = 0; i < k->run->geometry.items; i++) {
    const size_t rows = rows_of(k, k->rows, i);
    size_t ones = 0, row;
    lens[i] = 0;
    if (rows == 0) continue; /* there may be no mask at all */
    while (ones < rows && mask[ones] == 1) ones++;
    for (row = ones; row < rows && mask[row] == 0;) row++;
    if (row < rows) {
      char pointer[ERROR_POINTER_SIZE];
      const size_t n = point_at_item(k, ENCODE_ATTENTION_MASK, i, pointer);
      snprintf(pointer + n, sizeof pointer - n, "/%zu", row);
      return error_at(
          k->e, pointer,
          "%d: a mask of ones, and zeros behind them, is what belongs here: pad on the right",
          (int)mask[row]);
    }
    lens[i] = (int32_t)ones;
    mask += rows;
  }
  return STATUS_OK;
}

static enum status count_rows(struct encode_check *k, int32_t *lens) {
  const struct tensor *given = tensor_of(k, ENCODE_VALID_LENS);
  if (given && !given->null) return read_lens(k, lens);
  if (tensor_of(k, ENCODE_ATTENTION_MASK)) return read_mask(k, lens);
  for (size_t i = 0; i < k->run->geometry.items; i++) lens[i] = (int32_t)rows_of(k, k->rows, i);
  return STATUS_OK;
}

/* --- the items --- */

static enum status check_rows(struct encode_check *k, size_t item, size_t rows) {
  if (k->w->positions && rows > k->w->positions)
    return refuse_item(k, k->field, item, "%zu rows; the model has %zu positions: cut the text",
                       rows, k->w->positions);
  if (rows == 0 && k->values->pool != STACK_POOL_NONE)
    return refuse_item(k, k->field, item, "an item without rows has no vector to be pooled");
  return STATUS_OK;
}

static enum status make_items(struct encode_check *k) {
  struct geometry *g = &k->run->geometry;
  struct encode_request *out = k->out;
  int32_t *lens = arena_alloc(k->reading->arena, g->items, sizeof *lens, k->e);
  g->item = arena_alloc(k->reading->arena, g->items, sizeof *g->item, k->e);
  if (!lens || !g->item) return k->e->status;
  for (size_t i = 0; i < g->items; i++) {
    if (rows_of(k, k->rows, i) > INT32_MAX)
      return error_limit(k->e, "max_pairs", "item %zu has more than %d rows", i, INT32_MAX);
    out->widest = size_max(out->widest, rows_of(k, k->rows, i));
  }
  if (count_rows(k, lens)) return k->e->status;
  out->lens = lens;
  out->rectangular = true;
  for (size_t i = 0; i < g->items; i++) {
    const size_t n = (size_t)lens[i];
    if (check_rows(k, i, n)) return k->e->status;
    g->item[i] = (struct item){.q = n, .k = n, .q_row = g->q_rows, .k_row = g->k_rows};
    g->q_rows += n; /* rows that lie in memory: no sum of them overflows */
    g->k_rows += n;
    out->rectangular = out->rectangular && n == out->widest;
  }
  /* An empty batch has no items, but `[0, 5]` gives them 5 rows: so does the answer. */
  if (g->items == 0) out->widest = k->rows->common.dim[0];
  return STATUS_OK;
}

static enum status check_items(struct encode_check *k) {
  struct geometry *g = &k->run->geometry;
  const struct tensor *t = k->rows;
  g->items = k->out->unbatched ? 1 : t->elements;
  if (g->items > k->limits->max_items)
    return error_limit(k->e, "max_items", "%zu items; %zu are allowed", g->items,
                       k->limits->max_items);
  if (g->items > BARE_ITEMS_MAX && t->shaped && t->count == 0)
    return error_limit(k->e, "max_items",
                       "a shape of %zu items without rows; %d are allowed where the body does not "
                       "carry them",
                       g->items, BARE_ITEMS_MAX);
  return make_items(k);
}

/* --- what the rows hold --- */

/* Moves the rows that count together, to lie end to end; each is `size` bytes. */
static void pack_rows(const struct encode_check *k, void *data, size_t size) {
  char *from = data;
  if (!data) return;
  for (size_t i = 0; i < k->run->geometry.items; i++) {
    const struct item *item = &k->run->geometry.item[i];
    char *to = (char *)data + item->q_row * size;
    if (to != from && item->q > 0) memmove(to, from, item->q * size);
    from += rows_of(k, k->rows, i) * size;
  }
}

/* Takes the numbers of a field with one for each row, of `count` that the model has. */
static enum status take_numbers(struct encode_check *k, enum encode_field field, const char *what,
                                size_t count, const int32_t **out) {
  const struct tensor *t = tensor_of(k, field);
  const struct geometry *g = &k->run->geometry;
  pack_rows(k, t->data, sizeof(int32_t));
  const int32_t *number = t->data;
  for (size_t i = 0; i < g->items; i++)
    for (size_t row = 0; row < g->item[i].q; row++, number++)
      if (*number < 0 || (size_t)*number >= count)
        return refuse_number(k, field, i, row, what, *number, count);
  *out = t->data;
  return STATUS_OK;
}

static enum status take_rows(struct encode_check *k) {
  if (k->field == ENCODE_TOKENS) {
    if (take_numbers(k, ENCODE_TOKENS, "the token", k->w->vocabulary, &k->run->tokens))
      return k->e->status;
    /* Without rows there is no array, but NULL would mean that there are embeddings. */
    if (!k->run->tokens) k->run->tokens = arena_alloc(k->reading->arena, 0, 1, k->e);
    return k->e->status;
  }
  pack_rows(k, k->rows->data, k->form->width * sizeof(float));
  k->run->embeddings = k->rows->data;
  return STATUS_OK;
}

static enum status take_types(struct encode_check *k) {
  if (!tensor_of(k, ENCODE_TOKEN_TYPES)) return STATUS_OK;
  if (!k->w->types) return error_at(k->e, "/token_types", "this model has no token types");
  if (check_beside(k, ENCODE_TOKEN_TYPES)) return k->e->status;
  return take_numbers(k, ENCODE_TOKEN_TYPES, "the type", k->w->types, &k->run->types);
}

/* --- what is made of them --- */

static enum status refuse_pooler(struct encode_check *k) {
  char pointer[ERROR_POINTER_SIZE] = "/pool";
  const struct body_v2_asked *v2 = &k->out->v2;
  for (size_t i = 0; k->terms->form == BODY_V2 && i < v2->outputs; i++)
    if (v2->output[i].which == ENCODE_POOLER_OUTPUT)
      snprintf(pointer, sizeof pointer, "/outputs/%zu", i);
  return error_at(k->e, pointer, "this model has no pooler");
}

static enum status check_pool(struct encode_check *k) {
  const struct encode_values *v = k->values;
  const bool pooled = v->pool != STACK_POOL_NONE;
  if (v->pool == STACK_POOL_POOLER && !stack_has_pooler(k->w->encoder)) return refuse_pooler(k);
  if (!pooled && v->normalize && encode_field_is_seen(k->reading, ENCODE_NORMALIZE))
    return error_at(k->e, "/normalize", "rows are not normalized: this goes with a pool");
  if (!pooled && v->dimensions)
    return error_at(k->e, "/dimensions", "rows are not cut: this goes with a pool");
  if (v->dimensions > encode_check_pooled(k->form))
    return error_at(k->e, "/dimensions", "%zu dimensions; the model's vectors have %zu",
                    v->dimensions, encode_check_pooled(k->form));
  k->run->pool = v->pool;
  k->run->dimensions = v->dimensions;
  k->run->normalize = pooled && v->normalize;
  k->run->dense_left = k->terms->form == BODY_V2;
  return STATUS_OK;
}

static bool wishes_nothing(const struct stack_wish *w) {
  return w->weights == STACK_WEIGHTS_NONE && !w->head_mask && !w->hidden && !w->input && !w->trace;
}

/* Its query is to be there; its layer then is to make the trace. */
static enum status find_trace(struct encode_check *k) {
  const struct encode_values *v = k->values;
  if (v->trace.asked)
    k->out->trace = v->wish[v->traced].trace =
        attention_traced_find(&v->trace, &k->run->geometry, k->form->self.heads, k->reading->arena,
                              k->e);
  return k->e->status;
}

static void take_wishes(struct encode_check *k) {
  k->run->embedded = k->values->embedded;
  for (size_t l = 0; l < k->form->layers; l++)
    if (!wishes_nothing(&k->values->wish[l])) k->run->wish = k->values->wish;
}

enum status encode_check(const struct contract_reading *reading, const struct whole *w,
                         const struct body_terms *terms, const struct body_limits *limits,
                         struct encode_request *out) {
  const struct encode_values *v = reading->values;
  struct encode_check k = {.reading = reading,
                           .values = v,
                           .w = w,
                           .form = v->form,
                           .terms = terms,
                           .limits = limits,
                           .out = out,
                           .e = reading->e};
  out->form = v->form;
  out->base64 = v->base64;
  out->run = k.run = stack_run_new(w->encoder, reading->arena, k.e);
  if (!k.run || find_rows(&k) || check_pool(&k) || check_items(&k) || find_trace(&k))
    return k.e->status;
  take_wishes(&k);
  if (encode_check_limits(&k) || take_rows(&k)) return k.e->status;
  return take_types(&k);
}
