/* layer_rows_cut: how rows are cut into units, and units into strips. */
#include <math.h>

#include "core/attention/layer_rows.h"
#include "core/run/size.h"

enum {
  SHARED_ROWS = 128,     /* of a batch: with more, sharing out rows occupies all threads */
  SHARED_WORK = 4000000, /* operations of a unit of columns: some tens of microseconds */
  SHARED_COLUMNS = 256,  /* of a unit at least: each lays its rows side by side */
  LEAST_ROWS = 16, /* that share the reading of a matrix, where they can: it may come from far */
  LEAST_WORK = 100000000 /* operations, about a millisecond: no more than that for sharing's sake */
};

/* Are the item's queries its keys and values, too? Then the rows go through all three matrices
 * while they are at hand. That needs as many rows in each role, and rows of one size: a strip then
 * has room for as many of them. It does not need the same rows. */
static bool is_of_itself(const struct layer *l, const struct call *c, const struct item *item) {
  return c->keys == c->queries && c->values == c->queries && item->q == item->k && !c->kept &&
         role_in(l, ROLE_KEY) == role_in(l, ROLE_QUERY) &&
         role_in(l, ROLE_VALUE) == role_in(l, ROLE_QUERY);
}

unsigned rows_last_role(const struct layer_step *s, const struct unit *u) {
  const struct call *c = call_of(u->run);
  return s->role == ROLE_QUERY && !u->columns && is_of_itself(s->layer, c, &c->item[u->item])
             ? ROLE_VALUE
             : s->role;
}

/* Of `rows` rows in the step's role, or in all three; whether any head needs them. */
static bool needed_work(const struct layer_step *s, const struct unit *u, size_t rows,
                        double *work) {
  const struct call *c = call_of(u->run);
  bool needed = s->role == ROLE_OUTPUT;
  const bool shared = u->columns && s->step.columns;
  const double part = shared ? (double)u->columns / (double)s->step.columns : 1;
  *work = 0;
  for (unsigned role = s->role, last = rows_last_role(s, u); role <= last; role++) {
    *work += part * rows_work(s->layer, c, role, rows);
    needed |= c->space->needed[role].count > 0;
  }
  return needed;
}

/* Rows of the cursor's item, from its row on. */
static bool rows_of_item(const struct layer_step *s, struct cursor *at, struct unit *u) {
  const struct call *c = call_of(at->run);
  const bool of_keys = s->role == ROLE_KEY || s->role == ROLE_VALUE;
  const size_t all = role_rows(c, at->item, s->role);
  at->row = size_max(at->row, role_rows_there(c, at->item, s->role));
  if (at->row >= all) return false;
  if (of_keys && !at->columns && is_of_itself(s->layer, c, &c->item[at->item])) return false;
  u->item = at->item;
  u->row = at->row;
  u->rows = size_min(s->layer->tile_rows[s->role], all - at->row);
  at->row += u->rows;
  return needed_work(s, u, u->rows, &u->work);
}

static bool rows_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct layer_step *s = layer_step_of(step);
  for (; at->item < call_of(at->run)->items; at->item++, at->row = 0)
    if (rows_of_item(s, at, u)) return true;
  return false;
}

/* --- columns --- */

/* May threads share out the columns of a role's matrix? Each column is made of whole rows: that
 * changes no bits where rows do not depend on each other. */
static bool has_columns(const struct layer *l, unsigned role) {
  return l->matrix[role] && l->rows_independent[role] && !l->shape.grouped &&
         !(role <= ROLE_KEY && l->compare[role]);
}

/* A unit has whole stripes of the matrix, and where positions turn rows whole heads. */
static size_t column_step(const struct layer *l, unsigned role) {
  const size_t stripe = gemm_stripe(l->matrix[role]);
  size_t step = stripe;
  while (role <= ROLE_KEY && l->rotary && step % l->shape.head_size) step += stripe;
  return step;
}

size_t rows_columns(const struct layer *l, unsigned role) {
  return has_columns(l, role) ? role_heads(l, role) * role_head_size(l, role) : 0;
}

/* Operations for a row in all roles that go side by side with this one. */
static double side_by_side(const struct layer *l, unsigned role) {
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
  for (const struct run *r = first; r; r = r->next) {
    q_rows += call_of_const(r)->q_rows, k_rows += call_of_const(r)->k_rows;
    if (q_rows > SHARED_ROWS || (k_rows > SHARED_ROWS && s->role != ROLE_OUTPUT)) return 0;
  }
  const size_t rows = s->role == ROLE_KEY || s->role == ROLE_VALUE ? k_rows : q_rows;
  const size_t most = s->role == ROLE_OUTPUT ? q_rows : size_max(q_rows, k_rows);
  if (side_by_side(s->layer, s->role) * (double)most < 2.0 * SHARED_WORK) return 0;
  if (!step->columns || !rows) return size_max(step->columns, 1);
  const double fit = SHARED_WORK / (2.0 * (double)role_in(s->layer, s->role) * (double)rows);
  const size_t columns = size_max(SHARED_COLUMNS, (size_t)fit);
  return size_min(size_round_up(columns, column_step(s->layer, s->role)), step->columns);
}

/* --- spans --- */

/* A span takes as many rows as share the reading of a matrix, if that is not long. */
static double rows_least(const struct step *step, const struct cursor *at) {
  const struct unit u = {.run = at->run, .item = at->item};
  double work = 0;
  if (!at->columns && at->item < call_of(at->run)->items)
    needed_work(layer_step_of(step), &u, LEAST_ROWS, &work);
  return fmin(work, LEAST_WORK);
}

static void compute_rows(const struct step *step, const struct span *span, void *scratch) {
  const unsigned mode = kernel_enter();
  struct span left = *span;
  struct strip strip;
  struct unit u;
  strip_begin(&strip, layer_step_of(step), scratch);
  while (run_next_unit(&left, &u)) strip_add(&strip, &u);
  strip_flush(&strip);
  kernel_leave(mode);
}

const struct step step_rows = {.unit = rows_unit,
                               .share = rows_share,
                               .least = rows_least,
                               .compute = compute_rows,
                               .fault = fault_of_row};
