/* layer_program: the programs of a layer: lists of its steps. */
#include "core/attention/layer_parts.h"

_Static_assert(offsetof(struct layer_run, run) == 0, "a run is the first member of its struct");

static struct layer_step step_of(const struct layer_place *at, const struct step *step) {
  return (struct layer_step){.step = *step, .at = *at};
}

/* Keys and values join the queries: none of them waits for another. */
static struct layer_step rows_of(const struct layer_place *at, unsigned role) {
  struct layer_step s = step_of(at, &step_rows);
  s.role = role;
  s.step.joins = role == ROLE_KEY || role == ROLE_VALUE;
  s.step.columns = rows_columns(at->layer, role);
  s.side_by_side = rows_side_by_side(at->layer, role);
  return s;
}

unsigned layer_list_steps(const struct layer_place *at, struct layer_step step[STEP_COUNT],
                          const struct step **list) {
  const unsigned steps = at->measures ? STEP_COUNT : STEP_MEASURE;
  step[STEP_LOOK] = step_of(at, &step_look);
  step[STEP_QUERY] = rows_of(at, ROLE_QUERY);
  step[STEP_KEY] = rows_of(at, ROLE_KEY);
  step[STEP_VALUE] = rows_of(at, ROLE_VALUE);
  step[STEP_ATTEND] = step_of(at, &step_attend);
  step[STEP_TRACE] = step_of(at, &step_trace);
  step[STEP_OUTPUT] = rows_of(at, ROLE_OUTPUT);
  step[STEP_MEASURE] = step_of(at, &step_measure);
  step[STEP_SUM] = step_of(at, &step_sum);
  for (unsigned i = 0; i < steps; i++) list[i] = &step[i].step;
  return steps;
}

void program_make(struct layer *l) {
  const struct layer_place alone = {.layer = l,
                                    .call_at = offsetof(struct layer_run, call),
                                    .first = true,
                                    .measures = true,
                                    .where = ""};
  const unsigned steps = layer_list_steps(&alone, l->step, l->list);
  l->plain = (struct program){.step = l->list, .steps = STEP_MEASURE, .bytes = layer_bytes(l)};
  l->measured = (struct program){.step = l->list, .steps = steps, .bytes = layer_bytes(l)};
}
