/* layer_program: the program of a layer: in which order the work of a batch is done, unit by unit.
 *
 * The walk depends on the layer and the calls alone: a span names its first unit and how many
 * follow, and computing it walks the same way. All that a span writes is its own: rows of
 * projections, contexts, outputs and weights, sums of measures. What spans share are the tops and
 * the fault of a call, which do not depend on their order. */
#include <math.h>

#include "core/attention/layer_rows.h"
#include "core/run/size.h"

enum {
  UNITS_MAX = 4096,      /* of a span: cutting walks them while other workers wait for the cursor */
  UNIT_WORK = 100000000, /* operations: about a millisecond */
  SPAN_ROWS = 16, /* that share the reading of a matrix, where they can: it comes from far memory */
  UNIT_LEAST = 100000 /* of attention: to begin a unit costs as much as some thousands */
};

/* --- rows through matrices --- */

/* Are the item's queries its keys and values, too? Then the rows go through all three matrices in
 * one walk. That needs as many rows in each role, and rows of one size: a strip then has room for
 * as many of them. It does not need the same rows: they are merely at hand. The cursor may be
 * behind the last item. */
static bool is_of_itself(const struct layer *l, const struct cursor *at) {
  const struct call *c = call_of(at->run);
  if (at->item == c->items || c->keys != c->queries || c->values != c->queries) return false;
  const struct item *item = &c->item[at->item];
  return item->q == item->k && role_in(l, ROLE_KEY) == role_in(l, ROLE_QUERY) &&
         role_in(l, ROLE_VALUE) == role_in(l, ROLE_QUERY);
}

static unsigned last_role(const struct layer *l, const struct cursor *at) {
  return at->role == ROLE_QUERY && is_of_itself(l, at) ? ROLE_VALUE : at->role;
}

/* Of `rows` rows in the cursor's role, or in all three. */
static double roles_work(const struct layer *l, const struct cursor *at, size_t rows) {
  double work = 0;
  for (unsigned role = at->role, last = last_role(l, at); role <= last; role++)
    work += rows_work(l, call_of(at->run), role, rows);
  return work;
}

/* Rows of one item for one matrix, or for three. */
static bool rows_unit(const struct layer *l, struct cursor *at, struct unit *u) {
  const struct call *c = call_of(at->run);
  const bool walked = (at->role == ROLE_KEY || at->role == ROLE_VALUE) && is_of_itself(l, at);
  const size_t all = role_rows(c, at->item, at->role);
  if (walked || at->row >= all) return false;
  u->role = at->role;
  u->last_role = last_role(l, at);
  u->row = at->row;
  u->rows = size_min(l->tile_rows[at->role], all - at->row);
  u->work = roles_work(l, at, u->rows);
  at->row += u->rows;
  bool needed = at->role == ROLE_OUTPUT;
  for (unsigned role = u->role; role <= u->last_role; role++)
    needed |= c->space->needed[role].count > 0;
  return needed;
}

/* --- attention --- */

/* Query rows of a unit whose rows cost `row` operations each: as many as share their keys, but
 * fewer where the unit would hold a worker for long. */
static size_t attend_rows(const struct layer *l, double row) {
  size_t rows = l->queries;
  while (rows > l->kernel->lanes && row * (double)rows > UNIT_WORK) rows /= 2;
  return rows;
}

/* Heads of a unit: all where they add up to an average, several where they are small. */
static size_t attend_heads(const struct layer *l, const struct call *c, double work, size_t head) {
  const size_t left = l->shape.heads - head;
  if (c->want == WEIGHTS_AVERAGE) return left;
  return work * (double)left <= UNIT_LEAST ? left : (size_t)fmax(1, UNIT_LEAST / work);
}

/* Queries of one item in one head or several. Heads that are not needed are passed over. */
static bool attend_unit(const struct layer *l, struct cursor *at, struct unit *u) {
  const struct call *c = call_of(at->run);
  const struct item *item = &c->item[at->item];
  const struct needed *needed = &c->space->needed[ROLE_QUERY];
  while (at->head < l->shape.heads && !needed_has(needed, at->head)) at->head++;
  if (item->q == 0 || at->head >= l->shape.heads) return false;
  const size_t keys = role_rows(c, at->item, ROLE_VALUE); /* that are seen, or all if uniform */
  const double query = query_work(l, c, item, keys);
  u->head = at->head;
  u->heads = attend_heads(l, c, query * (double)item->q, at->head);
  u->row = at->row;
  const double row = (double)u->heads * query;
  u->rows = size_min(attend_rows(l, row), item->q - at->row);
  u->work = row * (double)u->rows;
  at->row += u->rows;
  if (at->row < item->q) return true;
  at->row = 0;
  at->head += u->heads;
  return true;
}

/* --- the walk --- */

/* One item, whole: what is read once costs little beside what it is read for. */
static bool look_unit(const struct layer *l, struct cursor *at, struct unit *u) {
  const struct call *c = call_of(at->run);
  const struct item *item = &c->item[at->item];
  if (item->q == 0 || at->row > 0) return false;
  u->work = look_work(l, c, item);
  at->row = 1;
  return true;
}

/* The next unit of the cursor's item; false at the end of the item. */
static bool unit_of_item(const struct layer *l, struct cursor *at, struct unit *u) {
  if (at->phase == PHASE_LOOK) return look_unit(l, at, u);
  if (at->phase == PHASE_ATTEND) return attend_unit(l, at, u);
  if (at->phase == PHASE_MEASURE) return measure_unit(l, at, u);
  if (at->phase == PHASE_SUM) return measure_sum_unit(l, at, u);
  return rows_unit(l, at, u);
}

static void move_to_next_run(struct cursor *at) {
  at->item = 0;
  at->run = at->run->next;
  if (at->run || at->phase != PHASE_PROJECT || at->role == ROLE_VALUE) return;
  at->role++;
  at->run = at->first;
}

bool unit_next(const struct layer *l, struct cursor *at, struct unit *u) {
  while (at->run) {
    struct call *c = call_of(at->run);
    while (at->item < c->items) {
      u->call = c;
      u->phase = (enum layer_phase)at->phase;
      u->item = at->item;
      if (unit_of_item(l, at, u)) return true;
      at->row = at->head = 0;
      at->item++;
    }
    move_to_next_run(at);
  }
  return false;
}

/* --- the program --- */

_Static_assert(offsetof(struct layer, program) == 0, "a program is the first member of its layer");
static const struct layer *layer_of(const struct program *p) { return (const struct layer *)p; }

/* A cursor with no unit ahead says so: its run becomes NULL. */
static void note_end(const struct layer *l, struct cursor *at) {
  struct cursor ahead = *at;
  struct unit u;
  if (!unit_next(l, &ahead, &u)) at->run = NULL;
}

static struct cursor begin_phase(const struct layer *l, struct run *first, unsigned phase,
                                 size_t round) {
  struct cursor at = {.first = first, .run = first, .phase = phase, .round = round};
  at.role = phase == PHASE_OUTPUT ? ROLE_OUTPUT : ROLE_QUERY;
  if (phase == PHASE_COUNT)
    at.run = NULL;
  else
    note_end(l, &at);
  return at;
}

static struct cursor begin_batch(const struct program *p, struct run *first) {
  return begin_phase(layer_of(p), first, PHASE_LOOK, 0);
}

static struct cursor next_phase(const struct program *p, const struct cursor *at) {
  size_t rounds = 0;
  for (struct run *r = at->first; r && at->phase == PHASE_MEASURE; r = r->next)
    if (!call_is_over(call_of(r), PHASE_MEASURE))
      rounds = size_max(rounds, measure_rounds(call_of(r)));
  if (at->round + 1 < rounds) return begin_phase(layer_of(p), at->first, at->phase, at->round + 1);
  return begin_phase(layer_of(p), at->first, at->phase + 1, 0);
}

/* A span of rows takes as many as share the reading of a matrix, if that is not long. */
static bool cut_span(const struct program *p, struct cursor *at, double work, struct span *out) {
  const struct layer *l = layer_of(p);
  struct unit u;
  double sum = 0;
  *out = (struct span){.from = *at};
  if (at->run && (at->phase == PHASE_PROJECT || at->phase == PHASE_OUTPUT))
    work = fmax(work, fmin(roles_work(l, at, SPAN_ROWS), UNIT_WORK));
  while (sum < work && out->units < UNITS_MAX && unit_next(l, at, &u)) {
    out->units++;
    sum += call_is_over(u.call, u.phase) ? 0 : u.work;
  }
  note_end(l, at);
  return out->units > 0;
}

static void compute_span(const struct program *p, const struct span *span, void *scratch) {
  const struct layer *l = layer_of(p);
  const unsigned mode = kernel_enter();
  struct cursor at = span->from;
  struct strip strip;
  struct unit u;
  strip_begin(&strip, l, scratch);
  for (size_t i = 0; i < span->units; i++) {
    must(unit_next(l, &at, &u));
    if (call_is_over(u.call, u.phase)) continue;
    if (u.phase == PHASE_LOOK)
      compute_look(l, &u);
    else if (u.phase == PHASE_ATTEND)
      compute_attention(l, &u, scratch);
    else if (u.phase == PHASE_MEASURE)
      compute_measure(l, &u, scratch);
    else if (u.phase == PHASE_SUM)
      compute_measure_sum(l, &u);
    else
      strip_add(&strip, &u);
  }
  strip_flush(&strip);
  kernel_leave(mode);
}

const struct program layer_program = {.phases = PHASE_COUNT,
                                      .begin = begin_batch,
                                      .next = next_phase,
                                      .cut = cut_span,
                                      .compute = compute_span,
                                      .fault = fault_describe};
