/* attention_sight: what each query may see: valid_lens, mask and bias held against the shapes of
 * the items. A bias of minus infinity, which only bytes can say, becomes a mask. */
#include <math.h>
#include <stdio.h>

#include "server/attention/attention_checking.h"

/* --- valid_lens --- */

/* `at` is the length's place in its array: the item's, or the item's and the query's. */
static enum status refuse_len(struct attention_check *k, int32_t len, size_t keys, const char *at) {
  char pointer[ERROR_POINTER_SIZE];
  snprintf(pointer, sizeof pointer, "/valid_lens%s", at);
  return error_at(k->e, pointer, "the valid length is %d, but the item has %zu keys", (int)len,
                  keys);
}

static bool len_fits(int32_t len, size_t keys) { return len >= 0 && (size_t)len <= keys; }

static enum status lens_per_query(struct attention_check *k, const struct tensor *t) {
  const int32_t *lens = t->data;
  for (size_t i = 0; i < k->g->items; i++) {
    const struct item *item = &k->g->item[i];
    size_t given = attention_rows_of(k, t, i);
    if (given != item->q)
      return attention_fail_at(k, FIELD_VALID_LENS, i, "%zu valid lengths for %zu queries", given,
                               item->q);
    for (size_t q = 0; q < item->q; q++) {
      if (len_fits(lens[item->q_row + q], item->k)) continue;
      char at[48];
      if (k->unbatched)
        snprintf(at, sizeof at, "/%zu", q);
      else
        snprintf(at, sizeof at, "/%zu/%zu", i, q);
      return refuse_len(k, lens[item->q_row + q], item->k, at);
    }
  }
  k->g->lens = lens;
  return STATUS_OK;
}

static enum status lens_per_item(struct attention_check *k, const struct tensor *t) {
  const int32_t *lens = t->data;
  int32_t *spread = arena_alloc(k->a, k->g->q_rows, sizeof *spread, k->e);
  if (!spread) return k->e->status;
  for (size_t i = 0; i < k->g->items; i++) {
    const struct item *item = &k->g->item[i];
    if (!len_fits(lens[i], item->k)) {
      char at[32] = "";
      if (!k->unbatched) snprintf(at, sizeof at, "/%zu", i);
      return refuse_len(k, lens[i], item->k, at);
    }
    for (size_t q = 0; q < item->q; q++) spread[item->q_row + q] = lens[i];
  }
  k->g->lens = spread;
  return STATUS_OK;
}

static enum status check_lens(struct attention_check *k) {
  const struct tensor *t = attention_tensor(k, FIELD_VALID_LENS);
  if (!t || t->null) return STATUS_OK;
  /* The depth at which there is one length per item. */
  unsigned shallow = k->unbatched ? 0 : 1;
  if (t->depth < shallow || t->depth > shallow + 1)
    return error_at(k->e, "/valid_lens", "valid_lens has %u dimensions, expected %u or %u",
                    t->depth, shallow, shallow + 1);
  if (!k->unbatched && t->elements != k->g->items)
    return error_at(k->e, "/valid_lens", "%zu valid lengths for %zu items", t->elements,
                    k->g->items);
  return t->depth == shallow ? lens_per_item(k, t) : lens_per_query(k, t);
}

/* --- mask and bias --- */

/* What the levels of a mask or bias stand for. */
enum sight_form { SHARED, PER_HEAD, PER_ITEM, PER_ITEM_AND_HEAD, NO_FORM };

static const char *const form_names[] = {"[q][k]", "[h][q][k]", "[b][q][k]", "[b][h][q][k]"};

/* The form that a depth means; a mask has none with heads. */
static enum sight_form form_of(const struct attention_check *k, enum attention_field field,
                               unsigned depth) {
  bool heads = field == FIELD_BIAS;
  if (depth == 2) return SHARED;
  if (depth == 3 && k->unbatched) return heads ? PER_HEAD : NO_FORM;
  if (depth == 3) return PER_ITEM;
  return heads && !k->unbatched ? PER_ITEM_AND_HEAD : NO_FORM;
}

/* Does an element have the wanted shape? In a text an empty level hides those below it. */
static bool agrees(const struct tensor *t, size_t element, size_t levels, const size_t *want) {
  const struct tensor_shape s = tensor_shape_at(t, element);
  for (size_t i = 0; i < levels; i++) {
    if (s.dim[i] != want[i]) return false;
    if (want[i] == 0 && !t->shaped) return true;
  }
  return true;
}

/* Do all elements have the shape that the form asks for? If not, *at is the first one that differs,
 * or t->elements if their number is wrong. */
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
    /* A shared one is a list of rows: its elements have the keys' level only. */
    size_t first = form == SHARED ? 2 : form == PER_ITEM_AND_HEAD ? 0 : 1;
    if (!agrees(t, *at, 3 - first, want + first)) return false;
  }
  return true;
}

static enum status refuse_form(struct attention_check *k, const struct tensor *t,
                               enum attention_field field, enum sight_form form, size_t at) {
  char pointer[ERROR_POINTER_SIZE];
  int n = snprintf(pointer, sizeof pointer, "%s", attention_field_pointer(field));
  if (at < t->elements) snprintf(pointer + n, sizeof pointer - (size_t)n, "/%zu", at);
  static const struct item nothing;
  const bool per_item = form == PER_ITEM || form == PER_ITEM_AND_HEAD;
  const struct item *item =
      k->g->items == 0 ? &nothing : &k->g->item[per_item && at < k->g->items ? at : 0];
  return error_at(k->e, pointer,
                  "%s must have the shape %s of the queries and keys%s (q = %zu, k = %zu)",
                  attention_field_name(field), form_names[form],
                  form == PER_HEAD || form == PER_ITEM_AND_HEAD ? " and heads" : "", item->q,
                  item->k);
}

/* An array without numbers may hide its depth: any form that fits the brackets will do, and there
 * is nothing to look at later. */
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

/* Finds the form of a mask or bias whose numbers are to be looked at. *form is NO_FORM if there
 * are none. */
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
  if (!form_fits(k, t, meant, &at)) return refuse_form(k, t, field, meant, at);
  if (t->count > 0) *form = meant;
  return STATUS_OK;
}

static enum status check_mask(struct attention_check *k) {
  enum sight_form form;
  if (check_form(k, FIELD_MASK, &form)) return k->e->status;
  if (form == NO_FORM) return STATUS_OK;
  k->g->mask = attention_tensor(k, FIELD_MASK)->data;
  size_t next = 0;
  for (size_t i = 0; i < k->g->items && form == PER_ITEM; i++) {
    struct item *item = &k->g->item[i];
    item->mask_at = next;
    next += item->q * item->k;
  }
  return STATUS_OK;
}

/* --- what a bias hides --- */

enum { LOOK = 64 }; /* numbers at a time: the compiler makes vectors of a loop of fixed length */

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

/* `to` becomes what both masks let through; `from` may be `to`, or NULL: everything. */
static void hide(uint8_t *to, const uint8_t *from, const float *bias, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] = (from ? from[i] : 1) & (bias[i] != -INFINITY);
}

/* Can the mask of the request hold what the bias hides? It cannot tell heads apart, and one that
 * all items share cannot tell items apart. */
static bool mask_serves(const struct geometry *g, bool mask_shared, bool bias_shared) {
  return g->mask && !g->bias_per_head && (!mask_shared || bias_shared);
}

/* A bias of -inf hides the key: from here on the mask hides it, and the bias is 0 there. `shared`:
 * the bias has no level of items. */
static enum status mask_hidden(struct attention_check *k, const struct tensor *bias, bool shared) {
  struct geometry *g = k->g;
  float *number = bias->data;
  if (!bias->unjudged || !has_hidden(number, bias->count)) return STATUS_OK;
  const struct tensor *given = attention_tensor(k, FIELD_MASK);
  const bool mask_shared = !g->mask || given->depth == 2;
  const size_t grids = g->bias_per_head ? k->m->shape.heads : 1;
  const bool in_place = mask_serves(g, mask_shared, shared);
  uint8_t *made = in_place ? given->data : arena_alloc(k->a, bias->count, sizeof *made, k->e);
  if (!made) return k->e->status;
  /* A bias that all items share is looked at once, unless each item has a mask of its own. */
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

static enum status check_bias(struct attention_check *k) {
  enum sight_form form;
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

/* The bias comes last: what it hides is added to the mask. */
enum status attention_check_sight(struct attention_check *k) {
  if (check_lens(k) || check_mask(k) || check_bias(k)) return k->e->status;
  return STATUS_OK;
}
