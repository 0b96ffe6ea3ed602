/* attention_ref_item: the twin's work on one item: its memory, and the answer that is asked for. */
#include <string.h>

#include "core/base/arena.h"
#include "core/reference/attention_ref_parts.h"

/* --- memory --- */

static double *place_numbers(struct arena *a, size_t count, struct error *e) {
  return arena_alloc(a, count, sizeof(double), e);
}

static void place_rows(struct ref_rows *rows, size_t side, struct arena *a, struct error *e) {
  rows->projected = place_numbers(a, rows->count * rows->heads * rows->size, e);
  rows->sides = place_numbers(a, rows->count * rows->heads * side, e);
  rows->head_needed = arena_alloc(a, rows->heads, 1, e);
  rows->row_needed = arena_alloc(a, rows->count, 1, e);
}

static enum status place_work(struct ref_work *r, struct arena *a, struct error *e) {
  const struct layer_shape *s = r->s;
  const struct ref_item *item = r->item;
  const size_t side = ref_side_size(s);
  r->rows[ROLE_QUERY] = (struct ref_rows){.count = item->q,
                                          .in = s->query_size,
                                          .heads = s->heads,
                                          .size = s->head_size,
                                          .input = item->queries};
  r->rows[ROLE_KEY] = (struct ref_rows){.count = item->k,
                                        .in = s->key_size,
                                        .heads = s->kv_heads,
                                        .size = s->key_head_size,
                                        .input = item->keys};
  r->rows[ROLE_VALUE] = (struct ref_rows){.count = item->k,
                                          .in = s->value_size,
                                          .heads = s->kv_heads,
                                          .size = s->value_head_size,
                                          .input = item->values};
  for (enum role role = ROLE_QUERY; role <= ROLE_VALUE; role++)
    place_rows(&r->rows[role], role == ROLE_VALUE ? 0 : side, a, e);
  r->scores = place_numbers(a, item->k, e);
  r->weights = place_numbers(a, item->k, e);
  r->segment_scores = place_numbers(a, item->segments, e);
  r->segment_weights = place_numbers(a, item->segments, e);
  r->segment_key = place_numbers(a, s->key_head_size, e);
  r->segment_side = place_numbers(a, side, e);
  r->context = place_numbers(a, s->heads * s->value_head_size, e);
  return e->status;
}

/* --- the answer --- */

/* Heads that are not needed weigh nothing and point nowhere. */
static void clear_answer(const struct ref_work *r) {
  const struct ref_answer *answer = r->answer;
  const size_t rows = r->s->heads * r->item->q;
  if (answer->weights) memset(answer->weights, 0, rows * r->item->k * sizeof *answer->weights);
  if (answer->segment_weights)
    memset(answer->segment_weights, 0, rows * r->item->segments * sizeof *answer->segment_weights);
  for (size_t i = 0; answer->pointers && i < rows; i++) answer->pointers[i] = -1;
}

void ref_write_weights(const struct ref_work *r, size_t head, size_t i) {
  const struct ref_answer *answer = r->answer;
  const size_t row = head * r->item->q + i, k = r->item->k, segments = r->item->segments;
  if (answer->weights) memcpy(answer->weights + row * k, r->weights, k * sizeof *r->weights);
  if (answer->segment_weights)
    memcpy(answer->segment_weights + row * segments, r->segment_weights,
           segments * sizeof *r->segment_weights);
  if (answer->pointers) answer->pointers[row] = r->pointer;
}

void ref_write_context(const struct ref_work *r, size_t i) {
  const size_t wide = r->s->heads * r->s->value_head_size;
  if (!r->answer->contexts) return;
  memcpy(r->answer->contexts + i * wide, r->context, wide * sizeof *r->context);
}

enum status attention_ref_item(const struct layer_shape *s,
                               const struct layer_matrix matrix[ROLE_COUNT],
                               const struct ref_item *item, const struct ref_answer *answer,
                               struct error *e) {
  struct ref_work r = {.s = s, .matrix = matrix, .item = item, .answer = answer};
  struct arena room;
  arena_init(&room, NULL);
  if (place_work(&r, &room, e) == STATUS_OK) {
    clear_answer(&r);
    ref_find_needed(&r);
    ref_attend(&r);
    if (r.beyond)
      error_set(e, STATUS_NOT_FINITE, "item %zu exceeds the float32 range", item->number);
  }
  arena_free(&room);
  return e->status;
}
