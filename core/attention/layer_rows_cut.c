/* layer_rows_cut: how rows are cut into units, and units into strips. */
#include <math.h>

#include "core/attention/layer_rows.h"
#include "core/base/size.h"

enum {
  SHARED_ROWS = 128,     /* of a batch: with more, sharing out rows occupies all threads */
  SHARED_WORK = 4000000, /* operations of a unit of columns: some tens of microseconds */
  SHARED_COLUMNS = 256,  /* of a unit at least; twice as many where rows are of several runs, since
                            each unit lays them side by side */
  LEAST_ROWS = 16, /* that share the reading of a matrix, where they can: it may come from far */
  LEAST_WORK = 100000000 /* operations, about a millisecond: no more than that for sharing's sake */
};

unsigned rows_last_role(const struct layer_step *s, const struct call *c, const struct unit *u) {
  const bool all = s->role == ROLE_QUERY && !u->columns && c->space->of_itself;
  return all ? ROLE_VALUE : s->role;
}

/* Have the rows of this step gone through its matrix with the queries? */
static bool went_with_queries(const struct layer_step *s, const struct call *c,
                              const struct cursor *at) {
  return (s->role == ROLE_KEY || s->role == ROLE_VALUE) && !at->columns && c->space->of_itself;
}

static bool is_needed(const struct layer_step *s, const struct call *c, const struct unit *u) {
  const struct needed *needed = c->space->needed;
  const unsigned last = rows_last_role(s, c, u);
  bool any = s->role == ROLE_OUTPUT;
  for (unsigned role = s->role; role <= last; role++) any |= needed[role].count > 0;
  return any;
}

/* Rows of the cursor's item, from its row on. */
static bool rows_of_item(const struct layer_step *s, const struct call *c, struct cursor *at,
                         struct unit *u) {
  const size_t all = role_rows(c, at->item, s->role);
  at->row = size_max(at->row, role_rows_there(c, at->item, s->role));
  if (at->row >= all) return false;
  u->item = at->item;
  u->row = at->row;
  u->rows = size_min(s->at.layer->tile_rows[s->role], all - at->row);
  at->row += u->rows;
  return true;
}

/* Several small items, whole. */
static bool rows_of_items(const struct call *c, struct cursor *at, struct unit *u) {
  u->item = at->item;
  u->items = size_min(c->space->bunch, c->geometry->items - at->item);
  at->item += u->items;
  return true;
}

static bool rows_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct layer_step *s = layer_step_of(step);
  const struct call *c = call_of(s, u->run);
  const size_t items = c->geometry->items;
  if (went_with_queries(s, c, at) || !is_needed(s, c, u)) return false;
  if (c->space->bunch > 1) return at->item < items && rows_of_items(c, at, u);
  for (; at->item < items; at->item++, at->row = 0)
    if (rows_of_item(s, c, at, u)) return true;
  return false;
}

/* Of `rows` rows in the step's role, or in all three, and in the unit's columns. */
static double some_rows_work(const struct layer_step *s, const struct unit *u, size_t rows) {
  const struct call *c = call_of(s, u->run);
  const unsigned last = rows_last_role(s, c, u);
  const bool shared = u->columns && s->step.columns;
  double work = 0;
  for (unsigned role = s->role; role <= last; role++) work += rows_work(s->at.layer, c, role, rows);
  return shared ? work * (double)u->columns / (double)s->step.columns : work;
}

/* The rows of a bunch of items lie one after the other. */
static double rows_unit_work(const struct step *step, const struct unit *u) {
  const struct layer_step *s = layer_step_of(step);
  if (u->rows > 0) return some_rows_work(s, u, u->rows);
  const struct geometry *g = call_of(s, u->run)->geometry;
  const struct item *first = &g->item[u->item], *last = first + u->items - 1;
  const bool of_keys = s->role == ROLE_KEY || s->role == ROLE_VALUE;
  const size_t q_rows = last->q_row + last->q - first->q_row;
  const size_t keys = sight_key_at(g, u->item + u->items - 1) + last->k - sight_key_at(g, u->item);
  return some_rows_work(s, u, of_keys ? keys : q_rows);
}

/* --- columns --- */

/* May threads share out the columns of a role's matrix? Each column is made of whole rows: that
 * changes no bits where rows do not depend on each other. */
static bool has_columns(const struct layer *l, unsigned role) {
  return l->matrix[role] && l->rows_independent[role] && !l->shape.grouped &&
         !(role <= ROLE_KEY && l->compare[role]);
}

/* A unit has whole stripes of the matrix, and where heads are normalised or turned whole heads. */
static size_t column_step(const struct layer *l, unsigned role) {
  const size_t stripe = gemm_stripe(l->matrix[role]);
  size_t step = stripe;
  const bool whole_heads = role <= ROLE_KEY && (l->rotary || l->norm[role]);
  while (whole_heads && step % l->shape.head_size) step += stripe;
  return step;
}

size_t rows_columns(const struct layer *l, unsigned role) {
  return has_columns(l, role) ? role_heads(l, role) * role_head_size(l, role) : 0;
}

/* Operations for a row in all roles that go side by side with this one. */
double rows_side_by_side(const struct layer *l, unsigned role) {
  if (role == ROLE_OUTPUT) return (double)rows_columns(l, role) * (double)role_in(l, role) * 2;
  double work = 0;
  for (unsigned r = ROLE_QUERY; r <= ROLE_VALUE; r++)
    work += (double)rows_columns(l, r) * (double)role_in(l, r) * 2;
  return work;
}

/* Whether queries, keys and values are shared out by columns is one decision: rows that are all
 * three go through all matrices at once where they are not. A role whose columns cannot be shared
 * has all of them in one unit. */
static size_t rows_share(const struct step *step, const struct run *first) {
  const struct layer_step *s = layer_step_of(step);
  size_t q_rows = 0, k_rows = 0;
  if (!first->next && first->work < 2.0 * SHARED_WORK) return 0;
  for (const struct run *r = first; r; r = r->next) {
    const struct geometry *g = call_of_const(s, r)->geometry;
    q_rows += g->q_rows, k_rows += g->k_rows;
    if (q_rows > SHARED_ROWS || (k_rows > SHARED_ROWS && s->role != ROLE_OUTPUT)) return 0;
  }
  const size_t rows = s->role == ROLE_KEY || s->role == ROLE_VALUE ? k_rows : q_rows;
  const size_t most = s->role == ROLE_OUTPUT ? q_rows : size_max(q_rows, k_rows);
  if (s->side_by_side * (double)most < 2.0 * SHARED_WORK) return 0;
  if (!step->columns || !rows) return size_max(step->columns, 1);
  const double fit = SHARED_WORK / (2.0 * (double)role_in(s->at.layer, s->role) * (double)rows);
  const size_t columns = size_max(SHARED_COLUMNS * (first->next ? 2 : 1), (size_t)fit);
  const size_t whole =
      column_step(s->at.layer, s->role); /* not a power of two where heads are not */
  return size_min((columns + whole - 1) / whole * whole, step->columns);
}

/* --- spans --- */

/* A span takes as many rows as share the reading of a matrix, if that is not long. */
static double rows_least(const struct step *step, const struct cursor *at) {
  const struct unit u = {.run = at->unit.run};
  return at->columns ? 0 : fmin(some_rows_work(layer_step_of(step), &u, LEAST_ROWS), LEAST_WORK);
}

static void add_rows(struct strip *strip, const struct unit *u) {
  const struct call *c = call_of(strip->step, u->run);
  const unsigned role = strip->step->role;
  for (size_t i = u->item; i < u->item + u->items; i++) {
    const size_t first = size_max(u->row, role_rows_there(c, i, role)), all = role_rows(c, i, role);
    const size_t end = u->rows == 0 ? all : size_min(u->row + u->rows, all);
    if (first < end) strip_add(strip, u, i, first, end - first);
  }
}

static void compute_rows(const struct step *step, const struct span *span, void *scratch) {
  const struct layer_step *s = layer_step_of(step);
  const unsigned mode = kernel_enter();
  struct span left = *span;
  struct strip strip;
  struct unit u;
  strip_begin(&strip, s, scratch);
  while (run_next_unit(&left, &u)) add_rows(&strip, &u);
  strip_flush(&strip);
  kernel_leave(mode);
}

const struct step step_rows = {.unit = rows_unit,
                               .work = rows_unit_work,
                               .share = rows_share,
                               .least = rows_least,
                               .compute = compute_rows,
                               .fault = fault_of_row};
