/* output: the logits and log probabilities of a run. */
#include "core/forward/output.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/base/size.h"

enum { TOUCH_LOGIT = 200 }; /* operations for each logit after its product, about */

/* --- the outcome of a row --- */

void stack_outcome_begin(struct stack_outcome *o) {
  *o = (struct stack_outcome){.most = -INFINITY};
}

void stack_outcome_add(const struct kernel *k, struct stack_outcome *o, const float *logit,
                       size_t first, size_t count, const struct stack_likely *likely,
                       float *scratch) {
  float most = logit[0];
  for (size_t i = 1; i < count; i++) most = logit[i] > most ? logit[i] : most;
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
  if (likely->top == 0) return;
  /* The list is in order; of equals the first one stays before the others. */
  float *kept = likely->log;
  for (size_t i = 0; i < count; i++) {
    if (o->listed == likely->top && !(logit[i] > kept[likely->top - 1])) continue;
    size_t at = o->listed < likely->top ? o->listed++ : likely->top - 1;
    for (; at > 0 && logit[i] > kept[at - 1]; at--)
      kept[at] = kept[at - 1], likely->token[at] = likely->token[at - 1];
    kept[at] = logit[i], likely->token[at] = (int32_t)(first + i);
  }
}

double stack_outcome_end(const struct stack_outcome *o, const struct stack_likely *likely) {
  const double log_sum = o->most + log(o->sum);
  for (size_t i = 0; i < o->listed; i++) likely->log[i] = (float)(likely->log[i] - log_sum);
  return log_sum;
}

bool stack_outcome_is_finite(const struct stack_outcome *o, const struct stack_likely *likely,
                             double log_probability) {
  return log_probability >= -FLT_MAX && (o->listed == 0 || isfinite(likely->log[o->listed - 1]));
}

/* --- tiles --- */

/* The scratch: rows, the same transformed, a block of their logits, one of scratch, and that of
 * products. */
size_t output_floats(const struct stack *s) {
  const size_t rows = STACK_OUTPUT_ROWS, more = s->transform ? stack_read_floats(s) : 0;
  if (!s->output) return 0;
  size_t product = gemm_scratch_floats(s->output, rows);
  if (s->transform) product = size_max(product, gemm_scratch_floats(s->transform, rows));
  return rows * (stack_row_floats(s) + more + STACK_BLOCK_TOKENS) + STACK_BLOCK_TOKENS + product;
}

void output_tile_begin(struct output_tile *t, const struct stack *s, float *scratch) {
  t->stack = s;
  t->count = 0;
  t->x = scratch;
  t->stride = stack_row_floats(s);
  t->logit = t->x + STACK_OUTPUT_ROWS * t->stride;
  t->transformed = s->transform ? t->logit : NULL;
  if (s->transform) t->logit += STACK_OUTPUT_ROWS * stack_read_floats(s);
  t->spare = t->logit + STACK_OUTPUT_ROWS * STACK_BLOCK_TOKENS;
  t->product = t->spare + STACK_BLOCK_TOKENS;
}

float *output_tile_add(struct output_tile *t, size_t row, int32_t target,
                       struct stack_likely likely) {
  const size_t i = t->count++;
  stack_outcome_begin(&t->outcome[i]);
  t->row[i] = row;
  t->target[i] = target;
  t->target_logit[i] = 0;
  t->likely[i] = likely;
  return t->x + i * t->stride;
}

size_t output_transform(const struct stack *s, size_t rows, const float *from, size_t from_row,
                        float *to, size_t to_row, float *scratch) {
  const size_t width = stack_form_output(&s->form);
  const struct gathered_activation activation = {.kind = s->form.output.activation};
  struct gathered_part part = {.rows = rows, .to = to, .to_row = to_row};
  const struct gathered_product product = {.matrix = s->transform,
                                           .end = width,
                                           .x = from,
                                           .x_row = from_row,
                                           .scratch = scratch,
                                           .activation = &activation};
  gathered_multiply(&product, &part, 1);
  struct kernel_norm n = stack_norm_rows(s, &s->form.output.norm, rows, to, to);
  n.count = width;
  n.x_row = n.y_row = to_row;
  const bool finite = s->kernel->norm(&n) < KERNEL_NOT_FINITE;
  size_t i = finite ? rows : 0;
  while (i < rows && s->kernel->peak(width, to + i * to_row) < KERNEL_NOT_FINITE) i++;
  return i;
}

/* Transforms the rows of a tile, if the stack does. */
static void transform_rows(struct output_tile *t, const struct unit *u) {
  const size_t stride = stack_read_floats(t->stack);
  if (!t->transformed || t->count == 0) return;
  const size_t bad =
      output_transform(t->stack, t->count, t->x, t->stride, t->transformed, stride, t->product);
  if (bad < t->count) run_record_fault(u->run, u->step, t->row[bad]);
  t->x = t->transformed;
  t->stride = stride;
}

/* Writes the logits of tokens first .. end - 1 to the place of a part that has all rows. */
static void multiply_rows(const struct output_tile *t, size_t first, size_t end,
                          struct gathered_part *to) {
  const struct gathered_product product = {.matrix = t->stack->output,
                                           .first = first,
                                           .end = end,
                                           .x = t->x,
                                           .x_row = t->stride,
                                           .scratch = t->product,
                                           .cap = t->stack->form.output.cap};
  gathered_multiply(&product, to, 1);
}

void output_tile_compute(struct output_tile *t, const struct unit *u) {
  const size_t tokens = t->stack->form.embedding.tokens;
  struct gathered_part block = {
      .rows = t->count, .bad = t->count, .to = t->logit, .to_row = STACK_BLOCK_TOKENS};
  transform_rows(t, u);
  for (size_t first = 0, count; t->count > 0 && first < tokens; first += count) {
    count = size_min(STACK_BLOCK_TOKENS, tokens - first);
    multiply_rows(t, first, first + count, &block);
    if (block.bad < t->count) run_record_fault(u->run, u->step, t->row[block.bad]);
    for (size_t i = 0; i < block.bad; i++) {
      const float *logit = t->logit + i * STACK_BLOCK_TOKENS;
      const size_t target = (size_t)t->target[i];
      stack_outcome_add(t->stack->kernel, &t->outcome[i], logit, first, count, &t->likely[i],
                        t->spare);
      if (target >= first && target - first < count) t->target_logit[i] = logit[target - first];
    }
  }
  for (size_t i = 0; i < t->count; i++) {
    const double log = t->target_logit[i] - stack_outcome_end(&t->outcome[i], &t->likely[i]);
    if (!stack_outcome_is_finite(&t->outcome[i], &t->likely[i], log))
      run_record_fault(u->run, u->step, t->row[i]);
    t->target_logit[i] = (float)log;
  }
}

void output_scale(const struct stack *s, float *row) {
  const float scale = s->form.output.scale;
  if (scale != 0 && scale != 1)
    for (size_t x = 0; x < s->form.width; x++) row[x] *= scale;
}

void output_row(const struct stack *s, const struct stack_run *r, size_t row, float *to) {
  const size_t d = s->form.width;
  memcpy(to, r->space->flow[s->form.layers].input + row * d, d * sizeof *to);
  output_scale(s, to);
}

/* --- the step: rows that have a target, or all of them, whose logits are kept --- */

struct stack_likely output_lens_likely(const struct stack_run *r, size_t l, size_t row) {
  const struct stack_lens *lens = &r->lens[l];
  const size_t at = r->space->target_at[row] * r->lens_count;
  return (struct stack_likely){r->lens_count, lens->token + at, lens->log_probability + at};
}

static struct stack_likely top_of(const struct stack_run *r, size_t row) {
  return (struct stack_likely){r->top_count, r->top_tokens + row * r->top_count,
                               r->top_log_probabilities + row * r->top_count};
}

/* The logit lens of the last hidden state lists the most likely tokens of the outputs: the longer
 * one of both lists is made, and the other one is its beginning. */
static void output_rows(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack *s = step->stack;
  struct stack_run *r = stack_run_of(u->run);
  const size_t last = s->form.layers, tokens = s->form.embedding.tokens;
  const bool lens = r->lens_count > r->top_count; /* is the lens' list the longer one? */
  struct output_tile t;
  output_tile_begin(&t, s, scratch);
  for (size_t row = u->row; row < u->row + u->rows; row++) {
    const int32_t target = r->targets ? r->targets[row] : 0;
    const struct stack_likely none = {0};
    if (target < 0) continue;
    const struct stack_likely likely = !r->targets ? none
                                       : lens      ? output_lens_likely(r, last, row)
                                                   : top_of(r, row);
    output_row(s, r, row, output_tile_add(&t, row, target, likely));
  }
  if (!r->targets) {
    struct gathered_part kept = {
        .run = u->run, .row = u->row, .rows = u->rows, .bad = u->rows, .to_row = tokens};
    kept.to = r->logits + u->row * tokens;
    transform_rows(&t, u);
    multiply_rows(&t, 0, tokens, &kept);
    gathered_record_faults(&kept, 1, u->step);
    return;
  }
  output_tile_compute(&t, u);
  for (size_t i = 0; i < t.count; i++) {
    const size_t row = t.row[i];
    struct stack_likely to = {0};
    if (lens)
      to = top_of(r, row);
    else if (r->lens)
      to = output_lens_likely(r, last, row);
    r->log_probabilities[row] = t.target_logit[i];
    if (to.top > 0) memcpy(to.token, t.likely[i].token, to.top * sizeof *to.token);
    if (to.top > 0) memcpy(to.log, t.likely[i].log, to.top * sizeof *to.log);
  }
}

static bool output_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_run *r = stack_run_of(u->run);
  return (r->targets || r->want_logits) && stack_rows_unit(step, at, u);
}

double output_work(const struct stack *s) {
  const double d = (double)s->form.width, read = (double)stack_form_output(&s->form);
  const double transform = s->transform ? 2.0 * d * read : 0;
  return (double)s->form.embedding.tokens * (2.0 * read + TOUCH_LOGIT) + transform;
}

const struct stack_step stack_step_output = {.step = STACK_ROWS_STEP(output_unit),
                                             .floats = output_floats,
                                             .each = output_rows,
                                             .what = "a logit or log probability of"};
