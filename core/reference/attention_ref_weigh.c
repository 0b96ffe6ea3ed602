/* attention_ref_weigh: what may become of weights besides softmax: two levels, and chosen keys. */
#include <math.h>
#include <string.h>

#include "core/reference/attention_ref_parts.h"

/* --- two levels --- */

/* The key of a segment, the mean of its keys by their weights within it, against the query. */
static double compare_segment(struct ref_work *r, size_t head, size_t i, size_t from, size_t to) {
  const size_t size = r->s->key_head_size, key_head = ref_key_head(r->s, head);
  memset(r->segment_key, 0, size * sizeof *r->segment_key);
  for (size_t j = from; j < to; j++)
    if (r->weights[j] != 0) /* a hidden key is not touched */
      ref_add(r->segment_key, r->weights[j], ref_projected(r, ROLE_KEY, j, key_head), size);
  ref_make_side(r, ROLE_KEY, r->segment_key, r->segment_side);
  const double score = ref_score(r, ref_side(r, ROLE_QUERY, i, head), r->segment_side);
  ref_check(r, &score, 1);
  return score;
}

/* Softmax within each segment, then over the segments' mean keys: the product is a key's weight. */
void ref_weigh_segments(struct ref_work *r, size_t head, size_t i) {
  const int32_t *end = r->item->segment_end;
  const size_t segments = r->item->segments;
  for (size_t s = 0, from = 0; s < segments; from = (size_t)end[s++]) {
    const size_t to = (size_t)end[s];
    const bool seen = ref_greatest(r->scores + from, to - from) >= 0;
    ref_softmax(r->scores + from, to - from, r->weights + from);
    r->segment_scores[s] = seen ? compare_segment(r, head, i, from, to) : -INFINITY;
  }
  ref_softmax(r->segment_scores, segments, r->segment_weights);
  for (size_t s = 0, j = 0; s < segments; s++)
    for (; j < (size_t)end[s]; j++) r->weights[j] *= r->segment_weights[s];
}

/* --- chosen keys --- */

static int32_t draw_key(const struct ref_work *r, size_t head, size_t i) {
  const uint32_t counter[4] = {(uint32_t)r->item->number, (uint32_t)head, (uint32_t)i, 0};
  return ref_draw(r->weights, r->item->k, ref_random(r->item->seed, counter));
}

void ref_choose(struct ref_work *r, size_t head, size_t i) {
  const size_t k = r->item->k;
  const int32_t first = ref_greatest(r->scores, k);
  const enum select select = r->item->select;
  r->pointer = first;
  if (first < 0) return; /* nothing is seen */
  if (select == SELECT_SAMPLE)
    r->pointer = draw_key(r, head, i);
  else if (r->item->segment_end)
    r->pointer = ref_greatest(r->weights, k);
  if (select == SELECT_SOFT) return;
  if (r->answer->chosen) r->pointer = r->answer->chosen[head * r->item->q + i];
  memset(r->weights, 0, k * sizeof *r->weights);
  r->weights[r->pointer] = 1;
}
