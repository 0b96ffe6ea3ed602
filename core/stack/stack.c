/* stack: how a stack is made: its parameters are copied, matrices packed. */
#include "core/stack/stack.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/size.h"
#include "core/forward/forward.h"
#include "core/kernel/gemm.h"
#include "core/kernel/narrow.h"
#include "core/stack/stack_program.h"

enum {
  POSITION_ROWS = 1024,     /* of the table of computed positions */
  TILE_INNER = 1024 * 1024, /* most numbers between the matrices of a feed-forward */
  TILE_WORK = 1250000000    /* most operations of a tile, some 10 ms: others wait for its end */
};

/* The static functions below do nothing where e->status is an error already, and leave theirs
 * there. */

static enum status no_memory(struct error *e) {
  return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a model");
}

/* Copies numbers [rows, width]; NULL where there are none. */
static float *copy_numbers(struct stack *s, const float *from, size_t rows, size_t width,
                           struct error *e) {
  size_t bytes;
  if (!from || e->status) return NULL;
  float *copy = size_mul(rows, width, &bytes) && size_mul(bytes, sizeof *copy, &bytes)
                    ? malloc(bytes + 1)
                    : NULL;
  if (!copy) {
    no_memory(e);
    return NULL;
  }
  memcpy(copy, from, bytes);
  s->bytes += bytes;
  return copy;
}

static struct stack_norm copy_norm_of(struct stack *s, const struct stack_norm *norm, size_t width,
                                      struct error *e) {
  return (struct stack_norm){copy_numbers(s, norm->factor, 1, width, e),
                             copy_numbers(s, norm->shift, 1, width, e)};
}

static struct stack_norm copy_norm(struct stack *s, const struct stack_norm *norm,
                                   struct error *e) {
  return copy_norm_of(s, norm, s->form.width, e);
}

static void free_norm(const struct stack_norm *norm) {
  free((void *)norm->factor);
  free((void *)norm->shift);
}

static enum gemm_engine engine_of(const struct stack *s) {
  return gemm_engine_for(s->form.compute, s->form.whole ? GEMM_PACKED : GEMM_NARROW);
}

/* Packs a matrix [out, in]; NULL where there is none. */
static struct gemm *pack(struct stack *s, const struct layer_matrix *m, size_t out, size_t in,
                         struct error *e) {
  if (!m->weight || e->status) return NULL;
  struct gemm *g = gemm_new(out, in, 1, m->weight, m->bias, engine_of(s), e);
  if (g) s->bytes += gemm_bytes(g);
  if (g && !gemm_quantizes(g)) s->forms |= 1U << gemm_form(g);
  return g;
}

/* Copies learned positions, or computes the first ones; further ones are computed when they are
 * needed. */
static void make_positions(struct stack *s, const struct stack_embedding *m, struct error *e) {
  const size_t d = stack_form_embedded(&s->form);
  if (m->positions == POSITIONS_NONE || e->status) return;
  s->position_rows = m->positions == POSITIONS_LEARNED ? m->position_rows : POSITION_ROWS;
  if (m->positions == POSITIONS_LEARNED) {
    s->position = copy_numbers(s, m->position, m->position_rows, d, e);
    return;
  }
  s->turns = calloc(d + 1, sizeof *s->turns);
  s->position = calloc(POSITION_ROWS * d + 1, sizeof *s->position);
  if (!s->turns || !s->position) {
    no_memory(e);
    return;
  }
  const double width = (double)d, half = (double)(d / 2);
  for (size_t x = 0; x < d; x++) {
    const double i = (double)(d < 2 ? 0 : x % (d / 2));
    s->turns[x] = pow(10000, m->positions == POSITIONS_INTERLEAVED ? -(double)(x - x % 2) / width
                             : m->positions == POSITIONS_HALVES    ? -2 * i / width
                                                                   : -i / (half - 1));
  }
  for (size_t p = 0; p < POSITION_ROWS; p++) stack_compute_position(s, p, s->position + p * d);
  s->bytes += POSITION_ROWS * d * sizeof(float);
}

/* Copies or keeps the table of tokens, in 16 bits where that loses nothing. */
static void copy_table(struct stack *s, const struct stack_embedding *from, struct error *e) {
  const size_t width = stack_form_embedded(&s->form), count = from->tokens * width;
  if (!from->token || e->status) return;
  s->token_form = s->form.whole ? KERNEL_FLOAT32 : narrow_form(from->token, count);
  s->forms |= 1U << s->token_form;
  if (s->token_form == KERNEL_FLOAT32 && from->given) {
    s->token = (void *)from->token;
    s->bytes += count * sizeof *from->token;
    return;
  }
  if (s->token_form == KERNEL_FLOAT32) {
    s->token = copy_numbers(s, from->token, from->tokens, width, e);
    return;
  }
  uint16_t *narrow = s->token = malloc(count * sizeof *narrow + 1);
  for (size_t i = 0; narrow && i < count; i++)
    narrow[i] = narrow_number(s->token_form, from->token[i]);
  s->bytes += count * sizeof *narrow;
  if (!narrow) no_memory(e);
}

/* Replaces the form's pointers by copies, and packs its matrices. */
static void copy_form(struct stack *s, const struct stack_form *form, struct error *e) {
  const struct stack_embedding *m = &form->embedding;
  const struct stack_classifier *c = &form->classifier;
  const size_t d = form->width;
  s->form = *form;
  s->form.layer = NULL;
  s->form.embedding.token = s->form.embedding.position = NULL;
  s->form.pooling.pooler = (struct layer_matrix){0};
  s->form.classifier.first = s->form.classifier.classes = (struct layer_matrix){0};
  s->form.classifier.norm = copy_norm(s, &c->norm, e);
  s->form.output.matrix = s->form.output.dense = (struct layer_matrix){0};
  /* A tied matrix that has one scale a column is no table: its rows are not exact enough. */
  if ((!form->output.tied || form->compute == COMPUTE_INT8) && !m->lender) copy_table(s, m, e);
  const size_t embedded = stack_form_embedded(form);
  s->form.embedding.type = copy_numbers(s, m->type, m->types, embedded, e);
  s->form.embedding.norm = copy_norm_of(s, &m->norm, embedded, e);
  s->project = pack(s, &m->project, d, embedded, e);
  s->form.embedding.project = (struct layer_matrix){0};
  make_positions(s, m, e);
  s->form.last = copy_norm(s, &form->last, e);
  s->convolution = pack(s, &form->convolution.matrix, d, d * form->convolution.taps, e);
  s->form.convolution.matrix = (struct layer_matrix){0};
  s->form.convolution.norm = copy_norm(s, &form->convolution.norm, e);
  s->pooler = pack(s, &form->pooling.pooler, d, d, e);
  size_t in = d; /* each dense layer takes what the one before it makes */
  for (size_t i = 0; i < STACK_DENSE_MOST && form->pooling.dense[i].size; i++) {
    const struct stack_dense *from = &form->pooling.dense[i];
    s->dense[i] = pack(s, &from->matrix, from->size, in, e);
    s->skip[i] = pack(s, &from->skip, from->size, in, e);
    s->form.pooling.dense[i].matrix = s->form.pooling.dense[i].skip = (struct layer_matrix){0};
    in = from->size;
  }
  s->first = pack(s, &c->first, d, d, e);
  s->classes = pack(s, &c->classes, c->count, d, e);
  s->form.sparse.row.weight = copy_numbers(s, form->sparse.row.weight, 1, d, e);
  s->form.sparse.row.bias = copy_numbers(s, form->sparse.row.bias, 1, 1, e);
  const size_t read = stack_form_output(form);
  s->transform = pack(s, &form->output.dense, read, d, e);
  s->form.output.norm = copy_norm_of(s, &form->output.norm, read, e);
  /* A tied matrix is the table of tokens, which is packed once for both. */
  struct layer_matrix output = form->output.matrix;
  if (form->output.tied) output.weight = m->token;
  s->output = pack(s, &output, m->tokens, read, e);
}

/* Frees the table of tokens if it was given and the stack, which may be NULL, does not keep it. */
static void free_given(const struct stack_form *form, const struct stack *s) {
  const struct stack_embedding *m = &form->embedding;
  if (m->given && !(s && s->token == m->token)) free((void *)m->token);
}

struct stack *stack_new(const struct stack_form *form, struct error *e) {
  static atomic_uint_fast64_t serials;
  must(!form->convolution.taps || (form->place == NORM_POST && !form->causal));
  struct stack *s = calloc(1, sizeof *s);
  if (!s) {
    free_given(form, NULL);
    no_memory(e);
    return NULL;
  }
  s->serial = atomic_fetch_add(&serials, 1);
  s->kernel = gemm_kernel(gemm_engine_for(form->compute, GEMM_PACKED));
  const size_t size = size_max(form->forward_size, 1);
  const size_t work = 4 * form->width * size; /* operations for a row, without gate */
  const size_t rows = size_min(TILE_INNER / size, TILE_WORK / work);
  s->tile = size_max(16, size_min(GATHERED_ROWS, rows / 16 * 16));
  s->layer = calloc(form->layers + 1, sizeof *s->layer);
  if (!s->layer) no_memory(e);
  copy_form(s, form, e);
  free_given(form, s);
  if (!e->status && form->layers == 0) stack_program_list(s, e);
  if (!e->status) return s;
  stack_free(s);
  return NULL;
}

static struct layer *make_attention(struct stack *s, const struct layer_shape *shape,
                                    const struct layer_matrix matrix[ROLE_COUNT], struct error *e) {
  struct layer *l = e->status ? NULL : layer_new(shape, matrix, engine_of(s), e);
  if (l) s->bytes += layer_bytes(l), s->forms |= layer_forms(l);
  return l;
}

/* Makes the self-attention. The rows of its table of disentangled positions may have a norm. */
static struct layer *make_self(struct stack *s, const struct stack_layer *layer, struct error *e) {
  const struct layer_shape *shape = &s->form.kind[layer->kind].self;
  const struct stack_norm *norm = &layer->norm_positions;
  const size_t rows = 2 * shape->position_span;
  struct layer_matrix matrix[ROLE_COUNT];
  memcpy(matrix, layer->self, sizeof matrix);
  float *table = NULL;
  if (norm->factor && rows > 0) {
    table = calloc(rows, s->form.width * sizeof *table);
    if (!table) no_memory(e);
  }
  if (table) {
    const struct kernel_norm n =
        stack_norm_rows(s, norm, rows, matrix[ROLE_POSITION].weight, table);
    const unsigned mode = kernel_enter();
    s->kernel->norm(&n);
    kernel_leave(mode);
    matrix[ROLE_POSITION].weight = table;
  }
  struct layer *l = make_attention(s, shape, matrix, e);
  free(table);
  return l;
}

/* Makes a block of the parameters of another one. */
static void repeat_block(struct stack_block *b, const struct stack_block *from) {
  b->repeats = true;
  b->self.layer = from->self.layer;
  b->cross.layer = from->cross.layer;
  b->gate = from->gate;
  b->up = from->up;
  b->down = from->down;
  b->norm_self = from->norm_self;
  b->norm_cross = from->norm_cross;
  b->norm_forward = from->norm_forward;
  b->after_self = from->after_self;
  b->after_forward = from->after_forward;
}

enum status stack_set_layer(struct stack *s, const struct stack_layer *layer, struct error *e) {
  must(s->set < s->form.layers);
  const struct stack_form *f = &s->form;
  const struct stack_forward *forward = &layer->forward;
  struct stack_block *b = &s->layer[s->set];
  const size_t d = f->width, size = f->forward_size;
  snprintf(b->self.where, sizeof b->self.where, "%s.%zu.self: ", f->name, s->set);
  snprintf(b->cross.where, sizeof b->cross.where, "%s.%zu.cross: ", f->name, s->set);
  must(layer->kind < STACK_KINDS);
  b->kind = layer->kind;
  s->kinds = b->kind >= s->kinds ? b->kind + 1 : s->kinds;
  if (layer->repeats) {
    must(layer->of < s->set && !s->layer[layer->of].repeats &&
         layer->kind == s->layer[layer->of].kind);
    repeat_block(b, &s->layer[layer->of]);
    return ++s->set == f->layers ? stack_program_list(s, e) : STATUS_OK;
  }
  b->self.layer = make_self(s, layer, e);
  if (f->cross.heads) b->cross.layer = make_attention(s, &f->cross, layer->cross, e);
  b->gate = pack(s, &forward->gate, size, d, e);
  b->up = pack(s, &forward->up, size, d, e);
  b->down = pack(s, &forward->down, d, size, e);
  b->norm_self = copy_norm(s, &layer->norm_self, e);
  if (f->cross.heads) b->norm_cross = copy_norm(s, &layer->norm_cross, e);
  b->norm_forward = copy_norm(s, &layer->norm_forward, e);
  b->after_self = copy_norm(s, &layer->after_self, e);
  b->after_forward = copy_norm(s, &layer->after_forward, e);
  if (e->status) return e->status;
  return ++s->set == f->layers ? stack_program_list(s, e) : STATUS_OK;
}

void stack_free(struct stack *s) {
  if (!s) return;
  for (size_t i = 0; s->layer && i < s->form.layers; i++) {
    struct stack_block *b = &s->layer[i];
    if (b->repeats) continue;
    layer_free(b->self.layer);
    layer_free(b->cross.layer);
    gemm_free(b->gate);
    gemm_free(b->up);
    gemm_free(b->down);
    free_norm(&b->norm_self);
    free_norm(&b->norm_cross);
    free_norm(&b->norm_forward);
    free_norm(&b->after_self);
    free_norm(&b->after_forward);
  }
  free(s->token);
  free((void *)s->form.embedding.type);
  free_norm(&s->form.embedding.norm);
  free_norm(&s->form.last);
  free_norm(&s->form.classifier.norm);
  gemm_free(s->project);
  gemm_free(s->convolution);
  free_norm(&s->form.convolution.norm);
  gemm_free(s->pooler);
  for (size_t i = 0; i < STACK_DENSE_MOST; i++) gemm_free(s->dense[i]), gemm_free(s->skip[i]);
  gemm_free(s->first);
  gemm_free(s->classes);
  free((void *)s->form.sparse.row.weight);
  free((void *)s->form.sparse.row.bias);
  gemm_free(s->transform);
  free_norm(&s->form.output.norm);
  gemm_free(s->output);
  free(s->turns);
  free(s->position);
  free(s->layer);
  free(s->own);
  free(s->list);
  free(s->again);
  free(s);
}

bool stack_has_sparse(const struct stack *s) { return stack_weighs(s); }
bool stack_has_output(const struct stack *s) { return s->output != NULL; }
bool stack_can_generate(const struct stack *s) { return s->rounds.steps > 0; }
bool stack_has_pooler(const struct stack *s) {
  return s->pooler != NULL || s->form.pooling.ends;
}

const struct stack_form *stack_form(const struct stack *s) { return &s->form; }
const struct layer *stack_attention(const struct stack *s, size_t number) {
  return stack_attending(s, number)->layer;
}
const struct stack_kind *stack_layer_kind(const struct stack *s, size_t layer) {
  return stack_kind(s, layer);
}
size_t stack_scratch_bytes(const struct stack *s) { return s->scratch; }
size_t stack_bytes(const struct stack *s) { return s->bytes; }

const char *stack_weights(const struct stack *s) {
  for (enum kernel_form form = 0; form < KERNEL_FORMS; form++)
    if (s->forms == 1U << form || (!s->forms && form == KERNEL_FLOAT32)) return narrow_name(form);
  return "mixed";
}

/* --- pace --- */

static double seconds_of(const struct gemm *g, size_t rows, const float *x, size_t in, size_t out,
                         float *y) {
  const uint64_t begun = clock_now();
  const struct gemm_input input = gemm_input(g, rows, x, in, y + rows * KERNEL_PANEL_MAX);
  for (size_t first = 0; first < out; first += gemm_columns(g, first))
    gemm_run(g, first, &input, y);
  return 1e-9 * (double)(clock_now() - begun);
}

/* One row through the matrices of all layers is as fast as memory is read; many rows through one of
 * them are as fast as the processor multiplies. The best of several times: others use it, too. */
void stack_measure_pace(const struct stack *s, struct stack_pace *pace) {
  enum { TIMES = 2, ROWS = 64, BYTES_LEAST = 32 << 20 }; /* fewer may lie in a cache */
  const size_t in = s->form.width, out = s->form.forward_size, layers = s->form.layers;
  const double product = 2.0 * (double)in * (double)out;
  size_t bytes = 0;
  for (size_t l = 0; l < layers; l++)
    bytes += gemm_bytes(s->layer[l].up) + gemm_bytes(s->layer[l].down);
  if (bytes < BYTES_LEAST) return;
  const struct stack_block *first = s->layer;
  const size_t scratch =
      size_max(gemm_scratch_floats(first->up, ROWS), gemm_scratch_floats(first->down, ROWS));
  float *x = calloc(ROWS * size_max(in, out), sizeof *x);
  float *y = aligned_alloc(64, size_round_up(scratch, 16) * sizeof *y);
  double reads = INFINITY, multiplies = INFINITY;
  const unsigned mode = kernel_enter();
  for (size_t i = 0; x && y && i < TIMES; i++) {
    double all = 0;
    for (size_t l = 0; l < layers; l++)
      all += seconds_of(s->layer[l].up, 1, x, in, out, y) +
             seconds_of(s->layer[l].down, 1, x, out, in, y);
    reads = fmin(reads, all);
    multiplies = fmin(multiplies, seconds_of(s->layer[0].up, ROWS, x, in, out, y));
  }
  kernel_leave(mode);
  free(x);
  free(y);
  if (!isfinite(reads) || reads <= 0 || multiplies <= 0) return;
  pace->second_work = ROWS * product / multiplies;
  pace->byte_work = pace->second_work * reads / (double)bytes;
}
