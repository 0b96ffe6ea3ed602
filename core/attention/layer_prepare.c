/* layer_prepare: what a call needs from a layer: which heads, how much memory, how much work. */
#include <math.h>
#include <string.h>

#include "core/attention/layer_parts.h"
#include "core/attention/trace.h"
#include "core/base/size.h"

enum {
  VISIT_WORK = 20000,  /* operations for visiting an item in every step: a fifth of a microsecond */
  BUNCH_WORK = 100000, /* operations of a unit of several items */
  BUNCH_ITEMS = 64     /* most items of such a unit */
};

/* --- work --- */

/* Finding out what an item's queries attend to. It is limited by memory, so a number that is read
 * counts as tens of operations. */
static double sight_work(const struct layer *l, const struct geometry *g, const struct item *item) {
  const double pairs = (double)item->q * (double)item->k;
  const double heads = (double)l->shape.heads;
  double work = 100.0 * (double)(item->q + item->k);
  if (g->mask) work += 40.0 * pairs * (g->mask_per_head ? heads : 1);
  if (g->bias) work += 20.0 * pairs * (g->bias_per_head ? heads : 1);
  return work;
}

/* Estimates the work of the call, and sets how it is cut into units. Attention counts as if every
 * query attends to every key: the mask is known only later. */
static double call_work(const struct layer *l, const struct call *c, bool first) {
  const struct geometry *g = c->geometry;
  struct call_space *s = c->space;
  const double query = rows_work(l, c, ROLE_QUERY, 1) + rows_work(l, c, ROLE_OUTPUT, 1);
  const double key = rows_work(l, c, ROLE_KEY, 1) + rows_work(l, c, ROLE_VALUE, 1);
  double look = 0, attend = 0, most = 0;
  for (size_t i = 0; i < g->items; i++) {
    const struct item *item = &g->item[i];
    const double looking = (first ? sight_work(l, g, item) : 0) + relative_work(l, c, item);
    const double queries = (double)s->needed[ROLE_QUERY].count * (double)item->q;
    const double attending = queries * query_work(l, c, item, item->k);
    look += looking, attend += attending;
    most = fmax(most, looking + attending + (double)item->q * query + (double)item->k * key);
  }
  /* If items are small, a unit has several of them: handing out a unit costs as much as some
   * thousands of operations. */
  const double fit = BUNCH_WORK / fmax(most, 1);
  s->bunch = fit < 2 ? 1 : (size_t)fmin(fit, BUNCH_ITEMS);
  s->look_work = look / fmax((double)g->items, 1);
  s->attend_work = attend / fmax((double)g->items, 1);
  return look + attend + (double)VISIT_WORK * (double)g->items + (double)g->q_rows * query +
         (double)g->k_rows * key + trace_work(l, c) + measure_work(l, c);
}

/* Returns whether queries are also keys and values, so that rows go through all three matrices
 * together. That needs as many rows in each role, all of one size: a strip has room for as many of
 * each. The rows need not be the same: they are only in cache. */
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

/* Finds the heads of a role that are needed: all, or those that a needed query head shares. */
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
    for (size_t i = head * shared; i < (head + 1) * shared; i++) {
      /* A trace shows its head before head_mask; the output of a masked head stays 0. */
      const bool traced = c->trace && c->trace->head == i && role != ROLE_OUTPUT;
      counts |= c->head_mask[i] != 0 || traced;
    }
    slot[head] = counts ? (uint32_t)needed->count++ : NEEDED_NOT;
  }
  if (needed->count < heads) needed->slot = slot;
  return STATUS_OK;
}

/* A head with a head_mask of 0 is computed only if its weights are returned, traced or measured.
 * Keys and values for the KV cache are computed for all heads: a later call may need them. */
static enum status find_needed_heads(const struct layer *l, struct call *c, struct arena *a,
                                     struct error *e) {
  const bool shown = c->want != WEIGHTS_NONE || c->want_pointers || c->want_measures;
  find_needed(l, c, ROLE_QUERY, shown, a, e);
  find_needed(l, c, ROLE_KEY, shown || c->kept, a, e);
  find_needed(l, c, ROLE_VALUE, c->kept != NULL, a, e);
  find_needed(l, c, ROLE_OUTPUT, false, a, e);
  return e->status;
}

/* --- memory --- */

/* Adds heads times q times width to the total; false if it overflows. */
static bool add_count(size_t *total, size_t heads, size_t q, size_t width) {
  size_t count;
  return size_mul(q, width, &count) && size_mul(count, heads, &count) &&
         size_add(*total, count, total);
}

static enum status refuse_count(const char *what, struct error *e) {
  return error_limit(e, "max_answer_bytes", "the %s exceed the address space", what);
}

/* Reserves weights, segment weights and pointers. */
static enum status place_results(const struct layer *l, struct call *c, struct arena *a,
                                 struct error *e) {
  const struct geometry *g = c->geometry;
  const size_t heads = l->shape.heads;
  size_t count;
  c->weights = c->segment_weights = NULL;
  c->weight_count = c->segment_weight_count = 0;
  c->weights_at = c->segment_weights_at = NULL;
  c->pointers = NULL;
  if (c->want != WEIGHTS_NONE) {
    c->weights_at = arena_alloc(a, g->items, sizeof *c->weights_at, e);
    if (!c->weights_at) return e->status;
    for (size_t i = 0; i < g->items; i++) {
      c->weights_at[i] = c->weight_count;
      if (!add_count(&c->weight_count, c->want == WEIGHTS_AVERAGE ? 1 : heads,
                     c->want_of ? c->want_rows : g->item[i].q, g->item[i].k))
        return refuse_count("attention weights", e);
    }
    c->weights = spare_floats(&c->weights_room, c->weight_count, a, e);
  }
  if (c->want == WEIGHTS_PER_HEAD && g->segment_end) {
    c->segment_weights_at = arena_alloc(a, g->items, sizeof *c->segment_weights_at, e);
    if (!c->segment_weights_at) return e->status;
    for (size_t i = 0; i < g->items; i++) {
      c->segment_weights_at[i] = c->segment_weight_count;
      if (!add_count(&c->segment_weight_count, heads, g->item[i].q, g->item[i].segments))
        return refuse_count("segment weights", e);
    }
    c->segment_weights = arena_alloc(a, c->segment_weight_count, sizeof(float), e);
  }
  if (c->want_pointers || (c->want_measures && c->select != SELECT_SOFT)) {
    if (!size_mul(g->q_rows, heads, &count)) return refuse_count("pointers", e);
    c->pointers = arena_alloc(a, count, sizeof *c->pointers, e);
  }
  return e->status;
}

/* Floats in memory that is spare by then, else in the layer's room. */
static float *place_floats(struct call *c, size_t count, struct arena *a, struct error *e) {
  float *spare =
      count <= SIZE_MAX / sizeof(float) ? spare_take(&c->left, count * sizeof(float)) : NULL;
  return spare ? spare : spare_floats(&c->room, count, a, e);
}

static void spare_projected(struct call *c, const size_t floats[3]) {
  for (unsigned role = ROLE_QUERY; role <= ROLE_VALUE; role++)
    spare_add(&c->left, c->space->projected[role], floats[role] * sizeof(float));
}

/* Reserves memory for the stages of rows, each in the memory of an earlier stage if that is spare:
 *
 * - Inputs are read in STEP_QUERY to STEP_VALUE.
 * - Projected rows are written there, and read in STEP_ATTEND, STEP_TRACE and STEP_MEASURE. They
 *   have their own memory, in the layer's room if they fit.
 * - Contexts are written in STEP_ATTEND, and read in STEP_OUTPUT and STEP_MEASURE. They lie in the
 *   inputs if they fit. If heads are not needed they have their own memory: STEP_LOOK clears it,
 *   before the inputs are read.
 * - Outputs are written in STEP_OUTPUT, and read in STEP_MEASURE and later. They lie in the part of
 *   the inputs that contexts leave, if they fit, or, without measures, in the projected rows.
 *
 * Inputs that may be read in place are read as long as projected rows: then neither contexts nor
 * outputs lie in them. What the outputs leave is the caller's, once the call is computed. */
static enum status place_rows(const struct layer *l, struct call *c, struct arena *a,
                              struct error *e) {
  const struct geometry *g = c->geometry;
  struct call_space *s = c->space;
  size_t projected[3], contexts, outputs;
  if (!size_mul(g->q_rows, role_in(l, ROLE_OUTPUT), &contexts))
    return error_set(e, STATUS_TOO_LARGE, "the context exceeds the address space");
  if (!size_mul(g->q_rows, l->shape.output_size, &outputs)) return refuse_count("outputs", e);
  for (unsigned role = ROLE_QUERY; role <= ROLE_VALUE; role++) {
    const size_t rows = role == ROLE_QUERY ? g->q_rows : c->kept ? 0 : g->k_rows;
    if (!size_mul(rows, role_heads(l, role) * role_kept_size(l, role), &projected[role]))
      return error_set(e, STATUS_TOO_LARGE, "the projections exceed the address space");
    s->projected[role] = spare_floats(&c->room, projected[role], a, e);
    if (!s->projected[role]) return e->status;
  }
  s->in_place = may_be_in_place(l, c);
  c->left = s->in_place ? (struct spare){0} : c->spare;
  s->context = s->needed[ROLE_OUTPUT].slot ? spare_floats(&c->room, contexts, a, e)
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

void layer_renew_call(const struct call *c) {
  memset(c->space->tops, 0, c->geometry->items * sizeof *c->space->tops);
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
  for (size_t i = 0; c->kept && i < g->items; i++) { /* a KV cache has room for the new rows */
    must(c->kept[i].key.capacity >= g->item[i].k && c->kept[i].value.capacity >= g->item[i].k);
    must(!c->trace || c->kept[i].key.rows.turned == 0); /* a trace reads keys row by row */
  }
  if ((at->first && sight_reserve(g, a, e)) || find_needed_heads(l, c, a, e) ||
      sight_need(g, l->shape.heads, &c->space->needed[ROLE_QUERY], a, e) ||
      place_results(l, c, a, e) || place_rows(l, c, a, e))
    return e->status;
  c->space->tops = arena_alloc(a, g->items, sizeof *c->space->tops, e);
  if (!c->space->tops) return e->status;
  layer_renew_call(c);
  if (relative_prepare(l, c, a, e) || trace_prepare(l, c, a, e) || measure_prepare(l, c, a, e))
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
