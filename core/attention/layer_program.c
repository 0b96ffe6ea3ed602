/* layer_program: the programs of a layer: lists of its steps. */
#include "core/attention/layer_parts.h"

/* Keys and values join the queries: none of them waits for another. */
static struct layer_step rows_of(const struct layer *l, unsigned role) {
  struct layer_step s = {.step = step_rows, .layer = l, .role = role};
  s.step.joins = role == ROLE_KEY || role == ROLE_VALUE;
  s.step.columns = rows_columns(l, role);
  s.side_by_side = rows_side_by_side(l, role);
  return s;
}

void program_make(struct layer *l) {
  l->step[STEP_LOOK] = (struct layer_step){.step = step_look, .layer = l};
  l->step[STEP_QUERY] = rows_of(l, ROLE_QUERY);
  l->step[STEP_KEY] = rows_of(l, ROLE_KEY);
  l->step[STEP_VALUE] = rows_of(l, ROLE_VALUE);
  l->step[STEP_ATTEND] = (struct layer_step){.step = step_attend, .layer = l};
  l->step[STEP_OUTPUT] = rows_of(l, ROLE_OUTPUT);
  l->step[STEP_MEASURE] = (struct layer_step){.step = step_measure, .layer = l};
  l->step[STEP_SUM] = (struct layer_step){.step = step_sum, .layer = l};
  for (unsigned i = 0; i < STEP_COUNT; i++) l->list[i] = &l->step[i].step;
  l->plain = (struct program){.step = l->list, .steps = STEP_MEASURE};
  l->measured = (struct program){.step = l->list, .steps = STEP_COUNT};
}
