/* logits: the logits of all tokens, for the last row of each sequence that chooses a token.
 *
 * The rows of all runs of a batch go through the matrix together, and its columns are shared out:
 * one row alone occupies all threads. Each logit is one chain of multiply-adds, whatever is
 * computed with it. */
#include "core/base/size.h"
#include "core/forward/output.h"
#include "core/generate/generate_parts.h"

/* --- units --- */

static const struct stack_rounds *rounds_of(const struct run *r) {
  return stack_run_of((struct run *)r)->generation->rounds;
}

static size_t logits_share(const struct step *step, const struct run *first) {
  size_t rows = 0;
  for (const struct run *r = first; r; r = r->next) rows += rounds_of(r)->asks;
  /* Columns of many rows are shared out, too: a tile with all columns would hold others up. */
  return stack_share_columns(step, size_min(rows, SHARED_ROWS), stack_step_of(step)->row_work, 1);
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

static size_t logits_floats(const struct stack *s) {
  return s->output ? s->tile * stack_row_floats(s) + gemm_scratch_floats(s->output, s->tile) : 0;
}

static void logits_tile(struct stack_tile *t, float *scratch) {
  const struct stack *s = t->step->stack;
  const size_t floats = stack_row_floats(s), tokens = s->form.embedding.tokens;
  float *x = scratch;
  for (struct gathered_part *p = t->part; p < t->part + t->parts; p++) {
    const struct stack_run *r = stack_run_of(p->run);
    const struct stack_rounds *o = r->generation->rounds;
    for (size_t i = p->row; i < p->row + p->rows; i++, x += floats) {
      const struct item *item = &r->geometry.item[o->asking[i]];
      output_row(s, r, item->q_row + item->q - 1, x);
    }
    p->to = o->logits + p->row * tokens + t->column;
    p->to_row = tokens;
  }
  const size_t end = t->columns ? size_min(t->column + t->columns, tokens) : tokens;
  const struct gathered_product product = {.matrix = s->output,
                                           .first = t->column,
                                           .end = end,
                                           .x = scratch,
                                           .x_row = floats,
                                           .scratch = scratch + s->tile * floats,
                                           .cap = s->form.output.cap};
  gathered_multiply(&product, t->part, t->parts);
}

const struct stack_step stack_step_logits = {.step = {.unit = logits_unit,
                                                      .work = logits_work,
                                                      .share = logits_share,
                                                      .compute = stack_compute_tiles},
                                             .floats = logits_floats,
                                             .tile = logits_tile};
