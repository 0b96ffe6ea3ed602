/* pooling: the rows of an item become one vector, or the scores of its classes. */
#include <math.h>
#include <string.h>

#include "core/base/size.h"
#include "core/forward/forward.h"
#include "core/kernel/gemm.h"

const char *const stack_pool_names[] = {[STACK_POOL_NONE] = "none",
                                        [STACK_POOL_CLS] = "cls",
                                        [STACK_POOL_MEAN] = "mean",
                                        [STACK_POOL_MAX] = "max",
                                        [STACK_POOL_LAST] = "last",
                                        [STACK_POOL_MEAN_SQRT_LEN] = "mean_sqrt_len",
                                        [STACK_POOL_WEIGHTED_MEAN] = "weighted_mean",
                                        [STACK_POOL_POOLER] = "pooler",
                                        NULL};

enum { POOL_ITEMS = 16 }; /* of a unit: these share the reading of the matrices */

/* --- rows to a vector --- */

/* The mean of the rows from `from` on, by the pooling's weights. Each number is summed in double,
 * row after row. */
static void pool_mean(enum stack_pool pool, const float *row, size_t from, size_t rows, size_t d,
                      float *to, double *sum) {
  const bool weighted = pool == STACK_POOL_WEIGHTED_MEAN;
  const double n = (double)rows, less = (double)from;
  const double by = weighted                           ? (n * (n + 1) - less * (less + 1)) / 2
                    : pool == STACK_POOL_MEAN_SQRT_LEN ? sqrt(n - less)
                                                       : n - less;
  memset(sum, 0, d * sizeof *sum);
  for (size_t i = from; i < rows; i++) {
    const double weight = weighted ? (double)(i + 1) : 1;
    for (size_t x = 0; x < d; x++) sum[x] += weight * row[i * d + x];
  }
  for (size_t x = 0; x < d; x++) to[x] = (float)(sum[x] / by);
}

static void pool_item(const struct stack *s, const struct stack_run *r, size_t item, float *to,
                      double *sum) {
  const size_t d = s->form.width, rows = r->geometry.item[item].q;
  const size_t from = r->left_out ? r->left_out[item] : 0;
  const float *row = r->space->flow[s->form.layers].input + r->geometry.item[item].q_row * d;
  if (r->pool == STACK_POOL_MAX) {
    memcpy(to, row + from * d, d * sizeof *to);
    for (size_t i = from + 1; i < rows; i++)
      for (size_t x = 0; x < d; x++) to[x] = row[i * d + x] > to[x] ? row[i * d + x] : to[x];
  } else if (stack_pool_is_of_all(r->pool)) {
    pool_mean(r->pool, row, from, rows, d, to, sum);
  } else {
    memcpy(to, r->pool == STACK_POOL_LAST ? row + (rows - 1) * d : row, d * sizeof *to);
  }
}

/* --- vectors through a matrix --- */

struct pooled {
  size_t items, size;
  float *vector, *other; /* [items, row] the vectors, and room for the products that replace them */
  size_t row;
  float *product; /* scratch of products */
};

/* Activations. Adding z - z, which is 0 or not a number, keeps numbers that are not finite so, and
 * they are found. */
static float bend_tanh(float z) { return (float)tanh(z) + (z - z); }
static float bend_relu(float z) { return (z > 0 ? z : 0) + (z - z); }
static float bend_not(float z) { return z; }

static void multiply(struct pooled *p, const struct gemm *g, size_t out, float bend(float z)) {
  struct gathered_part part = {.rows = p->items, .to = p->other, .to_row = p->row};
  const struct gathered_product product = {
      .matrix = g, .end = out, .x = p->vector, .x_row = p->row, .scratch = p->product};
  gathered_multiply(&product, &part, 1);
  for (size_t i = 0; i < p->items; i++)
    for (size_t x = 0; x < out; x++) p->other[i * p->row + x] = bend(p->other[i * p->row + x]);
  float *done = p->other;
  p->other = p->vector, p->vector = done, p->size = out;
}

/* Adds the inputs of a dense layer, which are still there, to its outputs: as they are, or through
 * a matrix (not gathered_multiply, which does not add). */
static void add_residual(struct pooled *p, const struct gemm *skip) {
  struct gemm_input input;
  if (skip)
    input = gemm_input(skip, p->items, p->other, p->row, p->product + p->items * KERNEL_PANEL_MAX);
  for (size_t first = 0, columns; first < p->size; first += columns) {
    columns = skip ? gemm_columns(skip, first) : p->size;
    if (skip) gemm_run(skip, first, &input, p->product);
    const float *from = skip ? p->product : p->other;
    const size_t row = skip ? KERNEL_PANEL_MAX : p->row;
    for (size_t i = 0; i < p->items; i++)
      for (size_t x = 0; x < columns; x++) p->vector[i * p->row + first + x] += from[i * row + x];
  }
}

/* Applies the function to finite scores of classes. */
static void apply_function(enum stack_function function, float *x, size_t count) {
  if (function == STACK_FUNCTION_SOFTMAX) {
    float top = x[0];
    double sum = 0;
    for (size_t i = 1; i < count; i++) top = x[i] > top ? x[i] : top;
    for (size_t i = 0; i < count; i++) sum += exp((double)x[i] - top);
    for (size_t i = 0; i < count; i++) x[i] = (float)(exp((double)x[i] - top) / sum);
  }
  if (function == STACK_FUNCTION_SIGMOID)
    for (size_t i = 0; i < count; i++) x[i] = (float)(1 / (1 + exp(-(double)x[i])));
}

/* --- the step --- */

/* Numbers of the widest vector, in whole cache lines. */
static size_t widest(const struct stack *s) {
  size_t most = size_max(s->form.width, s->form.classifier.count);
  for (size_t i = 0; i < STACK_DENSE_MOST; i++)
    most = size_max(most, s->form.pooling.dense[i].size);
  return size_round_up(most, 16);
}

/* The scratch of products with a matrix, which may be NULL. */
static size_t product_floats(const struct gemm *g) {
  return g ? gemm_scratch_floats(g, POOL_ITEMS) : 0;
}

/* The scratch: sums in double, the vectors of a unit twice, and that of products. */
static size_t pool_floats(const struct stack *s) {
  size_t products = size_max(product_floats(s->pooler),
                             size_max(product_floats(s->first), product_floats(s->classes)));
  for (size_t i = 0; i < STACK_DENSE_MOST; i++)
    products =
        size_max(products, size_max(product_floats(s->dense[i]), product_floats(s->skip[i])));
  return 2 * POOL_ITEMS * widest(s) + products + 2 * size_round_up(s->form.width, 16);
}

static void pool_items(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack *s = step->stack;
  const struct stack_run *r = stack_run_of(u->run);
  const struct stack_dense *dense = s->form.pooling.dense;
  const struct stack_classifier *c = &s->form.classifier;
  const size_t row = widest(s), d = s->form.width, size = r->output_size;
  struct pooled p = {.items = u->items, .size = d, .row = row};
  p.vector = (float *)scratch + 2 * size_round_up(d, 16);
  p.other = p.vector + POOL_ITEMS * row;
  p.product = p.other + POOL_ITEMS * row;
  for (size_t i = 0; i < u->items; i++) pool_item(s, r, u->item + i, p.vector + i * row, scratch);
  if (r->pool == STACK_POOL_POOLER) multiply(&p, s->pooler, d, bend_tanh);
  if (r->pool == STACK_POOL_CLASSES) {
    multiply(&p, c->pooler ? s->pooler : s->first, d, c->relu ? bend_relu : bend_tanh);
    multiply(&p, s->classes, c->count, bend_not);
  } else if (!r->dense_left) {
    for (size_t i = 0; i < STACK_DENSE_MOST && dense[i].size; i++) {
      multiply(&p, s->dense[i], dense[i].size, dense[i].tanh ? bend_tanh : bend_not);
      if (dense[i].residual) add_residual(&p, s->skip[i]);
    }
  }
  for (size_t i = 0; i < u->items; i++) {
    float *to = r->outputs + (u->item + i) * size;
    memcpy(to, p.vector + i * row, size * sizeof *to);
    double squares = 0; /* of the length */
    for (size_t x = 0; r->normalize && x < size; x++) squares += (double)to[x] * to[x];
    for (size_t x = 0; x < size && squares > 0; x++) to[x] = (float)(to[x] / sqrt(squares));
    if (s->kernel->peak(size, to) >= KERNEL_NOT_FINITE)
      run_record_fault(u->run, u->step, u->item + i);
    else if (r->pool == STACK_POOL_CLASSES)
      apply_function(r->function, to, size);
  }
}

static bool pool_unit(const struct step *step, struct cursor *at, struct unit *u) {
  (void)step;
  const struct stack_run *r = stack_run_of(u->run);
  if (r->pool == STACK_POOL_NONE || at->item == r->geometry.items) return false;
  u->item = at->item;
  u->items = size_min(POOL_ITEMS, r->geometry.items - at->item);
  at->item += u->items;
  return true;
}

/* Operations for items with `rows` rows in all. */
static double items_work(const struct stack *s, size_t items, size_t rows) {
  const struct stack_form *f = &s->form;
  const double d = (double)f->width;
  double dense = 0, in = d;
  for (size_t i = 0; i < STACK_DENSE_MOST && f->pooling.dense[i].size; i++) {
    const double out = (double)f->pooling.dense[i].size;
    dense += in * out * (s->skip[i] ? 2 : 1);
    in = out;
  }
  return 4 * d * (double)rows +
         2 * (d * d + fmax(dense, d * (double)f->classifier.count)) * (double)items;
}

static double pool_work(const struct step *step, const struct unit *u) {
  const struct item *item = &stack_run_of(u->run)->geometry.item[u->item];
  const struct item *last = item + u->items - 1;
  return items_work(stack_step_of(step)->stack, u->items, last->q_row + last->q - item->q_row);
}

double stack_pool_work(const struct stack *s, const struct stack_run *r) {
  return r->pool == STACK_POOL_NONE ? 0 : items_work(s, r->geometry.items, r->geometry.q_rows);
}

static enum status fault_of_pool(const struct step *step, const struct run *r, uint64_t item,
                                 struct error *e) {
  const bool classes = stack_run_of(r)->pool == STACK_POOL_CLASSES;
  (void)step;
  return error_set(e, STATUS_NOT_FINITE, "the %s of item %zu exceeds the float32 range",
                   classes ? "score of a class" : "vector", (size_t)item);
}

const struct stack_step stack_step_pool = {.step = {.unit = pool_unit,
                                                    .work = pool_work,
                                                    .compute = stack_compute_kernels,
                                                    .fault = fault_of_pool},
                                           .floats = pool_floats,
                                           .each = pool_items};
