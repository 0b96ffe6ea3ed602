/* logit_lens: what each hidden state would say of the tokens to come, were it the last one.
 *
 * Before a layer adds to what enters it, the rows that have a target go through the last norm and
 * the output's matrix, as the outputs do behind all layers. Their logits are not kept: what remains
 * is the likeliest tokens. The last hidden state is the outputs' own, and stack_output's. */
#include <string.h>

#include "core/forward/output.h"
#include "core/inspect/inspect.h"

/* One row as the last norm leaves it; false: it holds a number beyond float32. */
static bool norm_row(const struct stack *s, const float *from, float *to) {
  const struct stack_form *f = &s->form;
  const struct kernel_norm n = {.rows = 1,
                                .count = f->width,
                                .rms = f->norm == NORM_RMS,
                                .epsilon = f->epsilon,
                                .factor = f->last.factor,
                                .shift = f->last.shift,
                                .x = from,
                                .x_row = f->width,
                                .y = to,
                                .y_row = f->width};
  if (f->last.factor) return s->kernel->norm(&n) < KERNEL_NOT_FINITE;
  memcpy(to, from, f->width * sizeof *to);
  return true;
}

static void lens_rows(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack *s = step->stack;
  const struct stack_run *r = stack_run_of(u->run);
  const float *state = r->space->flow[step->layer].state;
  struct output_tile t;
  output_tile_begin(&t, s, scratch);
  for (size_t row = u->row; row < u->row + u->rows; row++) {
    const int32_t target = r->targets[row];
    if (target < 0) continue;
    float *x = output_tile_add(&t, row, target, output_lens_likely(r, step->layer, row));
    if (!norm_row(s, state + row * s->form.width, x)) run_note_fault(u->run, u->step, row);
    output_scale(s, x);
  }
  output_tile_take(&t, u);
}

/* --- the step --- */

static bool lens_unit(const struct step *step, struct cursor *at, struct unit *u) {
  return stack_run_of(u->run)->lens && stack_rows_unit(step, at, u);
}

static enum status fault_of_lens(const struct step *step, const struct run *r, uint64_t row,
                                 struct error *e) {
  return stack_fault(stack_step_of(step), r, "before it, through the logit lens,", row, e);
}

const struct stack_step stack_step_logit_lens = {.step = {.unit = lens_unit,
                                                          .work = stack_rows_work,
                                                          .compute = stack_compute_kernels,
                                                          .fault = fault_of_lens},
                                                 .floats = output_floats,
                                                 .each = lens_rows};
