/* convolve: the convolution of the rows that enter layer 0, behind that layer.
 *
 * With x the embedding and y the output of layer 0, the layer's output becomes norm(y + act(W x' +
 * b)): the row x' of a position has the numbers of the rows around it, and of that position itself.
 * A row beyond an end of its item, or in its padding, has zeros. */
#include <string.h>

#include "core/base/size.h"
#include "core/forward/forward.h"
#include "core/kernel/gemm.h"

enum { CONVOLVED_ROWS = 16 }; /* that go through the matrix together */

static size_t whole_lines(size_t floats) { return size_round_up(floats, 16); }

/* Makes the row x' of position `within` of an item of `end` rows, the first of them at `rows`: the
 * numbers of one column follow each other, as in the matrix. */
static void gather_row(const struct stack *s, const float *rows, size_t end, size_t within,
                       float *to) {
  const size_t d = s->form.width, taps = s->form.convolution.taps, reach = taps / 2;
  for (size_t tap = 0; tap < taps; tap++) {
    const size_t at = within + tap; /* `reach` more than the row */
    const bool inside = at >= reach && at - reach < end;
    const float *from = inside ? rows + (at - reach) * d : NULL;
    for (size_t x = 0; x < d; x++) to[x * taps + tap] = from ? from[x] : 0;
  }
}

static size_t convolve_floats(const struct stack *s) {
  const size_t d = s->form.width;
  return CONVOLVED_ROWS * (whole_lines(d * s->form.convolution.taps) + whole_lines(d)) +
         gemm_scratch_floats(s->convolution, CONVOLVED_ROWS);
}

static void convolve_unit(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack *s = step->stack;
  const struct stack_run *r = stack_run_of(u->run);
  const struct stack_convolution *c = &s->form.convolution;
  const struct item *items = r->geometry.item;
  const int32_t *lens = r->geometry.lens;
  const struct stack_flow *flow = r->space->flow;
  const size_t d = s->form.width, wide = whole_lines(d * c->taps);
  const struct gathered_activation activation = {.kind = c->activation};
  float *gathered = scratch, *branch = gathered + CONVOLVED_ROWS * wide,
        *products = branch + CONVOLVED_ROWS * whole_lines(d);
  size_t item = stack_item_of(&r->geometry, u->row);
  for (size_t done = 0, count; done < u->rows; done += count) {
    const size_t first = u->row + done;
    count = size_min(u->rows - done, CONVOLVED_ROWS);
    for (size_t i = 0; i < count; i++) {
      while (first + i - items[item].q_row >= items[item].q) item++;
      const size_t begin = items[item].q_row, own = items[item].q;
      const size_t end = lens ? size_min(own, (size_t)lens[first + i]) : own;
      gather_row(s, flow->state + begin * d, end, first + i - begin, gathered + i * wide);
    }
    struct gathered_part part = {
        .run = u->run, .row = first, .rows = count, .to = branch, .to_row = d, .bad = count};
    const struct gathered_product product = {.matrix = s->convolution,
                                             .end = d,
                                             .x = gathered,
                                             .x_row = wide,
                                             .scratch = products,
                                             .activation = c->tanh ? NULL : &activation,
                                             .cap = c->tanh ? 1 : 0}; /* the tanh itself */
    gathered_multiply(&product, &part, 1);
    gathered_record_faults(&part, 1, u->step);
    float *rows = flow[1].state + first * d;
    struct kernel_norm n = stack_norm_rows(s, &c->norm, count, rows, rows);
    n.branch = branch;
    n.sum = rows;
    const struct unit some = {.run = u->run, .step = u->step, .row = first, .rows = count};
    stack_record_rows(s, &some, rows, s->kernel->norm(&n));
  }
}

const struct stack_step stack_step_convolve = {.step = STACK_ROWS_STEP(stack_rows_unit),
                                               .floats = convolve_floats,
                                               .each = convolve_unit,
                                               .what = "the convolution of"};
