/* trial: runs a layer on zeros, and the stacks of a whole model on a few tokens. */
#include "config/build/trial.h"

#include <stdlib.h>
#include <string.h>

#include "config/document/text.h"
#include "core/base/size.h"

enum { ROWS = 2, TOKENS = 4 };

static enum status try_zeros(const struct layer *l, const struct layer_shape *s, struct error *e) {
  const size_t widest = size_max(s->query_size, size_max(s->key_size, s->value_size));
  struct item item = {.q = ROWS, .k = ROWS};
  struct layer_run run = {.geometry = {.items = 1,
                                       .item = &item,
                                       .q_rows = ROWS,
                                       .k_rows = ROWS,
                                       .window_left = -1,
                                       .window_right = -1}};
  struct error fault = {0};
  struct arena arena;
  arena_init(&arena, NULL);
  float *zeros = arena_alloc(&arena, ROWS * widest, sizeof *zeros, &fault);
  void *scratch = arena_alloc(&arena, layer_scratch_bytes(l), 1, &fault);
  if (fault.status == STATUS_OK) {
    memset(zeros, 0, ROWS * widest * sizeof *zeros);
    run.call.queries = run.call.keys = run.call.values = zeros;
    if (layer_prepare(l, &run, &arena, &fault) == STATUS_OK) {
      run_compute(&run.run, 1e7, scratch);
      run_fault(&run.run, &fault);
    }
  }
  arena_free(&arena);
  if (fault.status == STATUS_NOT_FINITE)
    return error_set(e, STATUS_CONFIG,
                     "self-test failed: the output for zeros is not finite: %.300s", fault.detail);
  return fault.status ? error_no_memory(e) : STATUS_OK;
}

/* Puts the role of the matrix that cannot be quantized before the error. */
static void name_matrix(const struct parameters *p, enum gemm_engine engine, struct error *e) {
  for (enum role role = 0; role < ROLE_PROJECTIONS; role++) {
    const struct parameters_matrix *m = &p->matrix[role];
    struct error why = {0};
    if (m->weight) gemm_free(gemm_new(m->out, m->in, 1, m->weight, NULL, engine, &why));
    if (why.status != STATUS_CONFIG) continue;
    text_before(e, "%s: ", definition_role_name(role));
    return;
  }
}

struct layer *trial_make(const struct parameters *p, enum gemm_engine engine, struct error *e) {
  struct layer_matrix matrix[ROLE_COUNT];
  for (enum role role = 0; role < ROLE_COUNT; role++)
    matrix[role] =
        (struct layer_matrix){.weight = p->matrix[role].weight, .bias = p->matrix[role].bias};
  struct layer *l = layer_new(&p->shape, matrix, engine, e);
  if (!l && e->status == STATUS_CONFIG) return name_matrix(p, engine, e), NULL;
  /* A serial OpenBLAS belongs to the one thread that computes requests, maybe at this moment. */
  const bool serial = l && strcmp(layer_engine(l), "openblas") == 0 && !gemm_blas().threadsafe;
  if (l && (serial || try_zeros(l, &p->shape, e) == STATUS_OK)) return l;
  layer_free(l);
  return NULL;
}

/* --- whole models --- */

/* Computes a few rows in a run that the arena holds. A decoder attends to `source`, which has been
 * computed, or NULL. NULL with an error. */
static struct stack_run *compute_rows(const struct stack *s, struct stack_run *source,
                                      struct arena *a, struct error *e) {
  const struct stack_form *f = stack_form(s);
  const struct stack_embedding *m = &f->embedding;
  const bool table = m->positions == POSITIONS_LEARNED;
  const size_t rows = table ? size_min(TOKENS, m->position_rows - m->first_position) : TOKENS;
  struct item *item = arena_alloc(a, 1, sizeof *item, e);
  void *scratch = arena_alloc(a, stack_scratch_bytes(s), 1, e);
  struct stack_run *run = e->status ? NULL : stack_run_new(s, a, e);
  int32_t *tokens = arena_alloc(a, rows, sizeof *tokens, e);
  const size_t width = stack_form_embedded(f);
  float *zeros = arena_alloc(a, rows * width, sizeof *zeros, e);
  if (e->status) return NULL;
  memset(zeros, 0, rows * width * sizeof *zeros);
  for (size_t i = 0; i < rows && m->tokens; i++) tokens[i] = (int32_t)(i % m->tokens);
  run->tokens = m->tokens ? tokens : NULL;
  run->embeddings = m->tokens ? NULL : zeros;
  *item = (struct item){.q = rows, .k = rows};
  run->geometry.items = 1;
  run->geometry.item = item;
  run->geometry.q_rows = run->geometry.k_rows = rows;
  run->source = source;
  if (stack_prepare(s, run, a, e)) return NULL;
  run_compute(&run->run, 1e7, scratch);
  return run_fault(&run->run, e) ? NULL : run;
}

enum status trial_stacks(const struct stack *encoder, const struct stack *decoder,
                         struct error *e) {
  struct error fault = {0};
  struct arena arena;
  arena_init(&arena, NULL);
  struct stack_run *source = encoder ? compute_rows(encoder, NULL, &arena, &fault) : NULL;
  if (decoder && fault.status == STATUS_OK) compute_rows(decoder, source, &arena, &fault);
  arena_free(&arena);
  if (fault.status == STATUS_NOT_FINITE)
    return error_set(e, STATUS_CONFIG,
                     "self-test failed: the output for a few tokens is not finite: %.300s",
                     fault.detail);
  return fault.status ? error_no_memory(e) : STATUS_OK;
}
