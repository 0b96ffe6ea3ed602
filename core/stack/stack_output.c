/* stack_output: how likely each token is to come next.
 *
 * The logits of a row are its product with a matrix of a row for each token. They are made a block
 * of tokens at a time and not kept: what remains of a block is its greatest logit, the sum of what
 * the others are to it, the target's logit, and those among the likeliest so far. Blocks are
 * counted from token 0 and joined in their order, so the bits do not depend on which rows go
 * together. */
#include <math.h>
#include <string.h>

#include "core/kernel/gemm.h"
#include "core/run/size.h"
#include "core/stack/stack_parts.h"

enum {
  BLOCK_TOKENS = 16 * KERNEL_PANEL_MAX, /* logits of a row that are there at a time */
  TOUCH_LOGIT = 40                      /* operations for each behind its product, about */
};

/* --- the layout of the scratch: rows, a stripe of their products, a block of their logits --- */

static size_t row_floats(const struct stack *s) { return size_round_up(s->form.width, 16); }

size_t stack_output_floats(const struct stack *s) {
  const size_t row = row_floats(s) + KERNEL_PANEL_MAX + BLOCK_TOKENS;
  return s->output ? STACK_OUTPUT_ROWS * row + BLOCK_TOKENS : 0;
}

double stack_output_work(const struct stack *s) {
  return (double)s->form.embedding.tokens * (2.0 * (double)s->form.width + TOUCH_LOGIT);
}

/* --- one row --- */

/* The sum of e^(logit - most) over the tokens so far. */
struct outcome {
  float most;
  double sum;
  float target;  /* its logit */
  size_t listed; /* of the likeliest */
};

static float greatest(const float *x, size_t count) {
  float most = x[0];
  for (size_t i = 1; i < count; i++) most = x[i] > most ? x[i] : most;
  return most;
}

static void add_block(const struct kernel *k, struct outcome *o, const float *logit, size_t count,
                      float *scratch) {
  const float most = greatest(logit, count);
  double sum = 0;
  for (size_t i = 0; i < count; i++) scratch[i] = logit[i] - most;
  k->exp(count, scratch, scratch);
  for (size_t i = 0; i < count; i++) sum += scratch[i];
  if (most > o->most) {
    o->sum = o->sum * exp((double)o->most - most) + sum;
    o->most = most;
  } else {
    o->sum += sum * exp((double)most - o->most);
  }
}

/* Keeps the likeliest, the first of equals before the others. */
static void list_block(struct outcome *o, size_t top, const float *logit, size_t first,
                       size_t count, int32_t *token, float *kept) {
  for (size_t i = 0; i < count; i++) {
    if (o->listed == top && !(logit[i] > kept[top - 1])) continue;
    size_t at = o->listed < top ? o->listed++ : top - 1;
    for (; at > 0 && logit[i] > kept[at - 1]; at--)
      kept[at] = kept[at - 1], token[at] = token[at - 1];
    kept[at] = logit[i], token[at] = (int32_t)(first + i);
  }
}

/* --- a tile of rows --- */

struct output_tile {
  const struct stack *stack;
  struct stack_run *run;
  size_t count, row[STACK_OUTPUT_ROWS]; /* of those that have a target */
  struct outcome outcome[STACK_OUTPUT_ROWS];
  float *x, *product, *logit, *spare;
};

/* The rows of a unit that have a target, side by side. */
static void gather_rows(struct output_tile *t, const struct unit *u) {
  const size_t d = t->stack->form.width, step = row_floats(t->stack);
  const float scale = t->stack->form.output.scale;
  const float *rows = t->run->space->flow[t->stack->form.layers].input;
  t->count = 0;
  for (size_t row = u->row; row < u->row + u->rows; row++) {
    if (t->run->targets[row] < 0) continue;
    float *to = t->x + t->count * step;
    memcpy(to, rows + row * d, d * sizeof *to);
    if (scale != 0 && scale != 1)
      for (size_t x = 0; x < d; x++) to[x] *= scale;
    t->outcome[t->count] = (struct outcome){.most = -INFINITY};
    t->row[t->count++] = row;
  }
}

static void make_block(struct output_tile *t, size_t first, size_t count) {
  const struct gemm *g = t->stack->output;
  for (size_t at = 0, columns; at < count; at += columns) {
    columns = size_min(gemm_columns(g, first + at), count - at);
    gemm_run(g, first + at, t->count, t->x, row_floats(t->stack), t->product);
    for (size_t i = 0; i < t->count; i++)
      memcpy(t->logit + i * BLOCK_TOKENS + at, t->product + i * KERNEL_PANEL_MAX,
             columns * sizeof *t->logit);
  }
}

static void take_block(struct output_tile *t, const struct unit *u, size_t first, size_t count) {
  const struct kernel *k = t->stack->kernel;
  const size_t top = t->run->top_count;
  for (size_t i = 0; i < t->count; i++) {
    const float *logit = t->logit + i * BLOCK_TOKENS;
    const size_t row = t->row[i], target = (size_t)t->run->targets[row];
    if (k->peak(count, logit) >= KERNEL_NOT_FINITE) {
      run_note_fault(u->run, u->step, row);
      continue;
    }
    add_block(k, &t->outcome[i], logit, count, t->spare);
    if (target >= first && target - first < count) t->outcome[i].target = logit[target - first];
    if (top > 0)
      list_block(&t->outcome[i], top, logit, first, count, t->run->space->top_tokens + row * top,
                 t->run->space->top_logs + row * top);
  }
}

static void put_rows(const struct output_tile *t) {
  const size_t top = t->run->top_count;
  for (size_t i = 0; i < t->count; i++) {
    const struct outcome *o = &t->outcome[i];
    const double log_sum = o->most + log(o->sum);
    float *kept = t->run->space->top_logs + t->row[i] * top;
    t->run->space->logs[t->row[i]] = (float)(o->target - log_sum);
    for (size_t j = 0; j < o->listed; j++) kept[j] = (float)(kept[j] - log_sum);
  }
}

static void output_rows(const struct stack *s, const struct unit *u, float *scratch) {
  const size_t tokens = s->form.embedding.tokens;
  struct output_tile t = {.stack = s, .run = stack_run_of(u->run), .x = scratch};
  t.product = t.x + STACK_OUTPUT_ROWS * row_floats(s);
  t.logit = t.product + STACK_OUTPUT_ROWS * KERNEL_PANEL_MAX;
  t.spare = t.logit + STACK_OUTPUT_ROWS * BLOCK_TOKENS;
  gather_rows(&t, u);
  for (size_t first = 0, count; t.count > 0 && first < tokens; first += count) {
    count = size_min(BLOCK_TOKENS, tokens - first);
    make_block(&t, first, count);
    take_block(&t, u, first, count);
  }
  put_rows(&t);
}

/* --- the step --- */

static bool output_unit(const struct step *step, struct cursor *at, struct unit *u) {
  return stack_run_of(u->run)->targets && stack_rows_unit(step, at, u);
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
  return stack_fault(stack_step_of(step), r, "the logits of", row, e);
}

const struct step stack_step_output = {.unit = output_unit,
                                       .work = stack_rows_work,
                                       .compute = compute_output,
                                       .fault = fault_of_output};
