/* stack_ref_answer: what responses take from outputs and weights: one vector, class scores, log
 * probabilities, thumbnails. */
#include <math.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/reference/ref_math.h"
#include "core/reference/stack_ref.h"

/* --- one vector of an item --- */

/* The row of the end of a text: of the first end token, or of the first that is the greatest. */
static size_t end_row(const struct stack_pooling *p, size_t n, const int32_t *token) {
  size_t row = 0;
  for (size_t i = n; i-- > 0;)
    if (p->end < 0 ? token[i] >= token[row] : token[i] == p->end) row = i;
  return row;
}

/* x [d] = one row, or a mean or the maximum over the rows. */
static void pool_rows(const struct stack_form *s, const struct ref_pooling *how, size_t n,
                      const double *rows, double *x) {
  const size_t d = s->width;
  const bool ends = s->pooling.ends && how->after & STACK_AFTER_POOLER,
             all = stack_vectors_are_of_all(how->vectors);
  const size_t one = how->vectors == STACK_VECTORS_LAST ? n - 1
                     : ends                             ? end_row(&s->pooling, n, how->token)
                                                        : 0;
  const size_t from = all ? how->left_out : one, end = all ? n : one + 1;
  for (size_t t = 0; t < d; t++) {
    double sum = 0, weights = 0, top = -INFINITY;
    for (size_t i = from; i < end; i++) {
      const double weight = how->vectors == STACK_VECTORS_WEIGHTED_MEAN ? (double)(i + 1) : 1;
      sum += weight * rows[i * d + t];
      weights += weight;
      top = fmax(top, rows[i * d + t]);
    }
    if (how->vectors == STACK_VECTORS_MEAN_SQRT_LEN) weights = sqrt(weights);
    x[t] = how->vectors == STACK_VECTORS_MAX ? top : sum / weights;
  }
}

/* Activations of dense layers. */
static double identity(double z) { return z; }

/* x [out] = activation(y), y [out] = W x [in] + b. */
static void pass_dense(const struct layer_matrix *w, size_t out, size_t in,
                       double activation(double z), double *x, double *y, struct error *e) {
  ref_product(w->weight, w->bias, out, in, x, y);
  for (size_t t = 0; t < out; t++) {
    if (!ref_is_float(y[t]))
      error_set(e, STATUS_NOT_FINITE, "the vector exceeds the float32 range");
    x[t] = activation(y[t]);
  }
}

/* Passes x [size] through the dense layers; returns its new size. `was` and `y` are scratch. A
 * layer with a residual adds its input, or the skip matrix times its input. */
static size_t pass_dense_layers(const struct stack_dense *l, size_t size, double *x, double *was,
                                double *y, struct error *e) {
  for (size_t i = 0; i < STACK_DENSE_MOST && l[i].size; i++) {
    memcpy(was, x, size * sizeof *x);
    pass_dense(&l[i].matrix, l[i].size, size, l[i].tanh ? tanh : identity, x, y, e);
    if (l[i].skip.weight) ref_product(l[i].skip.weight, l[i].skip.bias, l[i].size, size, was, y);
    for (size_t t = 0; l[i].residual && t < l[i].size; t++)
      x[t] += l[i].skip.weight ? y[t] : was[t];
    size = l[i].size;
  }
  return size;
}

/* Class scores: V norm(act(W x + b)) + c. y is scratch. */
static void score_classes(const struct stack_form *s, double *x, double *y, struct error *e) {
  const struct stack_classifier *c = &s->classifier;
  const bool pooler = c->pooler;
  const size_t d = s->width;
  if (pooler || c->first.weight) {
    pass_dense(pooler ? &s->pooling.pooler : &c->first, d, d, pooler || c->tanh ? tanh : identity,
               x, y, e);
    for (size_t t = 0; !pooler && !c->tanh && t < d; t++) x[t] = ref_activate(c->activation, x[t]);
    if (c->norm.factor) {
      memcpy(y, x, d * sizeof *x);
      ref_norm(y, d, s->norm == NORM_RMS, s->epsilon, c->norm.factor, c->norm.shift, x);
    }
  }
  pass_dense(&c->classes, c->count, d, identity, x, y, e);
}

/* The mean of the scores of all rows. */
static void score_late(const struct stack_form *s, size_t n, const double *rows, double *sum,
                       double *x, double *y, struct error *e) {
  const size_t d = s->width, count = s->classifier.count;
  for (size_t t = 0; t < count; t++) sum[t] = 0;
  for (size_t i = 0; i < n; i++) {
    memcpy(x, rows + i * d, d * sizeof *x);
    score_classes(s, x, y, e);
    for (size_t t = 0; t < count; t++) sum[t] += x[t];
  }
  for (size_t t = 0; t < count; t++) x[t] = sum[t] / (double)n;
}

/* The function of class scores y [count]. */
static void apply_function(enum stack_function function, size_t count, const double *y, double *x) {
  double top = -INFINITY, sum = 0;
  for (size_t t = 0; t < count; t++) top = fmax(top, y[t]);
  for (size_t t = 0; t < count; t++) sum += exp(y[t] - top);
  for (size_t t = 0; t < count; t++) {
    if (function == STACK_FUNCTION_SOFTMAX) x[t] = exp(y[t] - top) / sum;
    if (function == STACK_FUNCTION_SIGMOID) x[t] = 1 / (1 + exp(-y[t]));
  }
}

enum status stack_ref_pool(const struct stack_form *s, const struct ref_pooling *how, size_t n,
                           const double *outputs, double *vector, struct error *e) {
  const struct stack_pooling *p = &s->pooling;
  const size_t d = s->width;
  const size_t classes = how->after & STACK_AFTER_CLASSES ? s->classifier.count : 0;
  size_t size = classes ? classes : d, most = d > classes ? d : classes;
  for (size_t i = 0; i < STACK_DENSE_MOST; i++)
    if (p->dense[i].size > most) most = p->dense[i].size;
  struct arena a;
  arena_init(&a, NULL);
  double *x = arena_alloc(&a, most, sizeof *x, e), *y = arena_alloc(&a, most, sizeof *y, e),
         *was = arena_alloc(&a, most, sizeof *was, e);
  if (!e->status) {
    pool_rows(s, how, n, outputs, x);
    if (how->after & STACK_AFTER_POOLER && p->pooler.weight)
      pass_dense(&p->pooler, d, d, tanh, x, y, e);
    if (how->after & STACK_AFTER_DENSE) size = pass_dense_layers(p->dense, d, x, was, y, e);
    if (how->vectors == STACK_VECTORS_LATE)
      score_late(s, n, outputs, was, x, y, e);
    else if (classes)
      score_classes(s, x, y, e);
    if (classes) memcpy(y, x, classes * sizeof *y), apply_function(how->function, classes, y, x);
    if (how->dimensions) size = how->dimensions;
    if (how->normalize) { /* to length 1 */
      double squares = 0;
      for (size_t t = 0; t < size; t++) squares += x[t] * x[t];
      for (size_t t = 0; squares > 0 && t < size; t++) x[t] /= sqrt(squares);
    }
    memcpy(vector, x, size * sizeof *x);
  }
  arena_free(&a);
  return e->status;
}

/* --- the next token --- */

void stack_ref_log_probabilities(const struct stack_form *s, const double *row, double *logs) {
  const struct stack_output *o = &s->output;
  const float *weight = o->tied ? s->embedding.token : o->matrix.weight;
  const size_t tokens = s->embedding.tokens, d = s->width;
  double most = -INFINITY, sum = 0;
  for (size_t t = 0; t < tokens; t++) {
    double logit = 0;
    for (size_t x = 0; x < d; x++) logit += row[x] * weight[t * d + x];
    if (o->scale != 0) logit *= o->scale;
    logs[t] = o->matrix.bias ? logit + o->matrix.bias[t] : logit;
    if (o->cap > 0) logs[t] = o->cap * tanh(logs[t] / o->cap);
    most = fmax(most, logs[t]);
  }
  for (size_t t = 0; t < tokens; t++) sum += exp(logs[t] - most);
  for (size_t t = 0; t < tokens; t++) logs[t] -= most + log(sum);
}

/* --- thumbnails --- */

void stack_ref_thumbnail(const double *weights, size_t rows, size_t columns, size_t most,
                         uint8_t *bytes) {
  const size_t r = rows < most ? rows : most, c = columns < most ? columns : most;
  for (size_t y = 0; y < r; y++)
    for (size_t x = 0; x < c; x++) {
      double top = 0;
      for (size_t i = y * rows / r; i < (y + 1) * rows / r; i++)
        for (size_t j = x * columns / c; j < (x + 1) * columns / c; j++)
          top = fmax(top, weights[i * columns + j]);
      bytes[y * c + x] = (uint8_t)floor(255 * top + 0.5);
    }
}
