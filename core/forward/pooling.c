/* pooling: the rows of an item become vectors, and these go through the layers of a head: dense
 * layers, a pooler, or a classifier. */
#include <math.h>
#include <string.h>

#include "core/base/size.h"
#include "core/forward/forward.h"
#include "core/kernel/gemm.h"

const char *const stack_pool_names[STACK_POOLS + 1] = {[STACK_POOL_NONE] = "none",
                                                       [STACK_POOL_CLS] = "cls",
                                                       [STACK_POOL_MEAN] = "mean",
                                                       [STACK_POOL_MAX] = "max",
                                                       [STACK_POOL_LAST] = "last",
                                                       [STACK_POOL_MEAN_SQRT_LEN] = "mean_sqrt_len",
                                                       [STACK_POOL_WEIGHTED_MEAN] = "weighted_mean",
                                                       [STACK_POOL_POOLER] = "pooler",
                                                       [STACK_POOL_SPARSE] = "sparse",
                                                       [STACK_POOL_MULTI_VECTOR] = "multi_vector"};

static const struct {
  enum stack_vectors vectors;
  unsigned after;
} meaning[STACK_POOLS] = {
    [STACK_POOL_NONE] = {STACK_VECTORS_EACH, 0},
    [STACK_POOL_CLS] = {STACK_VECTORS_FIRST, STACK_AFTER_DENSE},
    [STACK_POOL_MEAN] = {STACK_VECTORS_MEAN, STACK_AFTER_DENSE},
    [STACK_POOL_MAX] = {STACK_VECTORS_MAX, STACK_AFTER_DENSE},
    [STACK_POOL_LAST] = {STACK_VECTORS_LAST, STACK_AFTER_DENSE},
    [STACK_POOL_MEAN_SQRT_LEN] = {STACK_VECTORS_MEAN_SQRT_LEN, STACK_AFTER_DENSE},
    [STACK_POOL_WEIGHTED_MEAN] = {STACK_VECTORS_WEIGHTED_MEAN, STACK_AFTER_DENSE},
    [STACK_POOL_SPARSE] = {STACK_VECTORS_EACH, 0},
    [STACK_POOL_MULTI_VECTOR] = {STACK_VECTORS_EACH, STACK_AFTER_DENSE},
    [STACK_POOL_POOLER] = {STACK_VECTORS_FIRST, STACK_AFTER_POOLER | STACK_AFTER_DENSE}};

enum stack_vectors stack_pool_vectors(enum stack_pool pool) { return meaning[pool].vectors; }

void stack_set_pool(struct stack_run *r, enum stack_pool pool) {
  r->vectors = meaning[pool].vectors;
  r->after = meaning[pool].after;
  r->want_sparse = pool == STACK_POOL_SPARSE;
}

enum { POOL_VECTORS = 16 }; /* of a unit: these share the reading of the matrices */

/* --- rows to vectors --- */

/* The mean of the rows from `from` on, by their weights. Each number is summed in double, row after
 * row. */
static void pool_mean(enum stack_vectors of, const float *row, size_t from, size_t rows, size_t d,
                      float *to, double *sum) {
  const bool weighted = of == STACK_VECTORS_WEIGHTED_MEAN;
  const double n = (double)rows, less = (double)from;
  const double by = weighted                            ? (n * (n + 1) - less * (less + 1)) / 2
                    : of == STACK_VECTORS_MEAN_SQRT_LEN ? sqrt(n - less)
                                                        : n - less;
  memset(sum, 0, d * sizeof *sum);
  for (size_t i = from; i < rows; i++) {
    const double weight = weighted ? (double)(i + 1) : 1;
    for (size_t x = 0; x < d; x++) sum[x] += weight * row[i * d + x];
  }
  for (size_t x = 0; x < d; x++) to[x] = (float)(sum[x] / by);
}

static const float *output_rows_of(const struct stack *s, const struct stack_run *r, size_t row) {
  return r->space->flow[s->form.layers].input + row * s->form.width;
}

/* The row of an item that a vector of one row is. */
static size_t only_row(const struct stack *s, const struct stack_run *r, size_t item) {
  const struct stack_pooling *p = &s->form.pooling;
  const struct item *at = &r->geometry.item[item];
  if (r->vectors == STACK_VECTORS_LAST) return at->q - 1;
  if (!p->ends || !(r->after & STACK_AFTER_POOLER)) return 0;
  const int32_t *token = r->tokens + at->q_row;
  size_t row = 0;
  if (p->end < 0) {
    for (size_t i = 1; i < at->q; i++)
      if (token[i] > token[row]) row = i;
    return row;
  }
  while (row < at->q && token[row] != p->end) row++;
  return row < at->q ? row : 0;
}

static void pool_item(const struct stack *s, const struct stack_run *r, size_t item, float *to,
                      double *sum) {
  const size_t d = s->form.width, rows = r->geometry.item[item].q;
  const size_t from = r->left_out ? r->left_out[item] : 0;
  const float *row = output_rows_of(s, r, r->geometry.item[item].q_row);
  if (r->vectors == STACK_VECTORS_MAX) {
    memcpy(to, row + from * d, d * sizeof *to);
    for (size_t i = from + 1; i < rows; i++)
      for (size_t x = 0; x < d; x++) to[x] = row[i * d + x] > to[x] ? row[i * d + x] : to[x];
  } else if (stack_vectors_are_of_all(r->vectors)) {
    pool_mean(r->vectors, row, from, rows, d, to, sum);
  } else {
    memcpy(to, row + only_row(s, r, item) * d, d * sizeof *to);
  }
}

/* --- vectors through a matrix --- */

struct pooled {
  size_t count, size;
  float *vector, *other; /* [count, row] the vectors, and room for the products that replace them */
  size_t row;
  float *product; /* scratch of products */
};

/* Copies rows [count, d] that follow each other. */
static void take_rows(struct pooled *p, const float *from, size_t count, size_t d) {
  p->count = count;
  p->size = d;
  for (size_t i = 0; i < count; i++) memcpy(p->vector + i * p->row, from + i * d, d * sizeof *from);
}

static void multiply(struct pooled *p, const struct gemm *g, size_t out) {
  struct gathered_part part = {.rows = p->count, .to = p->other, .to_row = p->row};
  const struct gathered_product product = {
      .matrix = g, .end = out, .x = p->vector, .x_row = p->row, .scratch = p->product};
  gathered_multiply(&product, &part, 1);
  float *done = p->other;
  p->other = p->vector, p->vector = done, p->size = out;
}

/* Adding z - z, which is 0 or not a number, keeps numbers that are not finite so, and they are
 * found. */
static void bend_tanh(struct pooled *p) {
  for (size_t i = 0; i < p->count; i++)
    for (size_t x = 0; x < p->size; x++) {
      float *z = &p->vector[i * p->row + x];
      *z = (float)tanh(*z) + (*z - *z);
    }
}

/* Adds the inputs of a dense layer, which are still there, to its outputs: as they are, or through
 * a matrix (not gathered_multiply, which does not add). */
static void add_residual(struct pooled *p, const struct gemm *skip) {
  struct gemm_input input;
  if (skip)
    input = gemm_input(skip, p->count, p->other, p->row, p->product + p->count * KERNEL_PANEL_MAX);
  for (size_t first = 0, columns; first < p->size; first += columns) {
    columns = skip ? gemm_columns(skip, first) : p->size;
    if (skip) gemm_run(skip, first, &input, p->product);
    const float *from = skip ? p->product : p->other;
    const size_t row = skip ? KERNEL_PANEL_MAX : p->row;
    for (size_t i = 0; i < p->count; i++)
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

/* Passes the vectors through what is before the classes' own matrix. */
static void pass_first(const struct stack *s, struct pooled *p) {
  const struct stack_classifier *c = &s->form.classifier;
  const size_t d = s->form.width;
  if (!c->pooler && !s->first) return;
  multiply(p, c->pooler ? s->pooler : s->first, d);
  if (c->pooler || c->tanh) {
    bend_tanh(p);
  } else {
    for (size_t i = 0; i < p->count; i++)
      s->kernel->activate(c->activation, d, p->vector + i * p->row, NULL);
  }
  if (!c->norm.factor) return;
  struct kernel_norm n = stack_norm_rows(s, &c->norm, p->count, p->vector, p->vector);
  n.x_row = n.y_row = p->row;
  s->kernel->norm(&n);
}

/* Makes one vector of an item: the mean of what the first layer makes of each row. The classes are
 * linear: the mean of the rows' scores is the score of this mean. */
static void pool_late(const struct stack *s, const struct stack_run *r, size_t item,
                      struct pooled *p, double *sum) {
  const struct item *at = &r->geometry.item[item];
  const size_t d = s->form.width;
  memset(sum, 0, d * sizeof *sum);
  for (size_t row = 0; row < at->q; row += p->count) {
    take_rows(p, output_rows_of(s, r, at->q_row + row), size_min(POOL_VECTORS, at->q - row), d);
    pass_first(s, p);
    for (size_t i = 0; i < p->count; i++)
      for (size_t x = 0; x < d; x++) sum[x] += p->vector[i * p->row + x];
  }
  p->count = 1;
  for (size_t x = 0; x < d; x++) p->vector[x] = (float)(sum[x] / (double)at->q);
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
  return g ? gemm_scratch_floats(g, POOL_VECTORS) : 0;
}

/* The scratch: sums in double, the vectors of a unit twice, and that of products. */
static size_t pool_floats(const struct stack *s) {
  size_t products = size_max(product_floats(s->pooler),
                             size_max(product_floats(s->first), product_floats(s->classes)));
  for (size_t i = 0; i < STACK_DENSE_MOST; i++)
    products =
        size_max(products, size_max(product_floats(s->dense[i]), product_floats(s->skip[i])));
  return 2 * POOL_VECTORS * widest(s) + products + 2 * size_round_up(s->form.width, 16);
}

/* The number of a unit's first vector in the run, and how many it has. */
static size_t first_vector(const struct stack_run *r, const struct unit *u) {
  return stack_has_rows(r) ? u->row : u->item;
}
static size_t count_vectors(const struct stack_run *r, const struct unit *u) {
  return stack_has_rows(r) ? u->rows : u->items;
}

/* Makes the vectors of a unit, and passes them through what follows. */
static void make_vectors(const struct stack *s, const struct stack_run *r, const struct unit *u,
                         struct pooled *p, double *sum) {
  const struct stack_dense *dense = s->form.pooling.dense;
  const size_t d = s->form.width, first = first_vector(r, u);
  p->count = count_vectors(r, u);
  p->size = d;
  if (r->vectors == STACK_VECTORS_LATE)
    pool_late(s, r, first, p, sum);
  else if (stack_has_rows(r))
    for (size_t i = 0; i < p->count; i++)
      memcpy(p->vector + i * p->row, output_rows_of(s, r, stack_row_of(r, first + i)),
             d * sizeof *p->vector);
  else
    for (size_t i = 0; i < p->count; i++) pool_item(s, r, first + i, p->vector + i * p->row, sum);
  if (r->after & STACK_AFTER_POOLER && s->pooler) {
    multiply(p, s->pooler, d);
    bend_tanh(p);
  }
  for (size_t i = 0; r->after & STACK_AFTER_DENSE && i < STACK_DENSE_MOST && dense[i].size; i++) {
    multiply(p, s->dense[i], dense[i].size);
    if (dense[i].tanh) bend_tanh(p);
    if (dense[i].residual) add_residual(p, s->skip[i]);
  }
  if (!(r->after & STACK_AFTER_CLASSES)) return;
  if (r->vectors != STACK_VECTORS_LATE) pass_first(s, p);
  multiply(p, s->classes, s->form.classifier.count);
}

static void pool_vectors(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack *s = step->stack;
  const struct stack_run *r = stack_run_of(u->run);
  const size_t size = r->output_size, first = first_vector(r, u);
  struct pooled p = {.row = widest(s)};
  p.vector = (float *)scratch + 2 * size_round_up(s->form.width, 16);
  p.other = p.vector + POOL_VECTORS * p.row;
  p.product = p.other + POOL_VECTORS * p.row;
  make_vectors(s, r, u, &p, scratch);
  for (size_t i = 0; i < p.count; i++) {
    float *to = r->outputs + (first + i) * size;
    memcpy(to, p.vector + i * p.row, size * sizeof *to);
    double squares = 0; /* of the length */
    for (size_t x = 0; r->normalize && x < size; x++) squares += (double)to[x] * to[x];
    for (size_t x = 0; x < size && squares > 0; x++) to[x] = (float)(to[x] / sqrt(squares));
    if (s->kernel->peak(size, to) >= KERNEL_NOT_FINITE)
      run_record_fault(u->run, u->step, first + i);
    else if (r->after & STACK_AFTER_CLASSES)
      apply_function(r->function, to, size);
  }
}

/* Units of rows, or of items: each of one item where it has further rows to multiply. */
static bool pool_unit(const struct step *step, struct cursor *at, struct unit *u) {
  (void)step;
  const struct stack_run *r = stack_run_of(u->run);
  if (!stack_makes_vectors(r)) return false;
  if (stack_has_rows(r)) { /* the cursor's rows are vectors */
    u->row = at->row;
    u->rows = size_min(POOL_VECTORS, stack_vectors(r) - at->row);
    at->row += u->rows;
    return u->rows > 0;
  }
  if (at->item == r->geometry.items) return false;
  u->item = at->item;
  u->items =
      r->vectors == STACK_VECTORS_LATE ? 1 : size_min(POOL_VECTORS, r->geometry.items - at->item);
  at->item += u->items;
  return true;
}

/* Operations for vectors that are made of `rows` rows in all. */
static double vectors_work(const struct stack *s, const struct stack_run *r, size_t vectors,
                           size_t rows) {
  const struct stack_form *f = &s->form;
  const bool classes = r->after & STACK_AFTER_CLASSES;
  const double d = (double)f->width, first = f->classifier.pooler || s->first ? d * d : 0;
  double row = 4 * d, vector = r->after & STACK_AFTER_POOLER && s->pooler ? d * d : 0, in = d;
  for (size_t i = 0; r->after & STACK_AFTER_DENSE && i < STACK_DENSE_MOST; i++) {
    const double out = (double)f->pooling.dense[i].size;
    vector += in * out * (s->skip[i] ? 2 : 1);
    in = out;
  }
  if (classes) vector += d * (double)f->classifier.count;
  if (classes && r->vectors == STACK_VECTORS_LATE)
    row += 2 * first;
  else if (classes)
    vector += first;
  return row * (double)rows + 2 * vector * (double)vectors;
}

static double pool_work(const struct step *step, const struct unit *u) {
  const struct stack_run *r = stack_run_of(u->run);
  const struct stack *s = stack_step_of(step)->stack;
  if (stack_has_rows(r)) return vectors_work(s, r, u->rows, u->rows);
  const struct item *item = &r->geometry.item[u->item], *last = item + u->items - 1;
  return vectors_work(s, r, u->items, last->q_row + last->q - item->q_row);
}

double stack_pool_work(const struct stack *s, const struct stack_run *r) {
  const size_t vectors = stack_vectors(r);
  if (!stack_makes_vectors(r)) return 0;
  return vectors_work(s, r, vectors, stack_has_rows(r) ? vectors : r->geometry.q_rows);
}

static enum status fault_of_pool(const struct step *step, const struct run *run, uint64_t vector,
                                 struct error *e) {
  const struct stack_run *r = stack_run_of(run);
  const bool classes = r->after & STACK_AFTER_CLASSES;
  const char *what = classes ? "score of a class" : "vector";
  (void)step;
  if (!stack_has_rows(r))
    return error_set(e, STATUS_NOT_FINITE, "the %s of item %zu exceeds the float32 range", what,
                     (size_t)vector);
  const size_t row = stack_row_of(r, (size_t)vector), item = stack_item_of(&r->geometry, row);
  return error_set(e, STATUS_NOT_FINITE,
                   "the %s of position %zu of item %zu exceeds the float32 range", what,
                   row - r->geometry.item[item].q_row, item);
}

const struct stack_step stack_step_pool = {.step = {.unit = pool_unit,
                                                    .work = pool_work,
                                                    .compute = stack_compute_kernels,
                                                    .fault = fault_of_pool},
                                           .floats = pool_floats,
                                           .each = pool_vectors,
                                           .rows = POOL_VECTORS};
