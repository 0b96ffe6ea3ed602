/* layer_fault: the places of a call that are beyond float32, in words. */
#include "core/attention/layer_parts.h"
#include "core/attention/trace.h"

/* The item that a row belongs to; rows are counted over all items. */
static size_t item_of_row(const struct geometry *g, size_t row, bool of_keys) {
  size_t i = 0;
  while (i + 1 < g->items && (of_keys ? g->item[i + 1].k_row : g->item[i + 1].q_row) <= row) i++;
  return i;
}

/* A row of an item. */
struct fault_place {
  size_t item, row;
};

/* Rows that came before those of the call count, too. */
static struct fault_place place_of(const struct call *c, size_t row, bool of_keys) {
  const struct geometry *g = of_keys || !c->queried ? c->geometry : c->queried;
  const size_t item = item_of_row(g, row, of_keys);
  const size_t first = of_keys ? g->item[item].k_row : g->item[item].q_row;
  size_t before = 0;
  if (g != c->geometry)
    before = (size_t)g->item[item].offset;
  else if (c->kept)
    before = c->kept[item].key.count;
  const size_t each = c->each && (!of_keys || !c->queried) ? c->each : 1;
  return (struct fault_place){item / each, before + row - first};
}

static enum status describe_row(const struct layer_step *s, const struct call *c, unsigned role,
                                size_t row, struct error *e) {
  static const char *const what[ROLE_PROJECTIONS] = {"the projection of query",
                                                     "the projection of key",
                                                     "the projection of value",
                                                     "the output of query"};
  const struct fault_place at = place_of(c, row, role == ROLE_KEY || role == ROLE_VALUE);
  return error_set(e, STATUS_NOT_FINITE, "%s%s %zu of item %zu exceeds the float32 range",
                   s->at.where, what[role], at.row, at.item);
}

enum status fault_of_row(const struct step *step, const struct run *run, uint64_t row,
                         struct error *e) {
  const struct layer_step *s = layer_step_of(step);
  return describe_row(s, call_of_const(s, run), s->role, row, e);
}

/* --- of attention --- */

enum { KIND_SHIFT = 40 };

uint64_t attend_fault(unsigned role, size_t row) { return (uint64_t)role << KIND_SHIFT | row; }

enum status fault_of_attend(const struct step *step, const struct run *run, uint64_t place,
                            struct error *e) {
  const struct layer_step *s = layer_step_of(step);
  const struct call *c = call_of_const(s, run);
  const unsigned role = (unsigned)(place >> KIND_SHIFT);
  const size_t row = place & (((uint64_t)1 << KIND_SHIFT) - 1);
  if (role != ATTEND_SCORE) return describe_row(s, c, role, row, e);
  const struct fault_place at = place_of(c, row, false);
  return error_set(e, STATUS_NOT_FINITE,
                   "%sa score of query %zu of item %zu exceeds the float32 range", s->at.where,
                   at.row, at.item);
}

enum status fault_of_trace(const struct step *step, const struct run *run, uint64_t place,
                           struct error *e) {
  const struct layer_step *s = layer_step_of(step);
  const struct trace *t = call_of_const(s, run)->trace;
  (void)place;
  return error_set(
      e, STATUS_NOT_FINITE,
      "%sa number in the trace of query %zu of item %zu in head %zu exceeds the float32 range",
      s->at.where, t->row, t->item, t->head);
}

enum status fault_of_measures(const struct step *step, const struct run *run, uint64_t place,
                              struct error *e) {
  (void)run, (void)place;
  return error_set(e, STATUS_NOT_FINITE, "%sa measure of the heads exceeds the float32 range",
                   layer_step_of(step)->at.where);
}
