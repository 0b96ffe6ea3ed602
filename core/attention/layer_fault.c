/* layer_fault: error messages for rows and scores that exceed the float32 range. */
#include "core/attention/layer_parts.h"

/* Describes a row, whose number is counted over all items of the call. */
static enum status describe_row(const struct layer_step *s, const struct call *c, unsigned role,
                                size_t row, const char *what, struct error *e) {
  const bool of_keys = role == ROLE_KEY || role == ROLE_VALUE;
  const struct geometry *g = of_keys || !c->queried ? c->geometry : c->queried;
  size_t item = 0, before = 0;
  while (item + 1 < g->items &&
         (of_keys ? g->item[item + 1].k_row : g->item[item + 1].q_row) <= row)
    item++;
  /* Rows of earlier calls count as rows of the item. */
  if (g != c->geometry)
    before = (size_t)g->item[item].offset;
  else if (c->kept)
    before = c->kept[item].key.count;
  const size_t first = of_keys ? g->item[item].k_row : g->item[item].q_row;
  const size_t each = c->each && (!of_keys || !c->queried) ? c->each : 1;
  return error_set(e, STATUS_NOT_FINITE, "%s%s %zu of item %zu exceeds the float32 range",
                   s->at.where, what, before + row - first, item / each);
}

static const char *const projection[ROLE_PROJECTIONS] = {"the projection of query",
                                                         "the projection of key",
                                                         "the projection of value",
                                                         "the output of query"};

enum status fault_of_row(const struct step *step, const struct run *run, uint64_t row,
                         struct error *e) {
  const struct layer_step *s = layer_step_of(step);
  return describe_row(s, call_of_const(s, run), s->role, row, projection[s->role], e);
}

enum { KIND_SHIFT = 40 };

uint64_t attend_fault(unsigned role, size_t row) { return (uint64_t)role << KIND_SHIFT | row; }

enum status fault_of_attend(const struct step *step, const struct run *run, uint64_t place,
                            struct error *e) {
  const struct layer_step *s = layer_step_of(step);
  const unsigned role = (unsigned)(place >> KIND_SHIFT);
  const size_t row = place & (((uint64_t)1 << KIND_SHIFT) - 1);
  const bool score = role == ATTEND_SCORE;
  return describe_row(s, call_of_const(s, run), score ? ROLE_QUERY : role, row,
                      score ? "a score of query" : projection[role], e);
}
