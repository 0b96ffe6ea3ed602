/* stack_output: how likely each token is to come next.
 *
 * The logits of a row are its product with a matrix of a row for each token. They are made a block
 * of tokens at a time and not kept, unless they are wanted themselves: what remains of a block is
 * its part of the row's outcome, and the target's logit. */
#include <string.h>

#include "core/kernel/gemm.h"
#include "core/run/size.h"
#include "core/stack/stack_outcome.h"
#include "core/stack/stack_parts.h"

enum { TOUCH_LOGIT = 200 }; /* operations for each logit behind its product, about */

/* --- the layout of the scratch: rows, a stripe of their products, a block of their logits --- */

size_t stack_output_floats(const struct stack *s) {
  const size_t row = stack_row_floats(s) + KERNEL_PANEL_MAX + STACK_BLOCK_TOKENS;
  return s->output ? STACK_OUTPUT_ROWS * row + STACK_BLOCK_TOKENS : 0;
}

double stack_output_work(const struct stack *s) {
  return (double)s->form.embedding.tokens * (2.0 * (double)s->form.width + TOUCH_LOGIT);
}

void stack_output_row(const struct stack *s, const struct stack_run *r, size_t row, float *to) {
  const size_t d = s->form.width;
  const float scale = s->form.output.scale;
  memcpy(to, r->space->flow[s->form.layers].input + row * d, d * sizeof *to);
  if (scale != 0 && scale != 1)
    for (size_t x = 0; x < d; x++) to[x] *= scale;
}

/* --- a tile of rows --- */

struct output_tile {
  const struct stack *stack;
  struct stack_run *run;
  size_t count, row[STACK_OUTPUT_ROWS]; /* of those that have a target */
  struct stack_outcome outcome[STACK_OUTPUT_ROWS];
  float target[STACK_OUTPUT_ROWS]; /* the target's logit */
  float *x, *product, *logit, *spare;
};

/* The rows of a unit that have a target, side by side. */
static void gather_rows(struct output_tile *t, const struct unit *u) {
  t->count = 0;
  for (size_t row = u->row; row < u->row + u->rows; row++) {
    if (t->run->targets && t->run->targets[row] < 0) continue;
    stack_output_row(t->stack, t->run, row, t->x + t->count * stack_row_floats(t->stack));
    stack_outcome_begin(&t->outcome[t->count]);
    t->row[t->count++] = row;
  }
}

static void make_block(struct output_tile *t, size_t first, size_t count) {
  const struct gemm *g = t->stack->output;
  for (size_t at = 0, columns; at < count; at += columns) {
    columns = size_min(gemm_columns(g, first + at), count - at);
    gemm_run(g, first + at, t->count, t->x, stack_row_floats(t->stack), t->product);
    for (size_t i = 0; i < t->count; i++)
      memcpy(t->logit + i * STACK_BLOCK_TOKENS + at, t->product + i * KERNEL_PANEL_MAX,
             columns * sizeof *t->logit);
  }
}

/* Of rows whose logits are wanted themselves. */
static void keep_block(struct output_tile *t, const struct unit *u, size_t first, size_t count) {
  const size_t tokens = t->stack->form.embedding.tokens;
  for (size_t i = 0; i < t->count; i++) {
    const float *logit = t->logit + i * STACK_BLOCK_TOKENS;
    memcpy(t->run->space->logits + t->row[i] * tokens + first, logit, count * sizeof *logit);
    if (t->stack->kernel->peak(count, logit) >= KERNEL_NOT_FINITE)
      run_note_fault(u->run, u->step, t->row[i]);
  }
}

static struct stack_likely likely_of(const struct output_tile *t, size_t row) {
  const size_t top = t->run->top_count;
  return (struct stack_likely){top, t->run->space->top_tokens + row * top,
                               t->run->space->top_logs + row * top};
}

static void take_block(struct output_tile *t, const struct unit *u, size_t first, size_t count) {
  const struct kernel *k = t->stack->kernel;
  for (size_t i = 0; i < t->count; i++) {
    const float *logit = t->logit + i * STACK_BLOCK_TOKENS;
    const size_t row = t->row[i], target = (size_t)t->run->targets[row];
    if (k->peak(count, logit) >= KERNEL_NOT_FINITE) {
      run_note_fault(u->run, u->step, row);
      continue;
    }
    const struct stack_likely likely = likely_of(t, row);
    stack_outcome_add(k, &t->outcome[i], logit, first, count, &likely, t->spare);
    if (target >= first && target - first < count) t->target[i] = logit[target - first];
  }
}

static void put_rows(const struct output_tile *t, const struct unit *u) {
  for (size_t i = 0; i < t->count; i++) {
    const struct stack_likely likely = likely_of(t, t->row[i]);
    const double log = t->target[i] - stack_outcome_end(&t->outcome[i], &likely);
    t->run->space->logs[t->row[i]] = (float)log;
    if (!stack_outcome_is_finite(&t->outcome[i], &likely, log))
      run_note_fault(u->run, u->step, t->row[i]);
  }
}

static void output_rows(const struct stack *s, const struct unit *u, float *scratch) {
  const size_t tokens = s->form.embedding.tokens;
  struct output_tile t = {.stack = s, .run = stack_run_of(u->run), .x = scratch};
  t.product = t.x + STACK_OUTPUT_ROWS * stack_row_floats(s);
  t.logit = t.product + STACK_OUTPUT_ROWS * KERNEL_PANEL_MAX;
  t.spare = t.logit + STACK_OUTPUT_ROWS * STACK_BLOCK_TOKENS;
  gather_rows(&t, u);
  for (size_t first = 0, count; t.count > 0 && first < tokens; first += count) {
    count = size_min(STACK_BLOCK_TOKENS, tokens - first);
    make_block(&t, first, count);
    t.run->targets ? take_block(&t, u, first, count) : keep_block(&t, u, first, count);
  }
  if (t.run->targets) put_rows(&t, u);
}

/* --- the step --- */

static bool output_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_run *r = stack_run_of(u->run);
  return (r->targets || r->want_logits) && stack_rows_unit(step, at, u);
}

static void compute_output(const struct step *step, const struct span *span, void *scratch) {
  const unsigned mode = kernel_enter();
  struct span left = *span;
  struct unit u;
  while (run_next_unit(&left, &u)) output_rows(stack_step_of(step)->stack, &u, scratch);
  kernel_leave(mode);
}

static enum status fault_of_output(const struct step *step, const struct run *r, uint64_t row,
                                   struct error *e) {
  return stack_fault(stack_step_of(step), r, "a logit or log probability of", row, e);
}

const struct step stack_step_output = {.unit = output_unit,
                                       .work = stack_rows_work,
                                       .compute = compute_output,
                                       .fault = fault_of_output};
