/* stack_ref: the whole Transformer, each formula as it is defined. */
#include "core/reference/stack_ref.h"

#include <math.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/reference/attention_ref.h"
#include "core/reference/ref_math.h"

/* --- the embedding --- */

/* What a position adds to number x of d. */
static double position_number(const struct stack_form *s, double p, size_t x) {
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

static void norm_row(const struct stack_form *s, const struct stack_norm *norm, double *row) {
  if (norm->factor)
    ref_norm(row, s->width, s->norm == NORM_RMS, s->epsilon, norm->factor, norm->shift, row);
}

static void embed_row(const struct stack_form *s, const struct ref_text *text, size_t i,
                      double *row) {
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
  const struct stack_form *s;
  size_t n;
  struct error *e;   /* keeps the first number that exceeds the float32 range */
  double *entering;  /* [n, d] what enters a branch */
  double *branch;    /* [n, d] what it gives */
  double *up, *gate; /* [f] */
  uint8_t *seen;     /* [H, n, n] */
  uint8_t *all;      /* [H of cross attention, n, source_n] ones */
};

static void check_row(const struct ref_stack *r, size_t row, const double *x, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (!ref_is_float(x[i]))
      error_set(r->e, STATUS_NOT_FINITE, "row %zu exceeds the float32 range", row);
}

static void check_rows(const struct ref_stack *r, const double *rows) {
  for (size_t i = 0; i < r->n; i++) check_row(r, i, rows + i * r->s->width, r->s->width);
}

static void forward_row(const struct ref_stack *r, const struct stack_forward *w, size_t row) {
  const struct stack_form *s = r->s;
  const size_t d = s->width, f = s->forward_size;
  const double *x = r->entering + row * d;
  ref_product(w->up.weight, w->up.bias, f, d, x, r->up);
  check_row(r, row, r->up, f);
  if (w->gate.weight) {
    ref_product(w->gate.weight, w->gate.bias, f, d, x, r->gate);
    check_row(r, row, r->gate, f);
  }
  for (size_t t = 0; t < f; t++)
    r->up[t] = w->gate.weight ? ref_activate(s->activation, r->gate[t]) * r->up[t]
                              : ref_activate(s->activation, r->up[t]);
  check_row(r, row, r->up, f);
  ref_product(w->down.weight, w->down.bias, d, f, r->up, r->branch + row * d);
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

/* Attention number `a`: of the rows to themselves, or, behind those of all layers, to the
 * source. */
static void attend(const struct ref_stack *r, size_t a, const struct layer_shape *shape,
                   const struct layer_matrix *matrix, const struct ref_text *text,
                   const struct ref_hidden *out) {
  const bool across = a >= r->s->layers;
  const double *keys = across ? text->source : r->entering;
  const struct ref_item item = {.q = r->n,
                                .k = across ? text->source_n : r->n,
                                .queries = r->entering,
                                .keys = keys,
                                .values = keys,
                                .seen = across ? r->all : r->seen,
                                .head_mask = text->head_mask ? text->head_mask[a] : NULL,
                                .masked_heads = out->weights != NULL};
  const struct ref_answer answer = {.outputs = r->branch,
                                    .weights = out->weights ? out->weights[a] : NULL};
  if (out->input) memcpy(out->input[a], r->entering, r->n * r->s->width * sizeof *r->entering);
  attention_ref_item(shape, matrix, &item, &answer, r->e);
}

/* Layer l makes of hidden state l the next one. */
static void pass_layer(const struct ref_stack *r, size_t l, const struct ref_text *text,
                       const struct ref_hidden *out) {
  const struct stack_form *s = r->s;
  const struct stack_layer *w = &s->layer[l];
  const size_t size = r->n * s->width;
  double *rows = out->state + (l + 1) * size;
  memcpy(rows, out->state + l * size, size * sizeof *rows);
  enter_branch(r, &w->norm_self, rows);
  attend(r, l, &s->self, w->self, text, out);
  leave_branch(r, &w->norm_self, rows);
  if (s->cross.heads) {
    enter_branch(r, &w->norm_cross, rows);
    attend(r, s->layers + l, &s->cross, w->cross, text, out);
    leave_branch(r, &w->norm_cross, rows);
  }
  enter_branch(r, &w->norm_forward, rows);
  for (size_t i = 0; i < r->n; i++) forward_row(r, &w->forward, i);
  leave_branch(r, &w->norm_forward, rows);
  check_rows(r, rows);
}

/* --- the whole --- */

/* The outputs are behind the last norm; the last hidden state mostly is, too. */
static void leave_layers(const struct ref_stack *r, const struct ref_hidden *out) {
  const struct stack_form *s = r->s;
  const size_t size = r->n * s->width;
  double *last = out->state + s->layers * size, *rows = s->last_aside ? r->entering : last;
  if (s->last_aside) memcpy(rows, last, size * sizeof *rows);
  for (size_t i = 0; i < r->n; i++) norm_row(s, &s->last, rows + i * s->width);
  check_rows(r, rows);
  if (out->outputs) memcpy(out->outputs, rows, size * sizeof *rows);
}

static void pass_layers(const struct ref_stack *r, const struct ref_text *text,
                        const struct ref_hidden *out) {
  for (size_t i = 0; i < r->n; i++) embed_row(r->s, text, i, out->state + i * r->s->width);
  check_rows(r, out->state);
  for (size_t l = 0; l < r->s->layers && !r->e->status; l++) pass_layer(r, l, text, out);
  if (!r->e->status) leave_layers(r, out);
}

static bool sees(const struct stack_form *s, size_t row, size_t key) {
  if (s->causal && key > row) return false;
  return !s->window || key + s->window > row;
}

enum status stack_ref(const struct stack_form *s, const struct ref_text *text,
                      const struct ref_hidden *out, struct error *e) {
  const size_t n = text->n, heads = s->self.heads;
  struct arena a;
  arena_init(&a, NULL);
  struct ref_stack r = {.s = s, .n = n, .e = e};
  r.entering = arena_alloc(&a, n * s->width, sizeof(double), e);
  r.branch = arena_alloc(&a, n * s->width, sizeof(double), e);
  r.up = arena_alloc(&a, s->forward_size, sizeof(double), e);
  r.gate = arena_alloc(&a, s->forward_size, sizeof(double), e);
  r.seen = arena_alloc(&a, heads * n * n, 1, e);
  r.all = arena_alloc(&a, s->cross.heads * n, text->source_n, e);
  for (size_t i = 0; !e->status && i < heads * n * n; i++) r.seen[i] = sees(s, i / n % n, i % n);
  if (!e->status) memset(r.all, 1, s->cross.heads * n * text->source_n);
  if (!e->status) pass_layers(&r, text, out);
  arena_free(&a);
  return e->status;
}
