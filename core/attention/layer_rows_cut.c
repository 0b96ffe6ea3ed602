/* layer_rows_cut: how rows are cut into units, and units into strips. */
#include <math.h>

#include "core/attention/layer_rows.h"
#include "core/run/size.h"

enum {
  LEAST_ROWS = 16, /* that share the reading of a matrix, where they can: it may come from far */
  LEAST_WORK = 100000000 /* operations, about a millisecond: no more than that for sharing's sake */
};

/* Are the item's queries its keys and values, too? Then the rows go through all three matrices
 * while they are at hand. That needs as many rows in each role, and rows of one size: a strip then
 * has room for as many of them. It does not need the same rows. */
static bool is_of_itself(const struct layer *l, const struct call *c, const struct item *item) {
  return c->keys == c->queries && c->values == c->queries && item->q == item->k &&
         role_in(l, ROLE_KEY) == role_in(l, ROLE_QUERY) &&
         role_in(l, ROLE_VALUE) == role_in(l, ROLE_QUERY);
}

unsigned rows_last_role(const struct layer_step *s, const struct unit *u) {
  const struct call *c = call_of(u->run);
  return s->role == ROLE_QUERY && is_of_itself(s->layer, c, &c->item[u->item]) ? ROLE_VALUE
                                                                               : s->role;
}

/* Of `rows` rows in the step's role, or in all three; whether any head needs them. */
static bool needed_work(const struct layer_step *s, const struct unit *u, size_t rows,
                        double *work) {
  const struct call *c = call_of(u->run);
  bool needed = s->role == ROLE_OUTPUT;
  *work = 0;
  for (unsigned role = s->role, last = rows_last_role(s, u); role <= last; role++) {
    *work += rows_work(s->layer, c, role, rows);
    needed |= c->space->needed[role].count > 0;
  }
  return needed;
}

/* Rows of the cursor's item, from its row on. */
static bool rows_of_item(const struct layer_step *s, struct cursor *at, struct unit *u) {
  const struct call *c = call_of(at->run);
  const bool of_keys = s->role == ROLE_KEY || s->role == ROLE_VALUE;
  const size_t all = role_rows(c, at->item, s->role);
  if (at->row >= all || (of_keys && is_of_itself(s->layer, c, &c->item[at->item]))) return false;
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

/* A span takes as many rows as share the reading of a matrix, if that is not long. */
static double rows_least(const struct step *step, const struct cursor *at) {
  const struct unit u = {.run = at->run, .item = at->item};
  double work = 0;
  if (at->item < call_of(at->run)->items) needed_work(layer_step_of(step), &u, LEAST_ROWS, &work);
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

const struct step step_rows = {
    .unit = rows_unit, .least = rows_least, .compute = compute_rows, .fault = fault_of_row};
