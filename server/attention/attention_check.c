/* attention_check: the fields held against each other, and the core's call made of them.
 *
 * Letters as in core/attention/call.h. What passes here the core computes without looking again. */
#include "server/attention/attention_parts.h"

/* --- rows --- */

/* Items without any row of which a shape may tell: they take memory, and no bytes of the body. */
enum { BARE_ITEMS_MAX = 512 };

static bool is_bare(const struct tensor *t) { return !t || (t->shaped && t->count == 0); }

/* Which fields stand in for absent keys and values, and whether they have the width for it. */
static enum status check_absent(struct check *k) {
  const struct layer_shape *s = &k->m->shape;
  if (!check_tensor(k, FIELD_KEYS) && s->key_size != s->query_size)
    return error_at(k->e, "/keys",
                    "this model requires \"keys\": a key has %zu numbers, a query has %zu",
                    s->key_size, s->query_size);
  if (!check_tensor(k, FIELD_VALUES) && s->value_size != s->key_size)
    return error_at(k->e, "/values",
                    "this model requires \"values\": a value has %zu numbers, a key has %zu",
                    s->value_size, s->key_size);
  return STATUS_OK;
}

/* The core counts the rows of an item in 32 bits. */
static bool are_countable(const struct item *item) {
  return item->q <= INT32_MAX && item->k <= INT32_MAX;
}

/* The row counts of all items, and where the rows begin. */
static enum status make_items(struct check *k, const struct tensor *queries,
                              const struct tensor *keys, const struct tensor *values) {
  struct call *c = k->c;
  c->item = arena_alloc(k->a, c->items, sizeof *c->item, k->e);
  if (!c->item) return k->e->status;
  for (size_t i = 0; i < c->items; i++) {
    struct item *item = &c->item[i];
    *item = (struct item){.q = check_rows_of(k, queries, i), .k = check_rows_of(k, keys, i)};
    if (check_rows_of(k, values, i) != item->k)
      return check_fail_at(k, FIELD_VALUES, i, "%zu values for %zu keys",
                           check_rows_of(k, values, i), item->k);
    if (!are_countable(item))
      return error_limit(k->e, "max_pairs", "item %zu has more than %d rows", i, INT32_MAX);
    item->q_row = c->q_rows;
    item->k_row = c->k_rows;
    c->q_rows += item->q; /* rows that lie in memory: no sum of them overflows */
    c->k_rows += item->k;
  }
  return STATUS_OK;
}

/* Nobody reads the inputs once the layer has projected them. */
static void spare_rows(struct check *k, const struct tensor *t) {
  if (t) spare_add(&k->c->spare, t->data, t->count * sizeof(float));
}

static enum status check_rows(struct check *k, struct attention_request *out) {
  const struct tensor *queries = check_tensor(k, FIELD_QUERIES);
  if (!queries) return error_at(k->e, "/queries", "the field \"queries\" is missing");
  k->unbatched = out->unbatched = queries->depth == 2 && (queries->count > 0 || queries->shaped);
  k->c->items = k->unbatched ? 1 : queries->elements;
  if (k->c->items > k->limits->max_items)
    return error_limit(k->e, "max_items", "%zu items; %zu are allowed", k->c->items,
                       k->limits->max_items);

  const struct tensor *keys = check_tensor(k, FIELD_KEYS), *values = check_tensor(k, FIELD_VALUES);
  if (k->c->items > BARE_ITEMS_MAX && is_bare(queries) && is_bare(keys))
    return error_limit(k->e, "max_items",
                       "a shape of %zu items without rows; %d are allowed where the body does not "
                       "carry them",
                       k->c->items, BARE_ITEMS_MAX);
  const unsigned depth = check_query_depth(k);
  if (check_absent(k)) return k->e->status;
  if (keys && check_depth(k, FIELD_KEYS, depth)) return k->e->status;
  if (values && check_depth(k, FIELD_VALUES, depth)) return k->e->status;
  spare_rows(k, queries);
  spare_rows(k, keys);
  spare_rows(k, values);
  if (!keys) keys = queries;
  if (!values) values = keys;
  k->c->queries = queries->data;
  k->c->keys = keys->data;
  k->c->values = values->data;
  if (make_items(k, queries, keys, values)) return k->e->status;
  out->rectangular = check_items_alike(k);
  return STATUS_OK;
}

/* An empty batch has no items, but `[0, 5, 4]` says that they have 5 rows: so does the answer. */
static enum status make_none(struct check *k, struct attention_request *out) {
  static const struct tensor nothing;
  if (k->c->items > 0) return STATUS_OK;
  const struct tensor *queries = check_tensor(k, FIELD_QUERIES),
                      *keys = check_tensor(k, FIELD_KEYS),
                      *segments = check_tensor(k, FIELD_SEGMENTS);
  if (!keys) keys = queries;
  if (!segments) segments = &nothing;
  out->none = (struct item){.q = queries->common.dim[0],
                            .k = keys->common.dim[0],
                            .segments = segments->common.dim[0]};
  if (are_countable(&out->none) && out->none.segments <= INT32_MAX) return STATUS_OK;
  return error_limit(k->e, "max_pairs", "an item has more than %d rows", INT32_MAX);
}

/* --- the rest, and the whole --- */

static enum status check_offset(struct check *k) {
  const struct tensor *t = check_tensor(k, FIELD_CAUSAL_OFFSET);
  if (!t && !k->f->offset_end) return STATUS_OK;
  unsigned deepest = k->unbatched ? 0 : 1;
  if (t && t->depth > deepest)
    return error_at(k->e, "/causal_offset", "one item alone takes one offset, not an array");
  if (t && t->depth == 1 && t->elements != k->c->items)
    return error_at(k->e, "/causal_offset", "%zu offsets for %zu items", t->elements, k->c->items);
  for (size_t i = 0; i < k->c->items; i++) {
    struct item *item = &k->c->item[i];
    const int32_t *given = t ? t->data : NULL;
    if (!given)
      item->offset = (int64_t)item->k - (int64_t)item->q;
    else
      item->offset = given[t->depth == 1 ? i : 0];
  }
  return STATUS_OK;
}

static enum status check_head_mask(struct check *k) {
  const struct tensor *t = check_tensor(k, FIELD_HEAD_MASK);
  if (!t) return STATUS_OK;
  if (t->count != k->m->shape.heads)
    return error_at(k->e, "/head_mask", "%zu numbers for %zu heads", t->count, k->m->shape.heads);
  k->c->head_mask = t->data;
  return STATUS_OK;
}

enum status attention_check(const struct fields *f, const struct model *m,
                            const struct body_terms *head, const struct body_limits *limits,
                            struct arena *a, struct attention_request *out, struct error *e) {
  struct call *c = &out->call;
  c->causal = f->causal;
  c->window_left = f->window[0];
  c->window_right = f->window[1];
  c->uniform_rows = f->uniform_rows;
  c->select = f->select;
  c->seed = f->seed;
  c->want = f->want;
  c->want_pointers = f->want_pointers;
  c->want_measures = head->ask == ASK_HEADS;
  struct check k = {.f = f,
                    .m = m,
                    .head = head,
                    .out = out,
                    .v2 = &out->v2,
                    .limits = limits,
                    .a = a,
                    .c = c,
                    .e = e};
  if (check_rows(&k, out) || check_combinations(&k) || check_segments(&k) || make_none(&k, out) ||
      check_limits(&k) || check_lens(&k) || check_mask(&k) || check_bias(&k) || check_offset(&k) ||
      check_head_mask(&k) || check_gradients(&k))
    return e->status;
  out->base64 = f->base64;
  return STATUS_OK;
}
