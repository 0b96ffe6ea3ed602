/* stack_ref: the forward pass of a Transformer, each formula as it is defined.
 *
 *     embed     rows = scale T[token] + P[position] + S[type], then a norm in some models
 *     layer     rows += attention(rows)                        self-attention
 *               rows += attention(rows, source)                cross-attention, in a decoder
 *               rows += W_2 act(W_1 rows + b_1) + b_2          feed-forward
 *     layer 0   rows = norm(rows + act(conv(embedded rows)))  in some models, behind it
 *     final     norm(rows)
 *
 * Each branch of a layer has a norm, of its input (pre-norm) or of the sum (post-norm); it may have
 * another one, of what it gives. */
#include "core/reference/stack_ref.h"

#include <math.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/reference/attention_ref.h"
#include "core/reference/ref_math.h"

struct ref_stack {
  const struct stack_form *s;
  const struct ref_text *text;
  const struct ref_hidden *out;
  struct error *e;   /* keeps the first number that exceeds the float32 range */
  double *entering;  /* [n, d] the input of a branch */
  double *branch;    /* [n, d] its output */
  double *up, *gate; /* [f] */
  float *positions;  /* [2 S, d] the table of disentangled positions, after its norm */
  double *embedded;  /* [d of the embedding] */
  uint8_t *seen;     /* [H, n, n] the mask of a layer's self-attention */
  uint8_t *all;      /* [H, n, source_n] the mask of cross-attention: ones */
};

static void check_row(const struct ref_stack *r, size_t row, const double *x, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (!ref_is_float(x[i]))
      error_set(r->e, STATUS_NOT_FINITE, "row %zu exceeds the float32 range", row);
}

static void check_rows(const struct ref_stack *r, const double *rows) {
  for (size_t i = 0; i < r->text->n; i++) check_row(r, i, rows + i * r->s->width, r->s->width);
}

static void norm_row(const struct stack_form *s, const struct stack_norm *norm, double *row) {
  if (norm->factor)
    ref_norm(row, s->width, s->norm == NORM_RMS, s->epsilon, norm->factor, norm->shift, row);
}

/* --- embed --- */

/* Number x of d of the embedding of a position. */
static double position_number(const struct stack_form *s, double p, size_t x) {
  const struct stack_embedding *m = &s->embedding;
  const size_t width = stack_form_embedded(s), half = width / 2;
  const double d = (double)width;
  double angle;
  switch (m->positions) {
  case POSITIONS_NONE:
    return 0;
  case POSITIONS_LEARNED:
    return m->position[(size_t)p * width + x];
  case POSITIONS_INTERLEAVED:
    angle = p / pow(10000, (double)(x - x % 2) / d);
    return x % 2 ? cos(angle) : sin(angle);
  case POSITIONS_HALVES:
    angle = p / pow(10000, 2 * (double)(x % half) / d);
    break;
  default:
    angle = p * pow(10000, -(double)(x % half) / ((double)half - 1));
  }
  return x < half ? sin(angle) : cos(angle);
}

/* `embedded`: room for a row before it is projected. */
static void embed_row(const struct stack_form *s, const struct ref_text *text, size_t i,
                      double *embedded, double *row) {
  const struct stack_embedding *m = &s->embedding;
  const size_t width = stack_form_embedded(s);
  const int32_t type = text->token_type ? text->token_type[i] : 0;
  double *made = m->project.weight ? embedded : row;
  for (size_t x = 0; x < width; x++) {
    made[x] = text->token ? m->scale * m->token[(size_t)text->token[i] * width + x]
                          : text->embedding[i * width + x];
    made[x] += position_number(s, (double)(i + m->first_position), x);
    if (m->type) made[x] += m->type[(size_t)type * width + x];
  }
  if (m->norm.factor)
    ref_norm(made, width, s->norm == NORM_RMS, s->epsilon, m->norm.factor, m->norm.shift, made);
  if (m->project.weight)
    ref_product(m->project.weight, m->project.bias, s->width, width, made, row);
}

/* --- layer --- */

/* The input of a branch: a copy of the rows, after the norm in a pre-norm model. */
static void enter_branch(const struct ref_stack *r, const struct stack_norm *norm,
                         const double *rows) {
  const size_t n = r->text->n, d = r->s->width;
  memcpy(r->entering, rows, n * d * sizeof *rows);
  for (size_t i = 0; r->s->place == NORM_PRE && i < n; i++)
    norm_row(r->s, norm, r->entering + i * d);
}

/* The residual connection: rows += branch, then the norm in a post-norm model. `after` is the norm
 * of the branch alone; NULL: there is none. */
static void leave_branch(const struct ref_stack *r, const struct stack_norm *after,
                         const struct stack_norm *norm, double *rows) {
  const size_t n = r->text->n, d = r->s->width;
  for (size_t i = 0; after && i < n; i++) norm_row(r->s, after, r->branch + i * d);
  ref_add(rows, 1, r->branch, n * d);
  for (size_t i = 0; r->s->place == NORM_POST && i < n; i++) norm_row(r->s, norm, rows + i * d);
}

/* Attention number `a`: self-attention of layer a, or after those of all layers, cross-attention.
 */
static void attend(const struct ref_stack *r, size_t a, const struct layer_shape *shape,
                   const struct layer_matrix *matrix) {
  const struct ref_text *text = r->text;
  const struct ref_hidden *out = r->out;
  const bool across = a >= r->s->layers;
  const double *keys = across ? text->source : r->entering;
  const struct ref_item item = {.q = text->n,
                                .k = across ? text->source_n : text->n,
                                .queries = r->entering,
                                .keys = keys,
                                .values = keys,
                                .seen = across ? r->all : r->seen,
                                .head_mask = text->head_mask ? text->head_mask[a] : NULL,
                                .masked_heads = out->weights != NULL};
  const struct ref_answer answer = {.outputs = r->branch,
                                    .weights = out->weights ? out->weights[a] : NULL};
  if (out->input) memcpy(out->input[a], r->entering, text->n * r->s->width * sizeof(double));
  attention_ref_item(shape, matrix, &item, &answer, r->e);
}

/* The self-attention of layer l. Its table of positions has a norm in some models. */
static void attend_self(const struct ref_stack *r, size_t l, const struct stack_layer *w) {
  const struct stack_form *s = r->s;
  const struct layer_shape *shape = &s->kind[w->kind].self;
  struct layer_matrix matrix[ROLE_COUNT];
  memcpy(matrix, w->self, sizeof matrix);
  for (size_t i = 0; w->norm_positions.factor && i < 2 * shape->position_span; i++) {
    for (size_t x = 0; x < s->width; x++)
      r->entering[x] = (double)w->self[ROLE_POSITION].weight[i * s->width + x];
    norm_row(s, &w->norm_positions, r->entering);
    for (size_t x = 0; x < s->width; x++) r->positions[i * s->width + x] = (float)r->entering[x];
    matrix[ROLE_POSITION].weight = r->positions;
  }
  enter_branch(r, &w->norm_self, r->out->state + (l + 1) * r->text->n * s->width);
  attend(r, l, shape, matrix);
}

/* y = W_2 act(W_1 x + b_1) + b_2, or gated W_2 (act(W_g x + b_g) * (W_1 x + b_1)) + b_2. */
static void forward_row(const struct ref_stack *r, const struct stack_layer *layer, size_t row) {
  const struct stack_form *s = r->s;
  const struct stack_forward *w = &layer->forward;
  const enum activation activation = s->kind[layer->kind].activation;
  const size_t d = s->width, f = s->forward_size;
  const double *x = r->entering + row * d;
  ref_product(w->up.weight, w->up.bias, f, d, x, r->up);
  check_row(r, row, r->up, f);
  if (w->gate.weight) {
    ref_product(w->gate.weight, w->gate.bias, f, d, x, r->gate);
    check_row(r, row, r->gate, f);
  }
  for (size_t t = 0; t < f; t++)
    r->up[t] = w->gate.weight ? ref_activate(activation, r->gate[t]) * r->up[t]
                              : ref_activate(activation, r->up[t]);
  check_row(r, row, r->up, f);
  ref_product(w->down.weight, w->down.bias, d, f, r->up, r->branch + row * d);
}

static bool is_visible(const struct stack_form *s, const struct stack_layer *layer, size_t row,
                       size_t key) {
  const size_t window = s->kind[layer->kind].window;
  if (s->causal && key > row) return false;
  return !window || (key + window > row && row + window > key);
}

/* Computes hidden state l + 1 from hidden state l. */
static void compute_layer(const struct ref_stack *r, size_t l) {
  const struct stack_form *s = r->s;
  const struct stack_layer *w = stack_form_layer(s, l);
  const size_t n = r->text->n, size = n * s->width;
  double *rows = r->out->state + (l + 1) * size;
  for (size_t i = 0; i < s->kind->self.heads * n * n; i++)
    r->seen[i] = is_visible(s, w, i / n % n, i % n);
  memcpy(rows, r->out->state + l * size, size * sizeof *rows);
  attend_self(r, l, w);
  leave_branch(r, &w->after_self, &w->norm_self, rows);
  if (s->cross.heads) {
    enter_branch(r, &w->norm_cross, rows);
    attend(r, s->layers + l, &s->cross, w->cross);
    leave_branch(r, NULL, &w->norm_cross, rows);
  }
  enter_branch(r, &w->norm_forward, rows);
  for (size_t i = 0; i < n; i++) forward_row(r, w, i);
  leave_branch(r, &w->after_forward, &w->norm_forward, rows);
  check_rows(r, rows);
}

/* y_i = act(b + sum over t of W_t x_(i + t - k / 2)), where x is hidden state 0 and has zeros
 * beyond its ends, is added to hidden state 1, before a norm. */
static void convolve(const struct ref_stack *r) {
  const struct stack_form *s = r->s;
  const struct stack_convolution *c = &s->convolution;
  const size_t n = r->text->n, d = s->width, half = c->taps / 2;
  const double *x = r->out->state;
  double *rows = r->out->state + n * d;
  for (size_t i = 0; i < n * d; i++) {
    const size_t row = i / d, to = i % d;
    double y = c->matrix.bias ? (double)c->matrix.bias[to] : 0;
    for (size_t t = 0; t < c->taps; t++)
      for (size_t from = 0; row + t >= half && row + t - half < n && from < d; from++)
        y += (double)c->matrix.weight[(to * d + from) * c->taps + t] *
             x[(row + t - half) * d + from];
    check_row(r, row, &y, 1);
    rows[i] += c->tanh ? tanh(y) : ref_activate(c->activation, y);
  }
  for (size_t i = 0; i < n; i++) norm_row(s, &c->norm, rows + i * d);
  check_rows(r, rows);
}

/* --- the forward pass --- */

static void compute_model(const struct ref_stack *r) {
  const struct stack_form *s = r->s;
  const struct ref_hidden *out = r->out;
  const size_t n = r->text->n, size = n * s->width;
  for (size_t i = 0; i < n; i++) embed_row(s, r->text, i, r->embedded, out->state + i * s->width);
  check_rows(r, out->state);
  for (size_t l = 0; l < s->layers && !r->e->status; l++) {
    compute_layer(r, l);
    if (l == 0 && s->convolution.taps) convolve(r);
  }
  if (r->e->status) return;
  /* The final norm changes the last hidden state itself, or a copy. */
  double *last = out->state + s->layers * size, *rows = s->last_aside ? r->entering : last;
  if (s->last_aside) memcpy(rows, last, size * sizeof *rows);
  for (size_t i = 0; i < n; i++) norm_row(s, &s->last, rows + i * s->width);
  check_rows(r, rows);
  if (out->outputs) memcpy(out->outputs, rows, size * sizeof *rows);
}

enum status stack_ref(const struct stack_form *s, const struct ref_text *text,
                      const struct ref_hidden *out, struct error *e) {
  const size_t n = text->n, heads = s->kind->self.heads;
  struct ref_stack r = {.s = s, .text = text, .out = out, .e = e};
  struct arena a;
  arena_init(&a, NULL);
  r.entering = arena_alloc(&a, n * s->width, sizeof(double), e);
  r.branch = arena_alloc(&a, n * s->width, sizeof(double), e);
  r.up = arena_alloc(&a, s->forward_size, sizeof(double), e);
  r.gate = arena_alloc(&a, s->forward_size, sizeof(double), e);
  r.positions = arena_alloc(&a, 2 * s->kind->self.position_span * s->width, sizeof(float), e);
  r.embedded = arena_alloc(&a, stack_form_embedded(s), sizeof(double), e);
  r.seen = arena_alloc(&a, heads * n * n, 1, e);
  r.all = arena_alloc(&a, s->cross.heads * n, text->source_n, e);
  if (!e->status) {
    memset(r.all, 1, s->cross.heads * n * text->source_n);
    compute_model(&r);
  }
  arena_free(&a);
  return e->status;
}
