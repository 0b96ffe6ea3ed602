/* layer_walk: the order of a batch's work, unit by unit.
 *
 * The walk depends on the layer and the calls alone: a span names its first unit and how many
 * follow, and whoever runs it walks the same way. */
#include <math.h>

#include "core/attention/layer_parts.h"
#include "core/run/size.h"

enum {
  UNITS_MAX = 4096,      /* of a span: nobody walks for long while others wait for the cursor */
  UNIT_WORK = 100000000, /* operations: about a millisecond */
  SPAN_ROWS = 16,     /* that read a matrix together, where they can: its numbers come from afar */
  UNIT_LEAST = 100000 /* of attention: to begin a unit costs as much as some thousands */
};

static void next_item(struct cursor *at) {
  at->row = at->head = 0;
  at->item++;
}

static void next_call(struct cursor *at) {
  at->item = 0;
  at->call = at->call->next;
  if (at->call || at->phase != PHASE_PROJECT || at->role == ROLE_VALUE) return;
  at->role++;
  at->call = at->first;
}

/* One item, whole. What is read once costs little beside what it is read for. */
static bool look_unit(const struct layer *l, struct cursor *at, struct unit *u) {
  const struct call *c = at->call;
  const struct item *item = &c->item[at->item];
  if (item->q == 0 || at->row > 0) return false;
  u->work = look_work(l, c, item);
  at->row = 1;
  return true;
}

/* Are the item's queries its keys and values, too? Then the rows go through all three matrices in
 * one walk. It needs as many rows in each role, and rows of one size: a strip then has room for as
 * many of them. That they are the same rows, it does not need: they are merely at hand. Behind the
 * last item a cursor has none. */
static bool is_of_itself(const struct layer *l, const struct cursor *at) {
  const struct call *c = at->call;
  if (at->item == c->items || c->keys != c->queries || c->values != c->queries) return false;
  const struct item *item = &c->item[at->item];
  return item->q == item->k && role_in(l, ROLE_KEY) == role_in(l, ROLE_QUERY) &&
         role_in(l, ROLE_VALUE) == role_in(l, ROLE_QUERY);
}

static bool is_needed(const struct call *c, unsigned role) {
  return role == ROLE_OUTPUT || c->space->live[role].count > 0;
}

/* Of rows in one role, or in all three. */
static double roles_work(const struct layer *l, const struct call *c, unsigned role, unsigned last,
                         size_t rows) {
  double work = 0;
  for (; role <= last; role++)
    if (is_needed(c, role)) work += rows_work(l, c, role, rows);
  return work;
}

static unsigned last_role(const struct layer *l, const struct cursor *at) {
  return at->role == ROLE_QUERY && is_of_itself(l, at) ? ROLE_VALUE : at->role;
}

/* Rows of one item for one matrix, or for three. */
static bool rows_unit(const struct layer *l, struct cursor *at, struct unit *u) {
  const struct call *c = at->call;
  const bool walked = (at->role == ROLE_KEY || at->role == ROLE_VALUE) && is_of_itself(l, at);
  const size_t all = role_rows(c, at->item, at->role);
  if (walked || at->row >= all) return false;
  u->role = at->role;
  u->last_role = last_role(l, at);
  u->row = at->row;
  u->rows = size_min(l->tile_rows[at->role], all - at->row);
  u->work = roles_work(l, c, u->role, u->last_role, u->rows);
  at->row += u->rows;
  for (unsigned role = u->role; role <= u->last_role; role++)
    if (is_needed(c, role)) return true;
  return false;
}

/* The work of a span: what was asked for, but as many rows as share a matrix if that is not long.
 */
static double span_work(const struct layer *l, const struct cursor *at, double work) {
  if (!at->call || (at->phase != PHASE_PROJECT && at->phase != PHASE_OUTPUT)) return work;
  const unsigned last = last_role(l, at);
  return fmax(work, fmin(roles_work(l, at->call, at->role, last, SPAN_ROWS), UNIT_WORK));
}

/* Query rows of a unit whose rows cost `row` operations each: as many as share their keys, but
 * fewer where the unit would hold a worker for long. */
static size_t attend_rows(const struct layer *l, double row) {
  size_t rows = l->queries;
  while (rows > l->kernel->lanes && row * (double)rows > UNIT_WORK) rows /= 2;
  return rows;
}

/* Heads that one unit takes: all where they add up to an average, several where they are small. */
static size_t attend_heads(const struct layer *l, const struct call *c, double work, size_t head) {
  const size_t left = l->shape.heads - head;
  if (c->want == WEIGHTS_AVERAGE) return left;
  return work * (double)left <= UNIT_LEAST ? left : (size_t)fmax(1, UNIT_LEAST / work);
}

/* Queries of one item in one head or several. Heads that nothing is wanted of are passed over. */
static bool attend_unit(const struct layer *l, struct cursor *at, struct unit *u) {
  const struct call *c = at->call;
  const struct item *item = &c->item[at->item];
  const struct live *live = &c->space->live[ROLE_QUERY];
  while (at->head < l->shape.heads && !head_is_live(live, at->head)) at->head++;
  if (item->q == 0 || at->head >= l->shape.heads) return false;
  const size_t keys = role_rows(c, at->item, ROLE_VALUE); /* seen by someone, or uniform */
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

static bool unit_of_item(const struct layer *l, struct cursor *at, struct unit *u) {
  switch (at->phase) {
  case PHASE_LOOK:
    return look_unit(l, at, u);
  case PHASE_ATTEND:
    return attend_unit(l, at, u);
  case PHASE_MEASURE:
    return measure_unit(l, at, u);
  case PHASE_SUM:
    return measure_sum_unit(l, at, u);
  default:
    return rows_unit(l, at, u);
  }
}

bool unit_next(const struct layer *l, struct cursor *at, struct unit *u) {
  while (at->call) {
    while (at->item < at->call->items) {
      u->call = at->call;
      u->phase = at->phase;
      u->item = at->item;
      if (unit_of_item(l, at, u)) return true;
      next_item(at);
    }
    next_call(at);
  }
  return false;
}

/* A cursor with no unit ahead says so: its call becomes NULL. */
static void settle(const struct layer *l, struct cursor *at) {
  struct cursor ahead = *at;
  struct unit u;
  if (!unit_next(l, &ahead, &u)) at->call = NULL;
}

static struct cursor begin(const struct layer *l, struct call *first, enum phase phase,
                           size_t round) {
  struct cursor at = {.first = first, .call = first, .phase = phase, .round = round};
  at.role = phase == PHASE_OUTPUT ? ROLE_OUTPUT : ROLE_QUERY;
  if (phase == PHASE_DONE)
    at.call = NULL;
  else
    settle(l, &at);
  return at;
}

struct cursor layer_begin(const struct layer *l, struct call *first) {
  return begin(l, first, PHASE_LOOK, 0);
}

struct cursor layer_next(const struct layer *l, const struct cursor *at) {
  size_t rounds = 0;
  for (const struct call *c = at->first; c && at->phase == PHASE_MEASURE; c = c->next)
    if (!call_is_over(c, PHASE_MEASURE)) rounds = size_max(rounds, measure_rounds(c));
  if (at->round + 1 < rounds) return begin(l, at->first, at->phase, at->round + 1);
  return begin(l, at->first, at->phase + 1, 0);
}

bool layer_cut(const struct layer *l, struct cursor *at, double work, struct span *out) {
  struct unit u;
  double sum = 0;
  *out = (struct span){.from = *at};
  work = span_work(l, at, work);
  while (sum < work && out->units < UNITS_MAX && unit_next(l, at, &u)) {
    out->units++;
    sum += call_is_over(u.call, u.phase) ? 0 : u.work;
  }
  settle(l, at);
  return out->units > 0;
}
