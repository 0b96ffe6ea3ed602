/* attention_kinds: the fields that choose a kind of attention: select, empty_rows, segments; and
 * the gradients of the measures. */
#include <stdio.h>

#include "server/attention/attention_parts.h"

/* --- what goes together --- */

enum status check_combinations(struct check *k) {
  const struct call *c = k->c;
  const bool segments = check_tensor(k, FIELD_SEGMENTS) != NULL;
  const bool soft = c->select == SELECT_SOFT, sigmoid = k->m->shape.sigmoid;
  /* Which field to change, and why; the first row that is met is told. */
  const struct {
    bool met;
    enum attention_field field;
    const char *why;
  } refused[] = {
      {segments && !soft, FIELD_SELECT, "segments are averaged: only \"soft\" goes with them"},
      {c->uniform_rows && !soft, FIELD_EMPTY_ROWS,
       "\"uniform\" goes with select \"soft\" only: where nothing is seen there is no key to "
       "select"},
      {c->uniform_rows && segments, FIELD_EMPTY_ROWS,
       "\"uniform\" does not go with segments: where nothing is seen there is no segment to weigh"},
      {sigmoid && c->select == SELECT_SAMPLE, FIELD_SELECT,
       "this model weighs each key on its own (sigmoid): that is no distribution to draw from"},
      {sigmoid && segments, FIELD_SEGMENTS,
       "this model weighs each key on its own (sigmoid): segments need weights that sum to one"},
  };
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
    if (refused[i].met)
      return error_at(k->e, field_pointer(refused[i].field), "%s", refused[i].why);
  return STATUS_OK;
}

/* --- segments --- */

static enum status refuse_segment(struct check *k, size_t item, size_t segment, int32_t length) {
  char pointer[ERROR_POINTER_SIZE];
  if (k->unbatched)
    snprintf(pointer, sizeof pointer, "/segments/%zu", segment);
  else
    snprintf(pointer, sizeof pointer, "/segments/%zu/%zu", item, segment);
  return error_at(k->e, pointer, "a segment of %d keys", (int)length);
}

/* The lengths of one item's segments become their ends. */
static enum status sum_segments(struct check *k, size_t index, const int32_t *length,
                                int32_t *end) {
  const struct item *item = &k->c->item[index];
  int64_t sum = 0; /* of numbers that lie in memory: it does not overflow */
  for (size_t s = 0; s < item->segments; s++) {
    const size_t at = item->segments_at + s;
    if (length[at] < 0) return refuse_segment(k, index, s, length[at]);
    sum += length[at];
    end[at] = (int32_t)sum; /* beyond 32 bits the sum is refused below */
  }
  if (sum != (int64_t)item->k)
    return check_fail_at(k, FIELD_SEGMENTS, index, "segments of %lld keys together; there are %zu",
                         (long long)sum, item->k);
  return STATUS_OK;
}

enum status check_segments(struct check *k) {
  const struct tensor *t = check_tensor(k, FIELD_SEGMENTS);
  if (!t) return STATUS_OK;
  if (check_depth(k, FIELD_SEGMENTS, check_query_depth(k) - 1)) return k->e->status;
  int32_t *end = arena_alloc(k->a, t->count, sizeof *end, k->e);
  if (!end) return k->e->status;
  size_t next = 0;
  for (size_t i = 0; i < k->c->items; i++) {
    struct item *item = &k->c->item[i];
    item->segments = check_rows_of(k, t, i);
    item->segments_at = next;
    next += item->segments;
    if (sum_segments(k, i, t->data, end)) return k->e->status;
  }
  k->c->segment_end = end;
  return STATUS_OK;
}

/* --- gradients --- */

enum status check_gradients(struct check *k) {
  const struct tensor *t = check_tensor(k, FIELD_GRADIENTS);
  if (!t) return STATUS_OK;
  if (check_depth(k, FIELD_GRADIENTS, check_query_depth(k))) return k->e->status;
  for (size_t i = 0; i < k->c->items; i++)
    if (check_rows_of(k, t, i) != k->c->item[i].q)
      return check_fail_at(k, FIELD_GRADIENTS, i, "%zu gradients for %zu queries",
                           check_rows_of(k, t, i), k->c->item[i].q);
  /* Without rows there is no array, but the measures that need gradients are asked for. */
  k->c->gradients = t->data ? t->data : arena_alloc(k->a, 0, sizeof(float), k->e);
  return k->e->status;
}
