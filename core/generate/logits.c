/* logits: the logits of all tokens, for the last row of each sequence that chooses a token.
 *
 * The rows of all runs of a batch go through the matrix together, and its columns are shared out:
 * one row alone occupies all threads. Each logit is one chain of multiply-adds, whatever is
 * computed with it. */
#include <string.h>

#include "core/base/size.h"
#include "core/forward/output.h"
#include "core/generate/generate_parts.h"
#include "core/kernel/gemm.h"

/* --- units --- */

static const struct stack_rounds *rounds_of(const struct run *r) {
  return stack_run_of((struct run *)r)->generation->rounds;
}

static size_t logits_share(const struct step *step, const struct run *first) {
  size_t rows = 0;
  for (const struct run *r = first; r; r = r->next) rows += rounds_of(r)->asks;
  /* Columns of many rows are shared out, too: a tile with all columns would hold others up. */
  return stack_share_columns(step, size_min(rows, STACK_SHARED_ROWS), stack_step_of(step)->row_work,
                             1);
}

static bool logits_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const size_t asks = rounds_of(u->run)->asks;
  if (at->row >= asks) return false;
  u->row = at->row;
  u->rows = size_min(asks - at->row, stack_step_of(step)->stack->tile);
  at->row += u->rows;
  return true;
}

static double logits_work(const struct step *step, const struct unit *u) {
  const double part = u->columns ? (double)u->columns / (double)step->columns : 1;
  return stack_step_of(step)->row_work * part * (double)u->rows;
}

/* --- tiles: rows of one run or several that go through the matrix together --- */

struct logits_tile {
  const struct stack *stack;
  size_t column, columns; /* 0, 0: all */
  size_t count;
  float *to[STACK_TILE_ROWS]; /* the logits of each row */
  float *x;                   /* [count, d] */
  float *product;             /* [count, stripe] */
};

static size_t logits_floats(const struct stack *s) {
  return s->tile * (stack_row_floats(s) + KERNEL_PANEL_MAX);
}

static void flush(struct logits_tile *t) {
  const struct gemm *g = t->stack->output;
  const size_t tokens = t->stack->form.embedding.tokens;
  const size_t end = t->columns ? size_min(t->column + t->columns, tokens) : tokens;
  for (size_t first = t->column, columns; t->count > 0 && first < end; first += columns) {
    columns = size_min(gemm_columns(g, first), end - first);
    gemm_run(g, first, t->count, t->x, stack_row_floats(t->stack), t->product);
    for (size_t i = 0; i < t->count; i++)
      memcpy(t->to[i] + first, t->product + i * KERNEL_PANEL_MAX, columns * sizeof *t->product);
  }
  t->count = 0;
}

static void compute_logits(const struct step *step, const struct span *span, void *scratch) {
  const struct stack *s = stack_step_of(step)->stack;
  const size_t floats = stack_row_floats(s);
  struct logits_tile t = {.stack = s, .x = scratch};
  const unsigned mode = kernel_enter();
  struct span left = *span;
  struct unit u;
  t.product = t.x + s->tile * floats;
  while (run_next_unit(&left, &u)) {
    const struct stack_run *r = stack_run_of(u.run);
    const struct stack_rounds *o = r->generation->rounds;
    if (u.column != t.column) flush(&t);
    t.column = u.column, t.columns = u.columns;
    for (size_t i = u.row; i < u.row + u.rows; i++) {
      const struct item *item = &r->geometry.item[o->asking[i]];
      if (t.count == s->tile) flush(&t);
      output_row(s, r, item->q_row + item->q - 1, t.x + t.count * floats);
      t.to[t.count++] = o->logits + i * s->form.embedding.tokens;
    }
  }
  flush(&t);
  kernel_leave(mode);
}

const struct stack_step stack_step_logits = {.step = {.unit = logits_unit,
                                                      .work = logits_work,
                                                      .share = logits_share,
                                                      .compute = compute_logits},
                                             .floats = logits_floats};
