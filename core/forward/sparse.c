/* sparse: weights of tokens: each row weighs its own token, or the logits of an item's rows are
 * pooled for each token.
 *
 * For logits, the rows are transformed first, by a step of its own. Then the columns of the
 * output's matrix are shared out: a unit computes some tokens' logits for all rows of a run, and
 * the rows of merged runs go through the matrix together. A logit is not kept, only the maximum (or
 * sum) of each item: there are never logits of all rows and all tokens. In the end the weights
 * above 0 are listed. A weight depends on the rows of its item alone, which are added in their
 * order. */
#include <math.h>
#include <string.h>

#include "core/base/size.h"
#include "core/forward/output.h"

enum { TOUCH_WEIGHT = 8 }; /* operations for each weight that is listed, about */
static const double unit_work = 2e7;

/* --- the transform --- */

static size_t transform_floats(const struct stack *s) {
  return s->transform ? gemm_scratch_floats(s->transform, s->tile) : 0;
}

static void transform_rows(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack *s = step->stack;
  struct stack_run *r = stack_run_of(u->run);
  const size_t d = s->form.width, read = stack_form_output(&s->form);
  const float *from = r->space->flow[s->form.layers].input + u->row * d;
  float *to = r->space->transformed + u->row * read;
  const size_t bad = output_transform(s, u->rows, from, d, to, read, scratch);
  if (bad < u->rows) run_record_fault(u->run, u->step, u->row + bad);
}

static bool transform_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack *s = stack_step_of(step)->stack;
  return s->transform && stack_weighs_logits(s, stack_run_of(u->run)) &&
         stack_rows_unit(step, at, u);
}

const struct stack_step stack_step_transform = {.step = STACK_ROWS_STEP(transform_unit),
                                                .floats = transform_floats,
                                                .each = transform_rows,
                                                .what = "the transform before the logits of"};

/* --- the weights --- */

/* Columns of all rows of a batch, of about as much work as is worth a unit. */
static size_t weigh_share(const struct step *step, const struct run *first) {
  const double row = stack_step_of(step)->row_work / (double)step->columns;
  size_t rows = 0;
  for (const struct run *r = first; r; r = r->next)
    if (stack_weighs_logits(stack_step_of(step)->stack, stack_run_of((struct run *)r)))
      rows += stack_run_of((struct run *)r)->geometry.q_rows;
  const double columns = rows ? unit_work / (row * (double)rows) : 0;
  return columns < (double)step->columns
             ? size_min(size_round_up((size_t)columns + 1, KERNEL_PANEL_MAX), step->columns)
             : step->columns;
}

static bool weigh_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_run *r = stack_run_of(u->run);
  if (!stack_weighs_logits(stack_step_of(step)->stack, r) || at->row >= r->geometry.q_rows)
    return false;
  u->row = at->row;
  u->rows = r->geometry.q_rows - at->row;
  at->row += u->rows;
  return true;
}

static double weigh_work(const struct step *step, const struct unit *u) {
  const double part = u->columns ? (double)u->columns / (double)step->columns : 1;
  return stack_step_of(step)->row_work * part * (double)u->rows;
}

/* The scratch: rows together, and that of products. */
static size_t weigh_floats(const struct stack *s) {
  if (!s->output) return 0;
  return s->tile * stack_read_floats(s) + gemm_scratch_floats(s->output, s->tile);
}

static float bend(const struct stack_sparse *f, float logit) {
  double z = logit > 0 ? log1p((double)logit) : 0;
  if (f->twice) z = log1p(z);
  return (float)z;
}

/* Adds the logits of an item's rows to its weights of the same tokens; returns as kernel.carry. */
static uint32_t pool_rows(const struct stack *s, size_t rows, size_t columns, const float *logit,
                          size_t stripe, float *weight) {
  const struct stack_sparse *f = &s->form.sparse;
  if (!f->sum) return s->kernel->greatest(rows, columns, logit, stripe, weight);
  uint32_t top = 0;
  for (size_t i = 0; i < rows; i++, logit += stripe) {
    const uint32_t peak = s->kernel->peak(columns, logit);
    top = peak > top ? peak : top;
    for (size_t x = 0; x < columns; x++)
      if (logit[x] > 0) weight[x] += bend(f, logit[x]);
  }
  return top;
}

/* Pools the logits of tokens first .. first + columns - 1 of a part, item by item. */
static void pool_part(const struct stack *s, struct gathered_part *p, size_t first, size_t columns,
                      const float *logit, size_t stripe) {
  const struct stack_run *r = stack_run_of(p->run);
  size_t item = stack_item_of(&r->geometry, p->row), rows;
  const float *at = logit;
  uint32_t top = 0;
  for (size_t row = p->row, end = p->row + p->rows; row < end; row += rows, at += rows * stripe) {
    while (row - r->geometry.item[item].q_row >= r->geometry.item[item].q) item++;
    const struct item *of = &r->geometry.item[item];
    float *weight = r->sparse.weight + r->sparse.at[item] + first;
    rows = size_min(end, of->q_row + of->q) - row;
    if (row == of->q_row) memset(weight, 0, columns * sizeof *weight);
    const uint32_t peak = pool_rows(s, rows, columns, at, stripe, weight);
    top = peak > top ? peak : top;
  }
  gathered_update(p, top, columns, logit, stripe);
}

static void weigh_tile(struct stack_tile *t, float *scratch) {
  const struct stack *s = t->step->stack;
  const struct gemm *g = s->output;
  const size_t read = stack_form_output(&s->form), tokens = s->form.embedding.tokens,
               stripe = gemm_stripe(g);
  const size_t end = t->columns ? size_min(t->column + t->columns, tokens) : tokens;
  float *product = scratch + s->tile * stack_read_floats(s);
  for (struct gathered_part *p = t->part; p < t->part + t->parts; p++)
    p->from = stack_run_of(p->run)->space->transformed + p->row * read;
  const float *x = gathered_rows(t->part, t->parts, read, scratch);
  const struct gemm_input in = gemm_input(g, t->rows, x, read, product + t->rows * stripe);
  for (size_t first = t->column, columns; first < end; first += columns) {
    columns = size_min(gemm_columns(g, first), end - first);
    gemm_run(g, first, &in, product);
    if (s->form.output.cap > 0) s->kernel->cap(s->form.output.cap, t->rows * stripe, product);
    const float *logit = product;
    for (struct gathered_part *p = t->part; p < t->part + t->parts; logit += p++->rows * stripe)
      pool_part(s, p, first, columns, logit, stripe);
  }
  gathered_record_faults(t->part, t->parts, t->number);
}

const struct stack_step stack_step_weigh = {.step = {.unit = weigh_unit,
                                                     .work = weigh_work,
                                                     .share = weigh_share,
                                                     .compute = stack_compute_tiles,
                                                     .fault = stack_fault_of_row},
                                            .floats = weigh_floats,
                                            .tile = weigh_tile,
                                            .what = "a logit of"};

/* --- the list --- */

static void list_items(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack *s = step->stack;
  const struct stack_sparse *f = &s->form.sparse;
  const size_t tokens = s->form.embedding.tokens;
  struct stack_run *r = stack_run_of(u->run);
  (void)scratch;
  for (size_t item = u->item; item < u->item + u->items; item++) {
    float *weight = r->sparse.weight + r->sparse.at[item];
    int32_t *token = r->sparse.token + r->sparse.at[item];
    size_t count = 0;
    for (size_t t = 0; t < tokens; t++) {
      const float w = f->sum ? weight[t] : bend(f, weight[t]);
      if (!(w > 0)) continue;
      token[count] = (int32_t)t;
      weight[count++] = w;
    }
    r->sparse.count[item] = count;
  }
}

static bool list_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_run *r = stack_run_of(u->run);
  if (!stack_weighs_logits(stack_step_of(step)->stack, r) || at->item == r->geometry.items)
    return false;
  u->item = at->item++;
  u->items = 1;
  return true;
}

static double list_work(const struct step *step, const struct unit *u) {
  return TOUCH_WEIGHT * (double)stack_step_of(step)->stack->form.embedding.tokens *
         (double)u->items;
}

const struct stack_step stack_step_sparse = {
    .step = {.unit = list_unit, .work = list_work, .compute = stack_compute}, .each = list_items};

/* --- rows that weigh their own tokens --- */

static bool is_special(const struct stack_run *r, int32_t token) {
  for (size_t i = 0; i < r->specials; i++)
    if (r->special[i] == token) return true;
  return false;
}

/* Moves a pair of a heap down to its place; the greatest token is at the top. */
static void sift(int32_t *token, float *weight, size_t from, size_t count) {
  for (size_t at = from, child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && token[child + 1] > token[child]) child++;
    if (token[at] >= token[child]) return;
    const int32_t t = token[at];
    const float w = weight[at];
    token[at] = token[child], weight[at] = weight[child];
    token[child] = t, weight[child] = w;
  }
}

/* Sorts pairs by token; of equal ones the greatest weight remains. Returns how many are left. */
static size_t sort_tokens(int32_t *token, float *weight, size_t count) {
  for (size_t i = count / 2; i > 0; i--) sift(token, weight, i - 1, count);
  for (size_t end = count; end > 1; end--) {
    const int32_t t = token[0];
    const float w = weight[0];
    token[0] = token[end - 1], weight[0] = weight[end - 1];
    token[end - 1] = t, weight[end - 1] = w;
    sift(token, weight, 0, end - 1);
  }
  size_t left = 0;
  for (size_t i = 0; i < count; i++) {
    if (left == 0 || token[i] != token[left - 1])
      token[left] = token[i], weight[left++] = weight[i];
    else if (weight[i] > weight[left - 1])
      weight[left - 1] = weight[i];
  }
  return left;
}

static void weigh_own_tokens(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack *s = step->stack;
  const struct layer_matrix *m = &s->form.sparse.row;
  const struct stack_run *r = stack_run_of(u->run);
  const struct item *item = &r->geometry.item[u->item];
  const size_t d = s->form.width;
  const float *rows = r->space->flow[s->form.layers].input;
  float *weight = r->sparse.weight + r->sparse.at[u->item];
  int32_t *token = r->sparse.token + r->sparse.at[u->item];
  size_t count = 0;
  (void)scratch;
  for (size_t row = item->q_row; row < item->q_row + item->q; row++) {
    const float w =
        (float)(s->kernel->dot(d, rows + row * d, m->weight) + (m->bias ? *m->bias : 0));
    if (!isfinite(w)) run_record_fault(u->run, u->step, row);
    if (!(w > 0) || is_special(r, r->tokens[row])) continue;
    token[count] = r->tokens[row];
    weight[count++] = w;
  }
  r->sparse.count[u->item] = sort_tokens(token, weight, count);
}

static bool own_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_run *r = stack_run_of(u->run);
  if (!r->want_sparse || stack_weighs_logits(stack_step_of(step)->stack, r) ||
      at->item == r->geometry.items)
    return false;
  u->item = at->item++;
  u->items = 1;
  return true;
}

static double own_work(const struct step *step, const struct unit *u) {
  const size_t rows = stack_run_of(u->run)->geometry.item[u->item].q;
  return 2.0 * (double)stack_step_of(step)->stack->form.width * (double)rows;
}

const struct stack_step stack_step_own_tokens = {.step = {.unit = own_unit,
                                                          .work = own_work,
                                                          .compute = stack_compute_kernels,
                                                          .fault = stack_fault_of_row},
                                                 .each = weigh_own_tokens,
                                                 .what = "the weight of"};

double stack_sparse_work(const struct stack *s, const struct stack_run *r) {
  if (r->want_sparse && !stack_weighs_logits(s, r))
    return 2.0 * (double)s->form.width * (double)r->geometry.q_rows;
  const double weights = (double)r->geometry.items * (double)s->form.embedding.tokens;
  return r->want_sparse ? (double)r->geometry.q_rows * output_work(s) + TOUCH_WEIGHT * weights : 0;
}
