/* attention_check: the fields held against each other, and the core's run made of them.
 *
 * Letters as in core/attention/geometry.h. What passes here the core computes without looking
 * again. */
#include "server/attention/attention_check.h"

#include "server/attention/attention_checking.h"

/* --- lists of one element per item --- */

/* Is a field of one list per item of this depth, with a list for each item? A text without numbers
 * has any depth that its brackets leave open: `[]` is no rows of one item as well as no items. */
static enum status check_depth(struct attention_check *k, enum attention_field field,
                               unsigned depth) {
  const struct tensor *t = attention_tensor(k, field);
  bool open = !t->shaped && t->count == 0 && t->depth < depth;
  if (t->depth != depth && !open)
    return error_at(k->e, attention_field_pointer(field),
                    "%s has %u dimensions, expected %u for queries with %u",
                    attention_field_name(field), t->depth, depth, attention_query_depth(k));
  if (k->unbatched && t->count == 0 && t->elements > 0)
    return attention_fail_at(k, field, 0, "each row must have at least one number");
  if (!k->unbatched && t->elements != k->g->items)
    return error_at(k->e, attention_field_pointer(field), "%s has %zu items, but queries has %zu",
                    attention_field_name(field), t->elements, k->g->items);
  return STATUS_OK;
}

/* --- rows --- */

/* Items without any row, which a shape may announce: they take memory, but no bytes of the body. */
enum { BARE_ITEMS_MAX = 512 };

static bool is_bare(const struct tensor *t) { return !t || (t->shaped && t->count == 0); }

/* Absent keys are the queries, absent values the keys: may they be that, and have the width? */
static enum status check_absent(struct attention_check *k) {
  const struct layer_shape *s = &k->m->shape;
  if (!attention_tensor(k, FIELD_KEYS) && k->m->cross)
    return error_at(k->e, "/keys",
                    "cross-attention requires \"keys\": the hidden states of the encoder");
  if (!attention_tensor(k, FIELD_KEYS) && s->key_size != s->query_size)
    return error_at(k->e, "/keys",
                    "this model requires \"keys\": a key has %zu numbers, a query has %zu",
                    s->key_size, s->query_size);
  if (!attention_tensor(k, FIELD_VALUES) && s->value_size != s->key_size)
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
static enum status make_items(struct attention_check *k, const struct tensor *queries,
                              const struct tensor *keys, const struct tensor *values) {
  struct geometry *g = k->g;
  g->item = arena_alloc(k->a, g->items, sizeof *g->item, k->e);
  if (!g->item) return k->e->status;
  for (size_t i = 0; i < g->items; i++) {
    struct item *item = &g->item[i];
    *item =
        (struct item){.q = attention_rows_of(k, queries, i), .k = attention_rows_of(k, keys, i)};
    if (attention_rows_of(k, values, i) != item->k)
      return attention_fail_at(k, FIELD_VALUES, i, "%zu values for %zu keys",
                               attention_rows_of(k, values, i), item->k);
    if (!are_countable(item))
      return error_limit(k->e, "max_pairs", "item %zu has more than %d positions", i, INT32_MAX);
    item->q_row = g->q_rows;
    item->k_row = g->k_rows;
    g->q_rows += item->q; /* rows that lie in memory: no sum of them overflows */
    g->k_rows += item->k;
  }
  return STATUS_OK;
}

/* The inputs are not read again once the layer has projected them. */
static void spare_rows(struct attention_check *k, const struct tensor *t) {
  if (t) spare_add(&k->c->spare, t->data, t->count * sizeof(float));
}

static enum status check_rows(struct attention_check *k) {
  const struct tensor *queries = attention_tensor(k, FIELD_QUERIES);
  if (!queries) return error_at(k->e, "/queries", "the field \"queries\" is missing");
  k->unbatched = attention_is_unbatched(queries);
  k->g->items = k->unbatched ? 1 : queries->elements;
  if (k->g->items > k->limits->max_items)
    return error_limit(k->e, "max_items", "%zu items exceed the limit of %zu", k->g->items,
                       k->limits->max_items);

  const struct tensor *keys = attention_tensor(k, FIELD_KEYS),
                      *values = attention_tensor(k, FIELD_VALUES);
  if (k->g->items > BARE_ITEMS_MAX && is_bare(queries) && is_bare(keys))
    return error_limit(k->e, "max_items",
                       "the shape has %zu empty items; without data, the limit is %d", k->g->items,
                       BARE_ITEMS_MAX);
  const unsigned depth = attention_query_depth(k);
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
  k->out->unbatched = k->unbatched;
  k->out->rectangular = attention_items_alike(k->g);
  return STATUS_OK;
}

/* An empty batch has no items, but `[0, 5, 4]` gives them 5 rows: so does the answer. */
static enum status make_none(struct attention_check *k) {
  static const struct tensor nothing;
  if (k->g->items > 0) return STATUS_OK;
  const struct tensor *queries = attention_tensor(k, FIELD_QUERIES),
                      *keys = attention_tensor(k, FIELD_KEYS),
                      *segments = attention_tensor(k, FIELD_SEGMENTS);
  if (!keys) keys = queries;
  if (!segments) segments = &nothing;
  k->out->none = (struct item){.q = queries->common.dim[0],
                               .k = keys->common.dim[0],
                               .segments = segments->common.dim[0]};
  if (are_countable(&k->out->none) && k->out->none.segments <= INT32_MAX) return STATUS_OK;
  return error_limit(k->e, "max_pairs", "an item has more than %d positions", INT32_MAX);
}

/* --- what goes together --- */

static enum status check_combinations(struct attention_check *k) {
  const struct call *c = k->c;
  const bool segments = attention_tensor(k, FIELD_SEGMENTS) != NULL;
  const bool soft = c->select == SELECT_SOFT, sigmoid = k->m->shape.sigmoid;
  /* Which field to change, and why; the first row that applies is reported. */
  const struct {
    bool met;
    enum attention_field field;
    const char *why;
  } refused[] = {
      {segments && !soft, FIELD_SELECT, "segments require \"soft\", because they are averaged"},
      {c->uniform_rows && !soft, FIELD_EMPTY_ROWS,
       "\"uniform\" requires \"select\": \"soft\", because a query without visible keys has no key "
       "to select"},
      {c->uniform_rows && segments, FIELD_EMPTY_ROWS,
       "\"uniform\" excludes \"segments\", because a query without visible keys has no segment to "
       "weigh"},
      {sigmoid && c->select == SELECT_SAMPLE, FIELD_SELECT,
       "this model has sigmoid weights, which are no distribution to sample from"},
      {sigmoid && segments, FIELD_SEGMENTS,
       "this model has sigmoid weights: segments require weights that sum to one"},
  };
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
    if (refused[i].met)
      return error_at(k->e, attention_field_pointer(refused[i].field), "%s", refused[i].why);
  return STATUS_OK;
}

/* --- segments --- */

static enum status refuse_segment(struct attention_check *k, size_t item, size_t segment,
                                  int32_t length) {
  char pointer[ERROR_POINTER_SIZE];
  if (k->unbatched)
    snprintf(pointer, sizeof pointer, "/segments/%zu", segment);
  else
    snprintf(pointer, sizeof pointer, "/segments/%zu/%zu", item, segment);
  return error_at(k->e, pointer, "a segment length must not be negative: %d", (int)length);
}

/* The lengths of one item's segments become their ends. */
static enum status sum_segments(struct attention_check *k, size_t index, const int32_t *length,
                                int32_t *end) {
  const struct item *item = &k->g->item[index];
  int64_t sum = 0; /* of numbers that lie in memory: it does not overflow */
  for (size_t s = 0; s < item->segments; s++) {
    const size_t at = item->segments_at + s;
    if (length[at] < 0) return refuse_segment(k, index, s, length[at]);
    sum += length[at];
    end[at] = (int32_t)sum; /* beyond 32 bits the sum is refused below */
  }
  if (sum != (int64_t)item->k)
    return attention_fail_at(k, FIELD_SEGMENTS, index,
                             "the segments have %lld keys in total, but the item has %zu",
                             (long long)sum, item->k);
  return STATUS_OK;
}

static enum status check_segments(struct attention_check *k) {
  const struct tensor *t = attention_tensor(k, FIELD_SEGMENTS);
  if (!t) return STATUS_OK;
  if (check_depth(k, FIELD_SEGMENTS, attention_query_depth(k) - 1)) return k->e->status;
  int32_t *end = arena_alloc(k->a, t->count, sizeof *end, k->e);
  if (!end) return k->e->status;
  size_t next = 0;
  for (size_t i = 0; i < k->g->items; i++) {
    struct item *item = &k->g->item[i];
    item->segments = attention_rows_of(k, t, i);
    item->segments_at = next;
    next += item->segments;
    if (sum_segments(k, i, t->data, end)) return k->e->status;
  }
  k->g->segment_end = end;
  return STATUS_OK;
}

/* --- gradients --- */

static enum status check_gradients(struct attention_check *k) {
  const struct tensor *t = attention_tensor(k, FIELD_GRADIENTS);
  if (!t) return STATUS_OK;
  if (check_depth(k, FIELD_GRADIENTS, attention_query_depth(k))) return k->e->status;
  for (size_t i = 0; i < k->g->items; i++)
    if (attention_rows_of(k, t, i) != k->g->item[i].q)
      return attention_fail_at(k, FIELD_GRADIENTS, i, "%zu gradients for %zu queries",
                               attention_rows_of(k, t, i), k->g->item[i].q);
  /* Without rows there is no array, but not NULL asks for the measures that need gradients. */
  k->c->gradients = t->data ? t->data : arena_alloc(k->a, 0, sizeof(float), k->e);
  return k->e->status;
}

/* --- the rest, and the whole --- */

static enum status check_offset(struct attention_check *k) {
  const struct tensor *t = attention_tensor(k, FIELD_CAUSAL_OFFSET);
  const struct attention_values *v = k->reading->values;
  if (!t && !v->offset_end) return STATUS_OK;
  unsigned deepest = k->unbatched ? 0 : 1;
  if (t && t->depth > deepest)
    return error_at(k->e, "/causal_offset", "a single item requires one offset, not an array");
  if (t && t->depth == 1 && t->elements != k->g->items)
    return error_at(k->e, "/causal_offset", "%zu offsets for %zu items", t->elements, k->g->items);
  for (size_t i = 0; i < k->g->items; i++) {
    struct item *item = &k->g->item[i];
    const int32_t *given = t ? t->data : NULL;
    if (!given)
      item->offset = (int64_t)item->k - (int64_t)item->q;
    else
      item->offset = given[t->depth == 1 ? i : 0];
  }
  return STATUS_OK;
}

static enum status check_head_mask(struct attention_check *k) {
  const struct tensor *t = attention_tensor(k, FIELD_HEAD_MASK);
  if (!t) return STATUS_OK;
  if (t->count != k->m->shape.heads)
    return error_at(k->e, "/head_mask",
                    "the array has %zu elements, expected %zu (the model's heads)", t->count,
                    k->m->shape.heads);
  k->c->head_mask = t->data;
  return STATUS_OK;
}

/* Its query is to be there; its call then wants the trace. */
static enum status check_trace(struct attention_check *k) {
  const struct attention_values *v = k->reading->values;
  if (v->trace.asked)
    k->c->trace = attention_traced_find(&v->trace, k->g, k->m->shape.heads, k->a, k->e);
  return k->e->status;
}

enum status attention_check(const struct contract_reading *reading, const struct model *m,
                            const struct body_terms *terms, const struct body_limits *limits,
                            struct arena *a, struct attention_request *out, struct error *e) {
  const struct attention_values *v = reading->values;
  struct geometry *g = &out->asked.geometry;
  struct call *c = &out->asked.call;
  g->causal = v->causal;
  g->window_left = v->window[0];
  g->window_right = v->window[1];
  c->uniform_rows = v->uniform_rows;
  c->select = v->select;
  c->seed = v->seed;
  c->want = v->want;
  c->want_pointers = v->want_pointers;
  c->want_measures = terms->ask == ASK_HEADS;
  out->base64 = v->base64;
  struct attention_check k = {.reading = reading,
                              .m = m,
                              .terms = terms,
                              .limits = limits,
                              .a = a,
                              .out = out,
                              .g = g,
                              .c = c,
                              .e = e};
  if (check_rows(&k) || check_combinations(&k) || check_segments(&k) || make_none(&k) ||
      check_trace(&k) || attention_check_limits(&k) || attention_check_sight(&k) ||
      check_offset(&k) || check_head_mask(&k) || check_gradients(&k))
    return e->status;
  return STATUS_OK;
}
