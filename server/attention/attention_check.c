/* attention_check: the fields checked against each other, and the run of the core made from them.
 *
 * Letters as in core/attention/geometry.h. The core computes a checked request without further
 * checks. */
#include "core/base/size.h"
#include "server/attention/attention_answer.h"
#include "server/attention/attention_checking.h"

/* Checks that a field with one list per item has this depth, and a list for each item. A text
 * without numbers has any depth that its brackets leave open: `[]` may be one item without rows, or
 * no items. */
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

/* Items without rows, which a shape may announce, take memory but no bytes of the body. */
enum { BARE_ITEMS_MAX = 512 };

static bool is_bare(const struct tensor *t) { return !t || (t->shaped && t->count == 0); }

/* Missing keys are the queries, and missing values are the keys, if the model allows it and they
 * have the width. */
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

/* Sets how many rows each item has, and where they begin. The core counts an item's rows in 32
 * bits. */
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
    if (item->q > INT32_MAX || item->k > INT32_MAX)
      return error_limit(k->e, "max_pairs", "item %zu has more than %d positions", i, INT32_MAX);
    item->q_row = g->q_rows;
    item->k_row = g->k_rows;
    g->q_rows += item->q; /* the rows are in memory, so that no sum of them overflows */
    g->k_rows += item->k;
  }
  return STATUS_OK;
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
  /* The inputs are not read again after the layer has projected them. */
  spare_add(&k->c->spare, queries->data, queries->count * sizeof(float));
  if (keys) spare_add(&k->c->spare, keys->data, keys->count * sizeof(float));
  if (values) spare_add(&k->c->spare, values->data, values->count * sizeof(float));
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

/* An empty batch of shape `[0, 5, 4]` has no items, but the response has 5 rows for each of them.
 */
static enum status make_none(struct attention_check *k) {
  if (k->g->items > 0) return STATUS_OK;
  const struct tensor *queries = attention_tensor(k, FIELD_QUERIES),
                      *keys = attention_tensor(k, FIELD_KEYS),
                      *segments = attention_tensor(k, FIELD_SEGMENTS);
  struct item *none = &k->out->none;
  *none = (struct item){.q = queries->common.dim[0],
                        .k = (keys ? keys : queries)->common.dim[0],
                        .segments = segments ? segments->common.dim[0] : 0};
  if (none->q <= INT32_MAX && none->k <= INT32_MAX && none->segments <= INT32_MAX) return STATUS_OK;
  return error_limit(k->e, "max_pairs", "an item has more than %d positions", INT32_MAX);
}

/* --- other fields --- */

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

/* Turns the lengths of each item's segments into their ends. */
static enum status check_segments(struct attention_check *k) {
  const struct tensor *t = attention_tensor(k, FIELD_SEGMENTS);
  if (!t) return STATUS_OK;
  if (check_depth(k, FIELD_SEGMENTS, attention_query_depth(k) - 1)) return k->e->status;
  int32_t *end = arena_alloc(k->a, t->count, sizeof *end, k->e);
  if (!end) return k->e->status;
  const int32_t *length = t->data;
  for (size_t i = 0, next = 0; i < k->g->items; i++) {
    struct item *item = &k->g->item[i];
    int64_t sum = 0; /* the lengths are in memory, so that it does not overflow */
    item->segments = attention_rows_of(k, t, i);
    item->segments_at = next;
    for (size_t s = 0; s < item->segments; s++, next++) {
      if (length[next] < 0) {
        char pointer[ERROR_POINTER_SIZE];
        if (k->unbatched)
          snprintf(pointer, sizeof pointer, "/segments/%zu", s);
        else
          snprintf(pointer, sizeof pointer, "/segments/%zu/%zu", i, s);
        return error_at(k->e, pointer, "a segment length must not be negative: %d",
                        (int)length[next]);
      }
      sum += length[next];
      end[next] = (int32_t)sum; /* a sum beyond 32 bits is rejected below */
    }
    if (sum != (int64_t)item->k)
      return attention_fail_at(k, FIELD_SEGMENTS, i,
                               "the segments have %lld keys in total, but the item has %zu",
                               (long long)sum, item->k);
  }
  k->g->segment_end = end;
  return STATUS_OK;
}

/* Checks the mask of the heads, and the gradients for their measures. */
static enum status check_heads(struct attention_check *k) {
  const struct tensor *t = attention_tensor(k, FIELD_HEAD_MASK);
  if (t && t->count != k->m->shape.heads)
    return error_at(k->e, "/head_mask",
                    "the array has %zu elements, expected %zu (the model's heads)", t->count,
                    k->m->shape.heads);
  if (t) k->c->head_mask = t->data;
  t = attention_tensor(k, FIELD_GRADIENTS);
  if (!t) return STATUS_OK;
  if (check_depth(k, FIELD_GRADIENTS, attention_query_depth(k))) return k->e->status;
  for (size_t i = 0; i < k->g->items; i++)
    if (attention_rows_of(k, t, i) != k->g->item[i].q)
      return attention_fail_at(k, FIELD_GRADIENTS, i, "%zu gradients for %zu queries",
                               attention_rows_of(k, t, i), k->g->item[i].q);
  /* Any pointer except NULL requests the measures that need gradients, even without rows. */
  k->c->gradients = t->data ? t->data : arena_alloc(k->a, 0, sizeof(float), k->e);
  return k->e->status;
}

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
    item->offset = given ? given[t->depth == 1 ? i : 0] : (int64_t)item->k - (int64_t)item->q;
  }
  return STATUS_OK;
}

/* --- limits --- */

/* Counts the pairs, which are computed for every head. Measures compare heads as well, two by two,
 * at every pair; a head paired with itself counts for its own work. */
static enum status check_work(struct attention_check *k) {
  const size_t heads = k->m->shape.heads;
  const bool compared = k->c->want_measures && !k->m->shape.sigmoid;
  const size_t times = compared ? heads * (heads + 1) / 2 : heads; /* at most some thousand heads */
  size_t most = 0, work = 0;
  bool counted = true;
  for (size_t i = 0; i < k->g->items && counted; i++) {
    /* Segments are work even without keys: the larger number of each item counts. */
    const struct item *item = &k->g->item[i];
    size_t n;
    counted = size_mul(item->q, size_max(item->k, item->segments), &n) && size_add(most, n, &most);
  }
  counted = counted && size_mul(most, times, &work);
  if (counted && work <= k->limits->max_pairs) return STATUS_OK;
  return error_limit(k->e, "max_pairs",
                     "the request has %s%zu query-key%s pairs, counted for each of %zu %s; the "
                     "limit is %zu: send fewer or shorter items",
                     counted ? "" : "more than ", counted ? work : k->limits->max_pairs,
                     k->g->segment_end ? " or query-segment" : "", times,
                     compared ? "pairs of heads, which are compared" : "heads",
                     k->limits->max_pairs);
}

/* Checks the work and the bytes of the response before anything is allocated for them. */
static enum status check_limits(struct attention_check *k) {
  if (check_work(k)) return k->e->status;
  const size_t bytes =
      attention_answer_count(body_terms_answer(k->terms, attention_request_has_binary(k->out)),
                             k->m, k->out);
  if (bytes <= k->limits->max_answer_bytes) return STATUS_OK;
  return answer_refuse_size(bytes, k->limits->max_answer_bytes, k->e);
}

/* --- the whole check --- */

enum status attention_check(const struct contract_reading *reading, const struct model *m,
                            const struct body_terms *terms, const struct body_limits *limits,
                            struct arena *a, struct attention_request *out, struct error *e) {
  const struct attention_values *v = reading->values;
  struct geometry *g = &out->asked.geometry;
  struct call *c = &out->asked.call;
  g->causal = v->causal;
  g->window_left = v->window.left;
  g->window_right = v->window.right;
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
  if (check_rows(&k) || check_combinations(&k) || check_segments(&k) || make_none(&k))
    return e->status;
  if (v->trace.asked && !(c->trace = attention_traced_find(&v->trace, g, m->shape.heads, a, e)))
    return e->status;
  if (check_limits(&k) || attention_check_sight(&k) || check_offset(&k)) return e->status;
  return check_heads(&k);
}
