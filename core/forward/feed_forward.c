/* feed_forward: rows through the matrices of a feed-forward, with the activation between them.
 *
 * Many rows go through all matrices in one unit, a tile at a time: the numbers between them stay in
 * the thread's scratch, which the second-level cache holds. Few rows, of all runs of a batch, would
 * not occupy all threads: then columns are shared out, first those of `up` (with `gate`), then
 * those of `down`, and the numbers between lie in the memory of the run. A number's bits are the
 * same both ways: it is one chain of multiply-adds over the whole depth (gemm.h). */
#include "core/base/size.h"
#include "core/forward/forward.h"

enum {
  ROWS_LEAST = 32, /* of a unit: units become smaller, so that threads end together */
  TURNS = 4        /* the rest of the rows makes at least as many units */
};

/* --- units --- */

static size_t forward_share(const struct step *step, const struct run *first) {
  const struct stack_form *f = &stack_step_of(step)->stack->form;
  const double product = 2.0 * (double)f->width * (double)f->forward_size;
  size_t rows = 0;
  for (const struct run *r = first; r; r = r->next)
    rows += stack_run_of((struct run *)r)->geometry.q_rows;
  /* A unit of a batch gathers the rows of several runs: it is to be worth that. */
  return stack_share_columns(step, rows, product, first->next ? 2 : 1);
}

static double forward_work(const struct step *step, const struct unit *u) {
  const struct stack_step *s = stack_step_of(step);
  if (!u->columns) return s->tile_work * (double)u->rows;
  return s->row_work * (double)u->rows * (double)u->columns / (double)step->columns;
}

static size_t rows_least(const struct stack_step *s) {
  return size_min(s->stack->tile, ROWS_LEAST);
}

static double forward_least(const struct step *step, const struct cursor *at) {
  const struct stack_step *s = stack_step_of(step);
  return at->columns ? 0 : s->tile_work * (double)rows_least(s);
}

/* Units of a tile, which share the reading of the matrices, and smaller ones towards the end. */
static bool up_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_step *s = stack_step_of(step);
  const size_t rows = stack_run_of(u->run)->geometry.q_rows;
  if (at->row >= rows) return false;
  const size_t left = rows - at->row, tile = s->stack->tile;
  const size_t part = size_round_up((left + TURNS - 1) / TURNS, 16);
  u->row = at->row;
  u->rows = at->columns ? left : size_min(left, size_max(size_min(part, tile), rows_least(s)));
  at->row += u->rows;
  return true;
}

static bool down_unit(const struct step *step, struct cursor *at, struct unit *u) {
  return at->columns && up_unit(step, at, u);
}

/* --- tiles --- */

static size_t whole_lines(size_t floats) { return size_round_up(floats, 16); }

/* The scratch: rows together, a stripe of the gate, rows between the matrices, and that of
 * products.
 */
static size_t forward_floats(const struct stack *s) {
  const size_t d = s->form.width, f = s->form.forward_size;
  const struct stack_block *b = s->layer;
  return s->tile * (whole_lines(size_max(d, f)) + KERNEL_PANEL_MAX + whole_lines(f)) +
         size_max(gemm_scratch_floats(b->up, s->tile), gemm_scratch_floats(b->down, s->tile));
}

/* Multiplies with `up`, or with `down`. The numbers between them are in the scratch, or, where
 * columns are shared out, in the runs. */
static void multiply_tile(struct stack_tile *t, bool down, float *scratch) {
  const struct stack *s = t->step->stack;
  const struct stack_block *b = &s->layer[t->step->layer];
  const size_t d = s->form.width, f = s->form.forward_size, in = down ? f : d, out = down ? d : f;
  float *gated = scratch + s->tile * whole_lines(size_max(d, f));
  float *inner = gated + s->tile * KERNEL_PANEL_MAX, *products = inner + s->tile * whole_lines(f);
  for (size_t i = 0, row = 0; i < t->parts; row += t->part[i++].rows) {
    struct gathered_part *p = &t->part[i];
    const struct stack_space *space = stack_run_of(p->run)->space;
    const struct stack_flow *at = &space->flow[t->step->layer];
    float *between = t->columns ? space->inner + p->row * f : inner + row * f;
    p->from = down ? between : at->entering + p->row * d;
    p->to = (down ? at->forward + p->row * d : between) + t->column;
    p->to_row = out;
  }
  const struct gathered_activation up = {s->form.kind[b->kind].activation, b->gate, gated};
  const size_t end = t->columns ? size_min(t->column + t->columns, out) : out;
  const float *x = gathered_rows(t->part, t->parts, in, scratch);
  const struct gathered_product product = {.matrix = down ? b->down : b->up,
                                           .first = t->column,
                                           .end = end,
                                           .x = x,
                                           .x_row = in,
                                           .scratch = products,
                                           .activation = down ? NULL : &up};
  gathered_multiply(&product, t->part, t->parts);
}

static void forward_tile(struct stack_tile *t, float *scratch) {
  if (!t->step->down) multiply_tile(t, false, scratch);
  if (t->columns && !t->step->down) return;
  multiply_tile(t, true, scratch);
  gathered_record_faults(t->part, t->parts, t->number);
}

const struct stack_step stack_step_up = {.step = {.unit = up_unit,
                                                  .work = forward_work,
                                                  .share = forward_share,
                                                  .least = forward_least,
                                                  .compute = stack_compute_tiles,
                                                  .fault = stack_fault_of_row},
                                         .floats = forward_floats,
                                         .tile = forward_tile,
                                         .what = "the feed-forward of"};
const struct stack_step stack_step_down = {.step = {.unit = down_unit,
                                                    .work = forward_work,
                                                    .share = forward_share,
                                                    .compute = stack_compute_tiles,
                                                    .fault = stack_fault_of_row},
                                           .floats = forward_floats,
                                           .tile = forward_tile,
                                           .what = "the feed-forward of",
                                           .down = true};
