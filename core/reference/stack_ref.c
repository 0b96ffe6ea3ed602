/* stack_ref: the whole Transformer, each formula as it is defined. */
#include "core/reference/stack_ref.h"

#include <math.h>
#include <string.h>

#include "core/reference/attention_ref.h"
#include "core/reference/ref_math.h"
#include "core/run/arena.h"

/* --- the embedding --- */

/* What a position adds to number x of d. */
static double position_number(const struct stack *s, double p, size_t x) {
  const struct stack_embedding *m = &s->embedding;
  const size_t half = s->width / 2;
  const double d = (double)s->width;
  double turns;
  switch (m->positions) {
  case POSITIONS_NONE:
    return 0;
  case POSITIONS_LEARNED:
    return m->position[(size_t)p * s->width + x];
  case POSITIONS_INTERLEAVED:
    turns = p / pow(10000, (double)(x - x % 2) / d);
    return x % 2 ? cos(turns) : sin(turns);
  case POSITIONS_HALVES:
    turns = p / pow(10000, 2 * (double)(x % half) / d);
    break;
  default:
    turns = p * pow(10000, -(double)(x % half) / ((double)half - 1));
  }
  return x < half ? sin(turns) : cos(turns);
}

static void norm_row(const struct stack *s, const struct stack_norm *norm, double *row) {
  if (norm->factor)
    ref_norm(row, s->width, s->norm == NORM_RMS, s->epsilon, norm->factor, norm->shift, row);
}

static void embed_row(const struct stack *s, const struct ref_text *text, size_t i, double *row) {
  const struct stack_embedding *m = &s->embedding;
  const int32_t type = text->token_type ? text->token_type[i] : 0;
  for (size_t x = 0; x < s->width; x++) {
    row[x] = text->token ? m->scale * m->token[(size_t)text->token[i] * s->width + x]
                         : text->embedding[i * s->width + x];
    row[x] += position_number(s, (double)(i + m->first_position), x);
    if (m->type) row[x] += m->type[(size_t)type * s->width + x];
  }
  norm_row(s, &m->norm, row);
}

/* --- a layer --- */

struct ref_stack {
  const struct stack *s;
  size_t n;
  double *entering;  /* [n, d] what enters a branch */
  double *branch;    /* [n, d] what it gives */
  double *up, *gate; /* [f] */
  uint8_t *seen;     /* [H, n, n] */
};

static void forward_row(const struct ref_stack *r, const struct stack_forward *w, const double *x,
                        double *y) {
  const struct stack *s = r->s;
  const size_t d = s->width, f = s->forward_size;
  ref_product(w->up.weight, w->up.bias, f, d, x, r->up);
  if (w->gate.weight) ref_product(w->gate.weight, w->gate.bias, f, d, x, r->gate);
  for (size_t t = 0; t < f; t++)
    r->up[t] = w->gate.weight ? ref_activate(s->activation, r->gate[t]) * r->up[t]
                              : ref_activate(s->activation, r->up[t]);
  ref_product(w->down.weight, w->down.bias, d, f, r->up, y);
}

/* A branch reads rows that its norm has been applied to already, if that stands before it ... */
static void enter_branch(const struct ref_stack *r, const struct stack_norm *norm,
                         const double *rows) {
  const size_t d = r->s->width;
  memcpy(r->entering, rows, r->n * d * sizeof *rows);
  for (size_t i = 0; r->s->place == NORM_PRE && i < r->n; i++)
    norm_row(r->s, norm, r->entering + i * d);
}

/* ... and is added to the rows, which are then normalised, if the norm stands behind it. */
static void leave_branch(const struct ref_stack *r, const struct stack_norm *norm, double *rows) {
  const size_t d = r->s->width;
  ref_add(rows, 1, r->branch, r->n * d);
  for (size_t i = 0; r->s->place == NORM_POST && i < r->n; i++) norm_row(r->s, norm, rows + i * d);
}

static enum status pass_layer(const struct ref_stack *r, const struct stack_layer *w, double *rows,
                              double *weights, struct error *e) {
  const size_t d = r->s->width;
  const struct ref_item item = {.q = r->n,
                                .k = r->n,
                                .queries = r->entering,
                                .keys = r->entering,
                                .values = r->entering,
                                .seen = r->seen};
  enter_branch(r, &w->norm_self, rows);
  const struct ref_answer answer = {.outputs = r->branch, .weights = weights};
  if (attention_ref_item(&r->s->self, w->self, &item, &answer, e)) return e->status;
  leave_branch(r, &w->norm_self, rows);
  enter_branch(r, &w->norm_forward, rows);
  for (size_t i = 0; i < r->n; i++)
    forward_row(r, &w->forward, r->entering + i * d, r->branch + i * d);
  leave_branch(r, &w->norm_forward, rows);
  for (size_t x = 0; x < r->n * d; x++)
    if (!ref_is_float(rows[x]))
      return error_set(e, STATUS_NOT_FINITE, "row %zu is beyond float32", x / d);
  return STATUS_OK;
}

/* --- the whole --- */

static void pass_layers(const struct ref_stack *r, const struct ref_text *text,
                        const struct ref_hidden *out, struct error *e) {
  const struct stack *s = r->s;
  const size_t d = s->width, size = r->n * d;
  for (size_t i = 0; i < r->n; i++) embed_row(s, text, i, out->state + i * d);
  for (size_t l = 0; l < s->layers && !e->status; l++) {
    double *rows = out->state + (l + 1) * size;
    memcpy(rows, out->state + l * size, size * sizeof *rows);
    pass_layer(r, &s->layer[l], rows, out->weights ? out->weights[l] : NULL, e);
  }
  for (size_t i = 0; i < r->n; i++) norm_row(s, &s->last, out->state + s->layers * size + i * d);
}

enum status stack_ref(const struct stack *s, const struct ref_text *text,
                      const struct ref_hidden *out, struct error *e) {
  const size_t n = text->n, heads = s->self.heads;
  struct arena a;
  arena_init(&a, NULL);
  struct ref_stack r = {.s = s, .n = n};
  r.entering = arena_alloc(&a, n * s->width, sizeof(double), e);
  r.branch = arena_alloc(&a, n * s->width, sizeof(double), e);
  r.up = arena_alloc(&a, s->forward_size, sizeof(double), e);
  r.gate = arena_alloc(&a, s->forward_size, sizeof(double), e);
  r.seen = arena_alloc(&a, heads * n * n, 1, e);
  for (size_t i = 0; !e->status && i < heads * n * n; i++)
    r.seen[i] = !s->causal || i % n <= i / n % n;
  if (!e->status) pass_layers(&r, text, out, e);
  arena_free(&a);
  return e->status;
}
