/* logit_lens: the tokens that each hidden state would predict, if it were the last one.
 *
 * Before a layer adds to the rows that enter it, those that have a target go through the last norm
 * and the output's matrix, as the outputs do after all layers. Their logits are not kept, only the
 * most likely tokens. The list of the last hidden state is made with the outputs (output.c). */
#include <string.h>

#include "core/forward/output.h"
#include "core/inspect/inspect.h"

static void lens_rows(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack *s = step->stack;
  const struct stack_run *r = stack_run_of(u->run);
  const float *state = r->space->flow[step->layer].state;
  const size_t d = s->form.width;
  struct output_tile t;
  output_tile_begin(&t, s, scratch);
  for (size_t row = u->row; row < u->row + u->rows; row++) {
    const int32_t target = r->targets[row];
    if (target < 0) continue;
    float *x = output_tile_add(&t, row, target, output_lens_likely(r, step->layer, row));
    const struct kernel_norm n = stack_norm_rows(s, &s->form.last, 1, state + row * d, x);
    if (!n.factor)
      memcpy(x, n.x, d * sizeof *x);
    else if (s->kernel->norm(&n) >= KERNEL_NOT_FINITE)
      run_record_fault(u->run, u->step, row);
    output_scale(s, x);
  }
  output_tile_compute(&t, u);
}

static bool lens_unit(const struct step *step, struct cursor *at, struct unit *u) {
  return stack_run_of(u->run)->lens && stack_rows_unit(step, at, u);
}

const struct stack_step stack_step_logit_lens = {.step = STACK_ROWS_STEP(lens_unit),
                                                 .floats = output_floats,
                                                 .each = lens_rows,
                                                 .what = "before it, through the logit lens,"};
