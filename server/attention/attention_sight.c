/* attention_sight: valid_lens, mask and bias, which say what each query may attend to, checked
 * against the items' shapes. A bias of minus infinity, which only binary data can have, becomes a
 * mask. */
#include <math.h>
#include <stdio.h>

#include "server/attention/attention_checking.h"

/* --- valid_lens --- */

/* There is one length per item, which becomes one per query, or one per query. */
static enum status check_lens(struct attention_check *k) {
  const struct tensor *t = attention_tensor(k, FIELD_VALID_LENS);
  if (!t || t->null) return STATUS_OK;
  /* The depth of one length per item. */
  const unsigned shallow = k->unbatched ? 0 : 1;
  if (t->depth < shallow || t->depth > shallow + 1)
    return error_at(k->e, "/valid_lens", "valid_lens has %u dimensions, expected %u or %u",
                    t->depth, shallow, shallow + 1);
  if (!k->unbatched && t->elements != k->g->items)
    return error_at(k->e, "/valid_lens", "%zu valid lengths for %zu items", t->elements,
                    k->g->items);
  const bool per_query = t->depth > shallow;
  const int32_t *lens = t->data;
  int32_t *spread = NULL;
  if (!per_query && !(spread = arena_alloc(k->a, k->g->q_rows, sizeof *spread, k->e)))
    return k->e->status;
  for (size_t i = 0; i < k->g->items; i++) {
    const struct item *item = &k->g->item[i];
    if (per_query && attention_rows_of(k, t, i) != item->q)
      return attention_fail_at(k, FIELD_VALID_LENS, i, "%zu valid lengths for %zu queries",
                               attention_rows_of(k, t, i), item->q);
    for (size_t q = 0; q < (per_query ? item->q : 1); q++) {
      const int32_t len = lens[per_query ? item->q_row + q : i];
      if (len >= 0 && (size_t)len <= item->k) continue;
      char of_item[24] = "", of_query[24] = "", pointer[ERROR_POINTER_SIZE];
      if (!k->unbatched) snprintf(of_item, sizeof of_item, "/%zu", i);
      if (per_query) snprintf(of_query, sizeof of_query, "/%zu", q);
      snprintf(pointer, sizeof pointer, "/valid_lens%s%s", of_item, of_query);
      return error_at(k->e, pointer, "the valid length is %d, but the item has %zu keys", (int)len,
                      item->k);
    }
    for (size_t q = 0; spread && q < item->q; q++) spread[item->q_row + q] = lens[i];
  }
  k->g->lens = per_query ? lens : spread;
  return STATUS_OK;
}

/* --- mask and bias --- */

/* The levels of a mask or bias. */
enum sight_form { SHARED, PER_HEAD, PER_ITEM, PER_ITEM_AND_HEAD, NO_FORM };

static const char *const form_names[] = {"[q][k]", "[h][q][k]", "[b][q][k]", "[b][h][q][k]"};

/* Returns the form that a depth means; a mask has no form with heads. */
static enum sight_form form_of(const struct attention_check *k, enum attention_field field,
                               unsigned depth) {
  bool heads = field == FIELD_BIAS;
  if (depth == 2) return SHARED;
  if (depth == 3 && k->unbatched) return heads ? PER_HEAD : NO_FORM;
  if (depth == 3) return PER_ITEM;
  return heads && !k->unbatched ? PER_ITEM_AND_HEAD : NO_FORM;
}

/* Returns whether an element has the expected shape. In JSON an empty level hides the levels below.
 */
static bool agrees(const struct tensor *t, size_t element, size_t levels, const size_t *want) {
  const struct tensor_shape s = tensor_shape_at(t, element);
  for (size_t i = 0; i < levels; i++) {
    if (s.dim[i] != want[i]) return false;
    if (want[i] == 0 && !t->shaped) return true;
  }
  return true;
}

/* Returns whether all elements have the shape that the form requires. If not, *at is the first one
 * that differs, or t->elements if their number is wrong. */
static bool form_fits(const struct attention_check *k, const struct tensor *t, enum sight_form form,
                      size_t *at) {
  static const struct item nothing;
  const struct geometry *g = k->g;
  bool per_item = form == PER_ITEM || form == PER_ITEM_AND_HEAD;
  const struct item *item = g->items ? g->item : &nothing;
  size_t heads = k->m->shape.heads;
  *at = t->elements;
  if (t->elements != (per_item ? g->items : form == SHARED ? item->q : heads)) return false;
  for (*at = 0; *at < t->elements; ++*at, item += per_item) {
    const size_t want[] = {heads, item->q, item->k};
    /* The elements of a shared one are rows: they have only the level of keys. */
    size_t first = form == SHARED ? 2 : form == PER_ITEM_AND_HEAD ? 0 : 1;
    if (!agrees(t, *at, 3 - first, want + first)) return false;
  }
  return true;
}

/* Returns whether an array without numbers, which may hide its depth, fits any form. */
static bool empty_fits(const struct attention_check *k, const struct tensor *t,
                       enum attention_field field) {
  for (unsigned depth = 2; depth <= 4; depth++) {
    enum sight_form form = form_of(k, field, depth);
    size_t at;
    if (form == NO_FORM || (form == SHARED && !attention_items_alike(k->g))) continue;
    if (form_fits(k, t, form, &at)) return true;
  }
  return false;
}

/* Finds the form of a mask or bias: NO_FORM if it has no numbers. */
static enum status check_form(struct attention_check *k, enum attention_field field,
                              enum sight_form *form) {
  const struct tensor *t = attention_tensor(k, field);
  *form = NO_FORM;
  if (!t) return STATUS_OK;
  if (t->count == 0 && !t->shaped && empty_fits(k, t, field)) return STATUS_OK;
  enum sight_form meant = form_of(k, field, t->depth < 2 ? 2 : t->depth);
  if (meant == NO_FORM)
    return error_at(k->e, attention_field_pointer(field),
                    "%s has %u dimensions, but the queries have %u", attention_field_name(field),
                    t->depth, k->unbatched ? 2u : 3u);
  if (meant == SHARED && k->g->items == 0) return STATUS_OK; /* no item to compare it with */
  if (meant == SHARED && !attention_items_alike(k->g))
    return error_at(k->e, attention_field_pointer(field),
                    "%s without a batch dimension requires items of one shape",
                    attention_field_name(field));
  size_t at;
  if (!form_fits(k, t, meant, &at)) {
    static const struct item nothing;
    char pointer[ERROR_POINTER_SIZE];
    int n = snprintf(pointer, sizeof pointer, "%s", attention_field_pointer(field));
    if (at < t->elements) snprintf(pointer + n, sizeof pointer - (size_t)n, "/%zu", at);
    const bool per_item = meant == PER_ITEM || meant == PER_ITEM_AND_HEAD;
    const bool heads = meant == PER_HEAD || meant == PER_ITEM_AND_HEAD;
    const struct item *item =
        k->g->items == 0 ? &nothing : &k->g->item[per_item && at < k->g->items ? at : 0];
    return error_at(k->e, pointer,
                    "%s must have the shape %s of the queries and keys%s (q = %zu, k = %zu)",
                    attention_field_name(field), form_names[meant], heads ? " and heads" : "",
                    item->q, item->k);
  }
  if (t->count > 0) *form = meant;
  return STATUS_OK;
}

/* --- keys that a bias masks --- */

enum { LOOK = 64 }; /* numbers at a time: the compiler vectorizes a loop of fixed length */

static bool has_hidden(const float *bias, size_t count) {
  size_t i = 0;
  for (; i + LOOK <= count; i += LOOK) {
    int any = 0;
    for (size_t j = 0; j < LOOK; j++) any |= bias[i + j] == -INFINITY;
    if (any) return true;
  }
  while (i < count && bias[i] != -INFINITY) i++;
  return i < count;
}

/* Sets `to` to 1 where neither the mask `from` nor the bias masks the key. `from` may be `to`, or
 * NULL: no mask. */
static void hide(uint8_t *to, const uint8_t *from, const float *bias, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] = (from ? from[i] : 1) & (bias[i] != -INFINITY);
}

/* Turns each bias of -infinity into a masked key and a bias of 0. `shared`: the bias has no level
 * of items. */
static enum status mask_hidden(struct attention_check *k, const struct tensor *bias, bool shared) {
  struct geometry *g = k->g;
  float *number = bias->data;
  if (!bias->unjudged || !has_hidden(number, bias->count)) return STATUS_OK;
  const struct tensor *given = attention_tensor(k, FIELD_MASK);
  const bool mask_shared = !g->mask || given->depth == 2;
  const size_t grids = g->bias_per_head ? k->m->shape.heads : 1;
  /* The request's mask is changed, unless its levels cannot separate the heads or items of the
   * bias. */
  const bool in_place = g->mask && !g->bias_per_head && (!mask_shared || shared);
  uint8_t *made = in_place ? given->data : arena_alloc(k->a, bias->count, sizeof *made, k->e);
  if (!made) return k->e->status;
  /* A bias that all items share is read once, unless each item has its own mask. */
  const size_t items = shared && mask_shared ? 1 : g->items;
  for (size_t i = 0; i < items; i++) {
    struct item *item = &g->item[i];
    const size_t grid = item->q * item->k;
    const uint8_t *from = g->mask ? g->mask + item->mask_at : NULL;
    const size_t to = in_place ? item->mask_at : item->bias_at;
    for (size_t h = 0; h < grids; h++)
      hide(made + to + h * grid, from, number + item->bias_at + h * grid, grid);
    item->mask_at = to;
  }
  g->mask = made;
  g->mask_per_head = g->bias_per_head;
  for (size_t i = 0; i < bias->count; i++)
    if (number[i] == -INFINITY) number[i] = 0;
  return STATUS_OK;
}

enum status attention_check_sight(struct attention_check *k) {
  enum sight_form form;
  if (check_lens(k) || check_form(k, FIELD_MASK, &form)) return k->e->status;
  if (form != NO_FORM) k->g->mask = attention_tensor(k, FIELD_MASK)->data;
  for (size_t i = 0, next = 0; i < k->g->items && form == PER_ITEM; i++) {
    struct item *item = &k->g->item[i];
    item->mask_at = next;
    next += item->q * item->k;
  }
  /* The bias is last, because it may extend the mask. */
  if (check_form(k, FIELD_BIAS, &form)) return k->e->status;
  if (form == NO_FORM) return STATUS_OK;
  k->g->bias = attention_tensor(k, FIELD_BIAS)->data;
  k->g->bias_per_head = form == PER_HEAD || form == PER_ITEM_AND_HEAD;
  bool per_item = form == PER_ITEM || form == PER_ITEM_AND_HEAD;
  size_t grids = k->g->bias_per_head ? k->m->shape.heads : 1;
  size_t next = 0;
  for (size_t i = 0; i < k->g->items && per_item; i++) {
    struct item *item = &k->g->item[i];
    item->bias_at = next;
    next += grids * item->q * item->k;
  }
  return mask_hidden(k, attention_tensor(k, FIELD_BIAS), !per_item);
}
