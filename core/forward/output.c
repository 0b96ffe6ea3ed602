/* output: how likely each token is to come next. */
#include "core/forward/output.h"

#include <string.h>

#include "core/base/size.h"
#include "core/kernel/gemm.h"

enum { TOUCH_LOGIT = 200 }; /* operations for each logit behind its product, about */

/* --- the layout of the scratch: rows, a stripe of their products, a block of their logits --- */

size_t output_floats(const struct stack *s) {
  const size_t row = stack_row_floats(s) + KERNEL_PANEL_MAX + STACK_BLOCK_TOKENS;
  return s->output ? STACK_OUTPUT_ROWS * row + STACK_BLOCK_TOKENS : 0;
}

double stack_output_work(const struct stack *s) {
  return (double)s->form.embedding.tokens * (2.0 * (double)s->form.width + TOUCH_LOGIT);
}

void output_scale(const struct stack *s, float *row) {
  const float scale = s->form.output.scale;
  if (scale != 0 && scale != 1)
    for (size_t x = 0; x < s->form.width; x++) row[x] *= scale;
}

void stack_output_row(const struct stack *s, const struct stack_run *r, size_t row, float *to) {
  const size_t d = s->form.width;
  memcpy(to, r->space->flow[s->form.layers].input + row * d, d * sizeof *to);
  output_scale(s, to);
}

/* --- a tile of rows --- */

void output_tile_begin(struct output_tile *t, const struct stack *s, float *scratch) {
  t->stack = s;
  t->count = 0;
  t->x = scratch;
  t->product = t->x + STACK_OUTPUT_ROWS * stack_row_floats(s);
  t->logit = t->product + STACK_OUTPUT_ROWS * KERNEL_PANEL_MAX;
  t->spare = t->logit + STACK_OUTPUT_ROWS * STACK_BLOCK_TOKENS;
}

float *output_tile_add(struct output_tile *t, size_t row, int32_t target,
                       struct stack_likely likely) {
  const size_t i = t->count++;
  stack_outcome_begin(&t->outcome[i]);
  t->row[i] = row;
  t->target[i] = target;
  t->target_logit[i] = 0;
  t->likely[i] = likely;
  return t->x + i * stack_row_floats(t->stack);
}

void output_tile_block(struct output_tile *t, size_t first, size_t count) {
  const struct gemm *g = t->stack->output;
  for (size_t at = 0, columns; at < count; at += columns) {
    columns = size_min(gemm_columns(g, first + at), count - at);
    gemm_run(g, first + at, t->count, t->x, stack_row_floats(t->stack), t->product);
    for (size_t i = 0; i < t->count; i++)
      memcpy(t->logit + i * STACK_BLOCK_TOKENS + at, t->product + i * KERNEL_PANEL_MAX,
             columns * sizeof *t->logit);
  }
}

static void take_block(struct output_tile *t, const struct unit *u, size_t first, size_t count) {
  const struct kernel *k = t->stack->kernel;
  for (size_t i = 0; i < t->count; i++) {
    const float *logit = t->logit + i * STACK_BLOCK_TOKENS;
    const size_t target = (size_t)t->target[i];
    if (k->peak(count, logit) >= KERNEL_NOT_FINITE) {
      run_note_fault(u->run, u->step, t->row[i]);
      continue;
    }
    stack_outcome_add(k, &t->outcome[i], logit, first, count, &t->likely[i], t->spare);
    if (target >= first && target - first < count) t->target_logit[i] = logit[target - first];
  }
}

static void end_row(struct output_tile *t, const struct unit *u, size_t i) {
  const double log = t->target_logit[i] - stack_outcome_end(&t->outcome[i], &t->likely[i]);
  if (!stack_outcome_is_finite(&t->outcome[i], &t->likely[i], log))
    run_note_fault(u->run, u->step, t->row[i]);
  t->target_logit[i] = (float)log;
}

void output_tile_take(struct output_tile *t, const struct unit *u) {
  const size_t tokens = t->stack->form.embedding.tokens;
  for (size_t first = 0, count; t->count > 0 && first < tokens; first += count) {
    count = size_min(STACK_BLOCK_TOKENS, tokens - first);
    output_tile_block(t, first, count);
    take_block(t, u, first, count);
  }
  for (size_t i = 0; i < t->count; i++) end_row(t, u, i);
}

/* --- the outputs: rows that have a target, or all of them, whose logits are kept --- */

static struct stack_likely top_of(const struct stack_run *r, size_t row) {
  return (struct stack_likely){r->top_count, r->space->top_tokens + row * r->top_count,
                               r->space->top_logs + row * r->top_count};
}

struct stack_likely output_lens_likely(const struct stack_run *r, size_t l, size_t row) {
  const struct stack_lens *lens = &r->space->lens[l];
  const size_t at = r->space->target_at[row] * r->lens_count;
  return (struct stack_likely){r->lens_count, lens->token + at, lens->log_probability + at};
}

/* The lens of the last hidden state lists what the answer's likeliest tokens are: the longer one of
 * both lists is made, and the other is its beginning. */
static struct stack_likely longer_list(const struct stack_run *r, size_t last, size_t row) {
  if (!r->targets) return (struct stack_likely){0};
  return r->lens_count > r->top_count ? output_lens_likely(r, last, row) : top_of(r, row);
}

static void copy_list(const struct stack_likely *from, const struct stack_likely *to) {
  if (to->top == 0) return;
  memcpy(to->token, from->token, to->top * sizeof *to->token);
  memcpy(to->log, from->log, to->top * sizeof *to->log);
}

static void put_rows(const struct output_tile *t, const struct stack_run *r) {
  const size_t last = t->stack->form.layers;
  for (size_t i = 0; i < t->count; i++) {
    const size_t row = t->row[i];
    const bool lens = r->lens_count > r->top_count;
    const struct stack_likely other = lens      ? top_of(r, row)
                                      : r->lens ? output_lens_likely(r, last, row)
                                                : (struct stack_likely){0};
    r->space->logs[row] = t->target_logit[i];
    copy_list(&t->likely[i], &other);
  }
}

static void keep_block(struct output_tile *t, const struct unit *u, size_t first, size_t count) {
  const size_t tokens = t->stack->form.embedding.tokens;
  for (size_t i = 0; i < t->count; i++) {
    const float *logit = t->logit + i * STACK_BLOCK_TOKENS;
    float *kept = stack_run_of(u->run)->space->logits + t->row[i] * tokens + first;
    memcpy(kept, logit, count * sizeof *logit);
    if (t->stack->kernel->peak(count, logit) >= KERNEL_NOT_FINITE)
      run_note_fault(u->run, u->step, t->row[i]);
  }
}

static void keep_rows(struct output_tile *t, const struct unit *u) {
  const size_t tokens = t->stack->form.embedding.tokens;
  for (size_t first = 0, count; first < tokens; first += count) {
    count = size_min(STACK_BLOCK_TOKENS, tokens - first);
    output_tile_block(t, first, count);
    keep_block(t, u, first, count);
  }
}

static void output_rows(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack *s = step->stack;
  struct stack_run *r = stack_run_of(u->run);
  struct output_tile t;
  output_tile_begin(&t, s, scratch);
  for (size_t row = u->row; row < u->row + u->rows; row++) {
    const int32_t target = r->targets ? r->targets[row] : 0;
    if (target < 0) continue;
    const struct stack_likely likely = longer_list(r, s->form.layers, row);
    stack_output_row(s, r, row, output_tile_add(&t, row, target, likely));
  }
  if (!r->targets) {
    keep_rows(&t, u);
    return;
  }
  output_tile_take(&t, u);
  put_rows(&t, r);
}

/* --- the step --- */

static bool output_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_run *r = stack_run_of(u->run);
  return (r->targets || r->want_logits) && stack_rows_unit(step, at, u);
}

static enum status fault_of_output(const struct step *step, const struct run *r, uint64_t row,
                                   struct error *e) {
  return stack_fault(stack_step_of(step), r, "a logit or log probability of", row, e);
}

const struct stack_step stack_step_output = {.step = {.unit = output_unit,
                                                      .work = stack_rows_work,
                                                      .compute = stack_compute_kernels,
                                                      .fault = fault_of_output},
                                             .floats = output_floats,
                                             .each = output_rows};
