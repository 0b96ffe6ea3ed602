/* layer_prepare: what a call needs of a layer: which heads, how much memory, how much work. */
#include <math.h>
#include <string.h>

#include "core/attention/layer_parts.h"
#include "core/attention/trace.h"
#include "core/base/size.h"

/* --- the work --- */

/* Of coming to an item in every step: a fifth of a microsecond. */
static const double visit_work = 20000;

enum {
  BUNCH_WORK = 100000, /* operations of a unit of several items */
  BUNCH_ITEMS = 64     /* of a unit, at most */
};

/* Of one query and one key in one head: the score, the value and the softmax, which weighs as much
 * as some forty operations whatever the head size, as a tanh does for each number. Scores count
 * twice where a second pass makes them again. */
static double pair_work(const struct layer *l, const struct call *c) {
  const double compared = (double)l->compare_size, value = 2.0 * (double)l->shape.value_head_size;
  double work = (l->vector ? 34.0 : 2.0) * compared + 40.0;
  if (c->geometry->segment_end) work += 2.0 * compared; /* the mean key */
  if (c->select == SELECT_HARD) return work;
  const bool kept = l->vector && c->want == WEIGHTS_PER_HEAD; /* only additive scores are */
  const bool again = c->geometry->segment_end
                         ? c->want != WEIGHTS_NONE || c->want_pointers || c->want_measures
                         : (c->want != WEIGHTS_NONE && !kept) || c->select == SELECT_SAMPLE;
  return again ? 2.0 * work + value : work + value;
}

enum {
  ANGLE_WORK = 300, /* operations, about, for a sine and its cosine */
  NORM_WORK = 6     /* for a number that is normalised */
};

double rows_work(const struct layer *l, const struct call *c, unsigned role, size_t rows) {
  const struct needed *needed = &c->space->needed[role];
  const size_t heads = role == ROLE_OUTPUT ? l->shape.heads : role_heads(l, role);
  const double out = (double)(role_heads(l, role) * role_head_size(l, role));
  double work = l->matrix[role] ? 2.0 * out * (double)role_in(l, role) : 0;
  if (l->shape.grouped && role != ROLE_OUTPUT) work /= (double)heads;
  /* And dealing a row out to its heads: by number, and by place. */
  work += 8.0 * out + 60.0 * (double)role_heads(l, role);
  if (role <= ROLE_KEY && l->norm[role]) work += NORM_WORK * out;
  if (role <= ROLE_KEY && l->rotary)
    work += 4.0 * out + ANGLE_WORK * (double)l->shape.head_size / 2;
  if (role <= ROLE_KEY && l->compare[role]) work += 2.0 * out * (double)l->compare_size;
  return (double)rows * work * (double)needed->count / (double)heads;
}

/* Of finding out what an item's queries may see: bound by memory, so that a number read is as much
 * as tens of operations. */
static double sight_work(const struct layer *l, const struct geometry *g, const struct item *item) {
  const double pairs = (double)item->q * (double)item->k;
  const double heads = (double)l->shape.heads;
  double work = 100.0 * (double)(item->q + item->k);
  if (g->mask) work += 40.0 * pairs * (g->mask_per_head ? heads : 1);
  if (g->bias) work += 20.0 * pairs * (g->bias_per_head ? heads : 1);
  return work;
}

double query_work(const struct layer *l, const struct call *c, const struct item *item,
                  size_t keys) {
  const size_t segments = c->geometry->segment_end ? item->segments : 0;
  return pair_work(l, c) * (double)(keys + 1) + 16.0 * (double)segments;
}

/* Of all an item's queries in all heads, as if every query saw every key: what they see is known
 * only later. */
static double attend_work(const struct layer *l, const struct call *c, const struct item *item) {
  const double queries = (double)c->space->needed[ROLE_QUERY].count * (double)item->q;
  return queries * query_work(l, c, item, item->k);
}

/* With items so small, a unit takes several of them: to hand one out costs as much as some
 * thousands of operations. */
static size_t bunch_of(double most) {
  const double fit = BUNCH_WORK / fmax(most, 1);
  return fit < 2 ? 1 : (size_t)fmin(fit, BUNCH_ITEMS);
}

/* Estimates the work of the call, and how it is cut. */
static double call_work(const struct layer *l, const struct call *c, bool first) {
  const struct geometry *g = c->geometry;
  struct call_space *s = c->space;
  const double query = rows_work(l, c, ROLE_QUERY, 1) + rows_work(l, c, ROLE_OUTPUT, 1);
  const double key = rows_work(l, c, ROLE_KEY, 1) + rows_work(l, c, ROLE_VALUE, 1);
  double look = 0, attend = 0, most = 0;
  for (size_t i = 0; i < g->items; i++) {
    const struct item *item = &g->item[i];
    const double looking = (first ? sight_work(l, g, item) : 0) + relative_work(l, c, item);
    const double attending = attend_work(l, c, item);
    look += looking, attend += attending;
    most = fmax(most, looking + attending + (double)item->q * query + (double)item->k * key);
  }
  s->bunch = bunch_of(most);
  s->look_work = look / fmax((double)g->items, 1);
  s->attend_work = attend / fmax((double)g->items, 1);
  return look + attend + visit_work * (double)g->items + (double)g->q_rows * query +
         (double)g->k_rows * key + trace_work(l, c) + measure_work(l, c);
}

/* Are the queries the keys and values, too? Rows then go through all three matrices in one go. That
 * needs as many rows in each role, and rows of one size: a strip then has room for as many of them.
 * It does not need the same rows: they are merely at hand. */
static bool is_of_itself(const struct layer *l, const struct call *c) {
  const size_t in = role_in(l, ROLE_QUERY);
  if (c->keys != c->queries || c->values != c->queries || c->kept || c->space->in_place)
    return false;
  if (role_in(l, ROLE_KEY) != in || role_in(l, ROLE_VALUE) != in) return false;
  for (size_t i = 0; i < c->geometry->items; i++)
    if (c->geometry->item[i].q != c->geometry->item[i].k) return false;
  return true;
}

/* --- heads --- */

/* Does a head of queries take part in a role? A trace shows a head whatever its factor is, which
 * then multiplies nothing. */
static bool head_counts(const struct call *c, unsigned role, size_t head) {
  const bool traced = c->trace && c->trace->head == head && role != ROLE_OUTPUT;
  return c->head_mask[head] != 0 || traced;
}

/* Which of a role's heads are needed: all, or those that one of the query heads that share them
 * needs. */
static enum status find_needed(const struct layer *l, struct call *c, unsigned role, bool all,
                               struct arena *a, struct error *e) {
  const bool of_queries = role == ROLE_QUERY || role == ROLE_OUTPUT;
  const size_t heads = of_queries ? l->shape.heads : l->shape.kv_heads;
  const size_t shared = l->shape.heads / heads;
  struct needed *needed = &c->space->needed[role];
  *needed = (struct needed){.count = heads};
  if (!c->head_mask || all) return STATUS_OK;
  uint32_t *slot = arena_alloc(a, heads, sizeof *slot, e);
  if (!slot) return e->status;
  needed->count = 0;
  for (size_t head = 0; head < heads; head++) {
    bool counts = false;
    for (size_t i = 0; i < shared; i++) counts |= head_counts(c, role, head * shared + i);
    slot[head] = counts ? (uint32_t)needed->count++ : NEEDED_NOT;
  }
  if (needed->count < heads) needed->slot = slot;
  return STATUS_OK;
}

/* A head masked to zero is not computed, unless its weights are to be shown, traced or measured.
 * Keys and values that the caller keeps are made for all heads: a later call may need them. */
static enum status find_needed_heads(const struct layer *l, struct call *c, struct arena *a,
                                     struct error *e) {
  const bool seen = c->want != WEIGHTS_NONE || c->want_pointers || c->want_measures;
  find_needed(l, c, ROLE_QUERY, seen, a, e);
  find_needed(l, c, ROLE_KEY, seen || c->kept, a, e);
  find_needed(l, c, ROLE_VALUE, c->kept != NULL, a, e);
  find_needed(l, c, ROLE_OUTPUT, false, a, e);
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
  return error_limit(e, "max_answer_bytes", "the %s exceed the address space", what);
}

float *place_in(struct spare *spare, size_t count, struct arena *a, struct error *e) {
  float *there =
      count <= SIZE_MAX / sizeof(float) ? spare_take(spare, count * sizeof(float)) : NULL;
  return there ? there : arena_alloc(a, count, sizeof(float), e);
}

static enum status place_weights(const struct layer *l, struct call *c, struct arena *a,
                                 struct error *e) {
  const struct geometry *g = c->geometry;
  const size_t heads = c->want == WEIGHTS_AVERAGE ? 1 : l->shape.heads;
  c->weights_at = arena_alloc(a, g->items, sizeof *c->weights_at, e);
  for (size_t i = 0; c->weights_at && i < g->items; i++) {
    const size_t queries = c->want_of ? c->want_rows : g->item[i].q;
    c->weights_at[i] = c->weight_count;
    if (!count_more(&c->weight_count, heads, queries, g->item[i].k))
      return refuse_count("attention weights", e);
  }
  if (c->weights_at) c->weights = place_in(&c->weights_room, c->weight_count, a, e);
  return e->status;
}

static enum status place_segment_weights(const struct layer *l, struct call *c, struct arena *a,
                                         struct error *e) {
  const struct geometry *g = c->geometry;
  c->segment_weights_at = arena_alloc(a, g->items, sizeof *c->segment_weights_at, e);
  for (size_t i = 0; c->segment_weights_at && i < g->items; i++) {
    c->segment_weights_at[i] = c->segment_weight_count;
    if (!count_more(&c->segment_weight_count, l->shape.heads, g->item[i].q, g->item[i].segments))
      return refuse_count("segment weights", e);
  }
  if (c->segment_weights_at)
    c->segment_weights = arena_alloc(a, c->segment_weight_count, sizeof(float), e);
  return e->status;
}

static enum status place_answer(const struct layer *l, struct call *c, struct arena *a,
                                struct error *e) {
  size_t count;
  c->weights = c->segment_weights = NULL;
  c->weight_count = c->segment_weight_count = 0;
  c->weights_at = c->segment_weights_at = NULL;
  c->pointers = NULL;
  if (c->want != WEIGHTS_NONE && place_weights(l, c, a, e)) return e->status;
  if (c->want == WEIGHTS_PER_HEAD && c->geometry->segment_end && place_segment_weights(l, c, a, e))
    return e->status;
  if (c->want_pointers || (c->want_measures && c->select != SELECT_SOFT)) {
    if (!size_mul(c->geometry->q_rows, l->shape.heads, &count)) return refuse_count("pointers", e);
    c->pointers = arena_alloc(a, count, sizeof *c->pointers, e);
    if (!c->pointers) return e->status;
  }
  return e->status;
}

void layer_renew_call(const struct call *c) {
  memset(c->space->tops, 0, c->geometry->items * sizeof *c->space->tops);
}

static enum status place_tops(struct call *c, struct arena *a, struct error *e) {
  c->space->tops = arena_alloc(a, c->geometry->items, sizeof *c->space->tops, e);
  if (c->space->tops) layer_renew_call(c);
  return e->status;
}

/* In memory that is spare by then, or in the layer's room. */
static float *place_floats(struct call *c, size_t count, struct arena *a, struct error *e) {
  float *spare =
      count <= SIZE_MAX / sizeof(float) ? spare_take(&c->left, count * sizeof(float)) : NULL;
  return spare ? spare : place_in(&c->room, count, a, e);
}

/* What a caller keeps has room for the new rows, which are written behind those that are there. */
static void check_room(const struct call *c) {
  for (size_t i = 0; c->kept && i < c->geometry->items; i++) {
    const size_t keys = c->geometry->item[i].k;
    must(c->kept[i].key.capacity >= keys && c->kept[i].value.capacity >= keys);
    must(!c->trace || c->kept[i].key.rows.turned == 0); /* it reads keys row by row */
  }
}

/* Rows of queries, keys and values, when they are projected. */
static enum status place_projected(const struct layer *l, struct call *c, size_t floats[3],
                                   struct arena *a, struct error *e) {
  const struct geometry *g = c->geometry;
  for (unsigned role = ROLE_QUERY; role <= ROLE_VALUE; role++) {
    const size_t rows = role == ROLE_QUERY ? g->q_rows : c->kept ? 0 : g->k_rows;
    if (!size_mul(rows, role_heads(l, role) * role_kept_size(l, role), &floats[role]))
      return error_set(e, STATUS_TOO_LARGE, "the projections exceed the address space");
    c->space->projected[role] = place_in(&c->room, floats[role], a, e);
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
 * - Inputs are read in STEP_QUERY to STEP_VALUE.
 * - Projected rows are written there, read in STEP_ATTEND, STEP_TRACE and STEP_MEASURE. They have
 *   memory of their own, in the layer's room if they fit.
 * - Contexts are written in STEP_ATTEND, read in STEP_OUTPUT and STEP_MEASURE. They lie in the
 *   inputs if they fit. But where heads are left out they have memory of their own: STEP_LOOK
 *   clears it, before the inputs are read.
 * - Outputs are written in STEP_OUTPUT, read in STEP_MEASURE and ever after. They lie in what the
 *   contexts leave of the inputs if they fit, or, where nothing is measured, in the projected rows.
 *
 * Inputs that may be read in place are read as long as projected rows: neither contexts nor outputs
 * lie in them then.
 *
 * What the outputs leave is the caller's, once the call is computed. */
static enum status place_rows(const struct layer *l, struct call *c, struct arena *a,
                              struct error *e) {
  const size_t q_rows = c->geometry->q_rows;
  struct call_space *s = c->space;
  size_t projected[3], contexts, outputs;
  if (!size_mul(q_rows, role_in(l, ROLE_OUTPUT), &contexts))
    return error_set(e, STATUS_TOO_LARGE, "the context exceeds the address space");
  if (!size_mul(q_rows, l->shape.output_size, &outputs)) return refuse_count("outputs", e);
  if (place_projected(l, c, projected, a, e)) return e->status;
  s->in_place = may_be_in_place(l, c);
  c->left = s->in_place ? (struct spare){0} : c->spare;
  s->context = s->needed[ROLE_OUTPUT].slot ? place_in(&c->room, contexts, a, e)
                                           : place_floats(c, contexts, a, e);
  if (!c->want_measures) spare_projected(c, projected);
  c->outputs = place_floats(c, outputs, a, e);
  if (!s->context || !c->outputs) return e->status;
  if (c->want_measures) spare_projected(c, projected);
  spare_add(&c->left, s->context, contexts * sizeof(float));
  for (size_t i = 0; s->in_place && i < c->spare.count; i++)
    spare_add(&c->left, c->spare.stretch[i].at,
              (size_t)(c->spare.stretch[i].end - c->spare.stretch[i].at));
  return STATUS_OK;
}

enum status layer_prepare_call(const struct layer_step step[STEP_COUNT], struct run *run,
                               struct arena *a, struct error *e) {
  const struct layer_place *at = &step->at;
  const struct layer *l = at->layer;
  struct call *c = call_of(step, run);
  struct geometry *g = c->geometry;
  c->space = arena_alloc(a, 1, sizeof *c->space, e);
  if (!c->space) return e->status;
  *c->space = (struct call_space){0};
  check_room(c);
  if ((at->first && sight_reserve(g, a, e)) || find_needed_heads(l, c, a, e) ||
      sight_need(g, l->shape.heads, &c->space->needed[ROLE_QUERY], a, e) ||
      place_answer(l, c, a, e) || place_rows(l, c, a, e) || place_tops(c, a, e) ||
      relative_prepare(l, c, a, e) || trace_prepare(l, c, a, e) || measure_prepare(l, c, a, e))
    return e->status;
  c->space->of_itself = is_of_itself(l, c);
  run->work += call_work(l, c, at->first);
  return STATUS_OK;
}

enum status layer_prepare(const struct layer *l, struct layer_run *r, struct arena *a,
                          struct error *e) {
  r->run = (struct run){.program = r->call.want_measures ? &l->measured : &l->plain,
                        .rows = r->geometry.q_rows};
  r->call.geometry = &r->geometry;
  return layer_prepare_call(l->step, &r->run, a, e);
}
