/* layer_prepare: what a call needs of a layer: which heads, how much memory, how much work. */
#include <string.h>

#include "core/attention/layer_parts.h"
#include "core/run/size.h"

/* --- the work --- */

/* Of coming to an item in every phase: a fifth of a microsecond. */
static const double visit_work = 20000;

/* Of one query and one key in one head: the score, the value and the softmax, which weighs as much
 * as some forty operations whatever the head size, as a tanh does for each number. Scores count
 * twice where a second pass makes them again. */
static double pair_work(const struct layer *l, const struct call *c) {
  const double compared = (double)l->compare_size, value = 2.0 * (double)l->shape.value_head_size;
  double work = (l->vector ? 34.0 : 2.0) * compared + 40.0;
  if (c->segment_end) work += 2.0 * compared; /* the mean key */
  if (c->select == SELECT_HARD) return work;
  const bool kept = l->vector && c->want == WEIGHTS_PER_HEAD; /* only additive scores are */
  const bool again = c->segment_end
                         ? c->want != WEIGHTS_NONE || c->want_pointers || c->want_measures
                         : (c->want != WEIGHTS_NONE && !kept) || c->select == SELECT_SAMPLE;
  return again ? 2.0 * work + value : work + value;
}

enum { ANGLE_WORK = 300 }; /* operations, about, for a sine and its cosine */

double rows_work(const struct layer *l, const struct call *c, unsigned role, size_t rows) {
  const struct needed *needed = &c->space->needed[role];
  const size_t heads = role == ROLE_OUTPUT ? l->shape.heads : role_heads(l, role);
  const double out = (double)(role_heads(l, role) * role_head_size(l, role));
  double work = l->matrix[role] ? 2.0 * out * (double)role_in(l, role) : 0;
  if (l->shape.grouped && role != ROLE_OUTPUT) work /= (double)heads;
  /* And dealing a row out to its heads: by number, and by place. */
  work += 8.0 * out + 60.0 * (double)role_heads(l, role);
  if (role <= ROLE_KEY && l->rotary)
    work += 4.0 * out + ANGLE_WORK * (double)l->shape.head_size / 2;
  if (role <= ROLE_KEY && l->compare[role]) work += 2.0 * out * (double)l->compare_size;
  return (double)rows * work * (double)needed->count / (double)heads;
}

double look_work(const struct layer *l, const struct call *c, const struct item *item) {
  const double pairs = (double)item->q * (double)item->k;
  const double heads = (double)l->shape.heads;
  double work = 100.0 * (double)(item->q + item->k) + relative_work(l, c, item);
  if (c->mask) work += 40.0 * pairs * (c->mask_per_head ? heads : 1);
  if (c->bias) work += 20.0 * pairs * (c->bias_per_head ? heads : 1);
  return work;
}

double query_work(const struct layer *l, const struct call *c, const struct item *item,
                  size_t keys) {
  const size_t segments = c->segment_end ? item->segments : 0;
  return pair_work(l, c) * (double)(keys + 1) + 16.0 * (double)segments;
}

/* Of an item, beside its rows. */
static double item_work(const struct layer *l, const struct call *c, const struct item *item) {
  const double queries = (double)c->space->needed[ROLE_QUERY].count * (double)item->q;
  return visit_work + look_work(l, c, item) + queries * query_work(l, c, item, item->k);
}

/* As if every query saw every key: what they see is known only later. */
static double call_work(const struct layer *l, const struct call *c) {
  double work = 0;
  for (unsigned role = 0; role < ROLE_PROJECTIONS; role++)
    work += rows_work(l, c, role, role == ROLE_KEY || role == ROLE_VALUE ? c->k_rows : c->q_rows);
  for (size_t i = 0; i < c->items; i++) work += item_work(l, c, &c->item[i]);
  return work + measure_work(l, c);
}

/* --- heads --- */

/* Which of a role's `heads` heads are needed, where `shared` query heads share each. A query head
 * is needed if its factor in head_mask is not 0, or whatever that is if heads are `seen`. */
static enum status find_needed(struct needed *needed, const struct call *c, size_t heads,
                               size_t shared, bool seen, struct arena *a, struct error *e) {
  *needed = (struct needed){.count = heads};
  if (!c->head_mask || seen) return STATUS_OK;
  uint32_t *slot = arena_alloc(a, heads, sizeof *slot, e);
  if (!slot) return e->status;
  needed->count = 0;
  for (size_t head = 0; head < heads; head++) {
    bool counts = false;
    for (size_t i = 0; i < shared; i++) counts |= c->head_mask[head * shared + i] != 0;
    slot[head] = counts ? (uint32_t)needed->count++ : NEEDED_NOT;
  }
  if (needed->count < heads) needed->slot = slot;
  return STATUS_OK;
}

/* A head masked to zero is not computed, unless its weights are to be shown or measured. */
static enum status find_needed_heads(const struct layer *l, struct call *c, struct arena *a,
                                     struct error *e) {
  const size_t heads = l->shape.heads, groups = l->shape.kv_heads;
  const bool seen = c->want != WEIGHTS_NONE || c->want_pointers || c->want_measures;
  struct needed *needed = c->space->needed;
  find_needed(&needed[ROLE_QUERY], c, heads, 1, seen, a, e);
  find_needed(&needed[ROLE_KEY], c, groups, heads / groups, seen, a, e);
  find_needed(&needed[ROLE_VALUE], c, groups, heads / groups, false, a, e);
  find_needed(&needed[ROLE_OUTPUT], c, heads, 1, false, a, e);
  return e->status;
}

/* --- memory --- */

/* Adds heads times q times width to the total; false if it cannot be counted. */
static bool count_more(size_t *total, size_t heads, size_t q, size_t width) {
  size_t count;
  return size_mul(q, width, &count) && size_mul(count, heads, &count) &&
         size_add(*total, count, total);
}

static enum status refuse_count(const char *what, struct error *e) {
  return error_limit(e, "max_answer_bytes", "the %s are too many to count", what);
}

static enum status place_weights(const struct layer *l, struct call *c, struct arena *a,
                                 struct error *e) {
  const size_t heads = c->want == WEIGHTS_AVERAGE ? 1 : l->shape.heads;
  for (size_t i = 0; i < c->items; i++) {
    c->item[i].weights_at = c->weight_count;
    if (!count_more(&c->weight_count, heads, c->item[i].q, c->item[i].k))
      return refuse_count("attention weights", e);
  }
  c->weights = arena_alloc(a, c->weight_count, sizeof(float), e);
  return e->status;
}

static enum status place_segment_weights(const struct layer *l, struct call *c, struct arena *a,
                                         struct error *e) {
  for (size_t i = 0; i < c->items; i++) {
    c->item[i].segment_weights_at = c->segment_weight_count;
    if (!count_more(&c->segment_weight_count, l->shape.heads, c->item[i].q, c->item[i].segments))
      return refuse_count("segment weights", e);
  }
  c->segment_weights = arena_alloc(a, c->segment_weight_count, sizeof(float), e);
  return e->status;
}

static enum status place_answer(const struct layer *l, struct call *c, struct arena *a,
                                struct error *e) {
  size_t count;
  c->weights = c->segment_weights = NULL;
  c->weight_count = c->segment_weight_count = 0;
  c->pointers = NULL;
  if (c->want != WEIGHTS_NONE && place_weights(l, c, a, e)) return e->status;
  if (c->want == WEIGHTS_PER_HEAD && c->segment_end && place_segment_weights(l, c, a, e))
    return e->status;
  if (c->want_pointers || (c->want_measures && c->select != SELECT_SOFT)) {
    if (!size_mul(c->q_rows, l->shape.heads, &count)) return refuse_count("pointers", e);
    c->pointers = arena_alloc(a, count, sizeof *c->pointers, e);
    if (!c->pointers) return e->status;
  }
  return e->status;
}

static enum status place_tops(struct call *c, struct arena *a, struct error *e) {
  struct item_tops *tops = c->space->tops = arena_alloc(a, c->items, sizeof *tops, e);
  if (tops) memset(tops, 0, c->items * sizeof *tops);
  return e->status;
}

/* In memory that is spare by then, if there is enough of it. */
static float *place_floats(struct call *c, size_t count, struct arena *a, struct error *e) {
  float *spare =
      count <= SIZE_MAX / sizeof(float) ? spare_take(&c->left, count * sizeof(float)) : NULL;
  return spare ? spare : arena_alloc(a, count, sizeof(float), e);
}

static enum status place_projected(const struct layer *l, struct call *c, size_t floats[3],
                                   struct arena *a, struct error *e) {
  for (unsigned role = ROLE_QUERY; role <= ROLE_VALUE; role++) {
    const size_t rows = role == ROLE_QUERY ? c->q_rows : c->k_rows;
    if (!size_mul(rows, role_heads(l, role) * role_kept_size(l, role), &floats[role]))
      return error_set(e, STATUS_TOO_LARGE, "the projections are too many to count");
    c->space->projected[role] = arena_alloc(a, floats[role], sizeof(float), e);
    if (!c->space->projected[role]) return e->status;
  }
  return STATUS_OK;
}

static void spare_projected(struct call *c, const size_t floats[3]) {
  for (unsigned role = ROLE_QUERY; role <= ROLE_VALUE; role++)
    spare_add(&c->left, c->space->projected[role], floats[role] * sizeof(float));
}

/* Where the stages of a row lie, each in the memory of an earlier one where that is spare:
 *
 * - Inputs are read in PHASE_PROJECT.
 * - Projected rows are written in PHASE_PROJECT, read in PHASE_ATTEND and PHASE_MEASURE. They have
 *   memory of their own.
 * - Contexts are written in PHASE_ATTEND, read in PHASE_OUTPUT and PHASE_MEASURE. They lie in the
 *   inputs if they fit. But where heads are left out they have memory of their own: PHASE_LOOK
 *   clears it, before the inputs are read.
 * - Outputs are written in PHASE_OUTPUT, read in PHASE_MEASURE and ever after. They lie in what the
 *   contexts leave of the inputs if they fit, or, where nothing is measured, in the projected rows.
 *
 * What the outputs leave is the caller's, once the call is computed. */
static enum status place_rows(const struct layer *l, struct call *c, struct arena *a,
                              struct error *e) {
  struct call_space *s = c->space;
  size_t projected[3], contexts, outputs;
  if (!size_mul(c->q_rows, role_in(l, ROLE_OUTPUT), &contexts))
    return error_set(e, STATUS_TOO_LARGE, "the context is too large to count");
  if (!size_mul(c->q_rows, l->shape.output_size, &outputs)) return refuse_count("outputs", e);
  if (place_projected(l, c, projected, a, e)) return e->status;
  c->left = c->spare;
  s->context = s->needed[ROLE_OUTPUT].slot ? arena_alloc(a, contexts, sizeof(float), e)
                                           : place_floats(c, contexts, a, e);
  if (!c->want_measures) spare_projected(c, projected);
  c->outputs = place_floats(c, outputs, a, e);
  if (!s->context || !c->outputs) return e->status;
  if (c->want_measures) spare_projected(c, projected);
  spare_add(&c->left, s->context, contexts * sizeof(float));
  return STATUS_OK;
}

enum status layer_prepare(const struct layer *l, struct call *c, struct arena *a, struct error *e) {
  c->space = arena_alloc(a, 1, sizeof *c->space, e);
  if (!c->space) return e->status;
  *c->space = (struct call_space){0};
  c->run = (struct run){.program = &l->program, .rows = c->q_rows};
  if (sight_reserve(&c->space->sight, c, a, e) || find_needed_heads(l, c, a, e) ||
      place_answer(l, c, a, e) || place_rows(l, c, a, e) || place_tops(c, a, e) ||
      relative_prepare(l, c, a, e) || measure_prepare(l, c, a, e))
    return e->status;
  c->run.work = call_work(l, c);
  return STATUS_OK;
}
