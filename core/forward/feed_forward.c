/* feed_forward: rows through the matrices of a feed-forward, with the activation between them.
 *
 * Many rows go through all matrices in one unit, a tile at a time: the numbers between them stay in
 * the thread's scratch, which the second-level cache holds. Few rows, of all runs of a batch, would
 * not occupy all threads: then columns are shared out, first those of `up` (with `gate`), then
 * those of `down`, and the numbers between lie in the memory of the run. A number's bits are the
 * same both ways: it is one chain of multiply-adds over the whole depth (gemm.h). */
#include <string.h>

#include "core/base/size.h"
#include "core/forward/forward.h"
#include "core/kernel/gemm.h"

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

/* --- tiles: rows of one run or several that go through a matrix together --- */

struct tile_part {
  struct stack_run *run;
  size_t row, rows;
};

struct tile {
  const struct stack_step *step;
  unsigned number; /* of the step in its program */
  size_t column, columns;
  size_t rows, parts;
  struct tile_part part[STACK_TILE_ROWS];
  float *gathered; /* [tile, width or forward size] */
  float *product;  /* [tile, stripe] */
  float *gate;     /* the same, where there is a gate */
  float *inner;    /* [tile, forward size] */
};

/* The rows of a part, as the matrices of `up` and of `down` read them. */
static float *entering_of(const struct tile *t, const struct tile_part *p) {
  return p->run->space->flow[t->step->layer].entering + p->row * t->step->stack->form.width;
}
static float *inner_of(const struct tile *t, const struct tile_part *p) {
  return p->run->space->inner + p->row * t->step->stack->form.forward_size;
}

/* The rows of all parts as one matrix: in place if they are adjacent, else a copy. */
static const float *gather(struct tile *t, size_t width,
                           float *(*of)(const struct tile *, const struct tile_part *)) {
  const float *first = of(t, &t->part[0]);
  bool together = true;
  size_t rows = 0;
  for (size_t i = 0; i < t->parts; rows += t->part[i++].rows)
    together &= of(t, &t->part[i]) == first + rows * width;
  if (together) return first;
  float *to = t->gathered;
  for (size_t i = 0; i < t->parts; to += t->part[i++].rows * width)
    memcpy(to, of(t, &t->part[i]), t->part[i].rows * width * sizeof *to);
  return t->gathered;
}

static void copy_columns(size_t rows, size_t columns, const float *from, float *to, size_t to_row) {
  for (size_t i = 0; i < rows; i++)
    memcpy(to + i * to_row, from + i * KERNEL_PANEL_MAX, columns * sizeof *to);
}

/* Writes to the scratch, or, where columns are shared out, to the runs. */
static void run_up(struct tile *t, size_t end) {
  const struct stack *s = t->step->stack;
  const struct stack_block *b = &s->layer[t->step->layer];
  const size_t d = s->form.width, size = s->form.forward_size;
  const size_t count = t->rows * KERNEL_PANEL_MAX; /* some numbers follow the last column: unread */
  const float *x = gather(t, d, entering_of), *from = b->gate ? t->gate : t->product;
  for (size_t first = t->column, columns; first < end; first += columns) {
    columns = size_min(gemm_columns(b->up, first), end - first);
    gemm_run(b->up, first, t->rows, x, d, t->product);
    if (b->gate) gemm_run(b->gate, first, t->rows, x, d, t->gate);
    if (b->gate)
      s->kernel->activate(s->form.activation, count, t->gate, t->product);
    else
      s->kernel->activate(s->form.activation, count, t->product, NULL);
    if (!t->columns) copy_columns(t->rows, columns, from, t->inner + first, size);
    const float *part = from;
    for (size_t i = 0; t->columns && i < t->parts; part += t->part[i++].rows * KERNEL_PANEL_MAX)
      copy_columns(t->part[i].rows, columns, part, inner_of(t, &t->part[i]) + first, size);
  }
}

/* Writes to the runs; notes the rows that exceed the float32 range. */
static void run_down(struct tile *t, const float *x, size_t end) {
  const struct stack *s = t->step->stack;
  const struct gemm *down = s->layer[t->step->layer].down;
  const size_t d = s->form.width;
  for (size_t first = t->column, columns; first < end; first += columns) {
    columns = size_min(gemm_columns(down, first), end - first);
    gemm_run(down, first, t->rows, x, s->form.forward_size, t->product);
    const float *from = t->product;
    for (size_t i = 0; i < t->parts; from += t->part[i++].rows * KERNEL_PANEL_MAX) {
      const struct tile_part *p = &t->part[i];
      float *to = p->run->space->flow[t->step->layer].forward + p->row * d + first;
      const uint32_t top = s->kernel->carry(p->rows, columns, from, KERNEL_PANEL_MAX, to, d);
      for (size_t row = 0; top >= KERNEL_NOT_FINITE && row < p->rows; row++)
        if (s->kernel->peak(columns, to + row * d) >= KERNEL_NOT_FINITE)
          run_record_fault(&p->run->run, t->number, p->row + row);
    }
  }
}

static void flush(struct tile *t) {
  const struct stack_form *f = &t->step->stack->form;
  if (t->rows == 0) return;
  if (!t->columns) {
    run_up(t, f->forward_size);
    run_down(t, t->inner, f->width);
  } else if (t->step->down) {
    run_down(t, gather(t, f->forward_size, inner_of), size_min(t->column + t->columns, f->width));
  } else {
    run_up(t, size_min(t->column + t->columns, f->forward_size));
  }
  t->rows = t->parts = 0;
}

static size_t whole_lines(size_t floats) { return size_round_up(floats, 16); }

/* The scratch: rows together, a stripe of products and one of the gate, rows between the matrices.
 */
static size_t forward_floats(const struct stack *s) {
  const size_t d = s->form.width, f = s->form.forward_size;
  return s->tile * (whole_lines(size_max(d, f)) + 2 * KERNEL_PANEL_MAX + whole_lines(f));
}

static void compute_tiles(const struct step *step, const struct span *span, void *scratch) {
  const struct stack *s = stack_step_of(step)->stack;
  const unsigned mode = kernel_enter();
  struct span left = *span;
  struct tile t = {.step = stack_step_of(step)};
  struct unit u;
  t.gathered = scratch;
  t.product = t.gathered + s->tile * whole_lines(size_max(s->form.width, s->form.forward_size));
  t.gate = t.product + s->tile * KERNEL_PANEL_MAX;
  t.inner = t.gate + s->tile * KERNEL_PANEL_MAX;
  while (run_next_unit(&left, &u)) {
    if (t.parts && t.column != u.column) flush(&t);
    t.number = u.step;
    t.column = u.column, t.columns = u.columns;
    for (size_t row = u.row, end = u.row + u.rows, rows; row < end; row += rows) {
      rows = size_min(end - row, s->tile - t.rows);
      t.part[t.parts++] = (struct tile_part){stack_run_of(u.run), row, rows};
      t.rows += rows;
      if (t.rows == s->tile) flush(&t);
    }
  }
  flush(&t);
  kernel_leave(mode);
}

const struct stack_step stack_step_up = {.step = {.unit = up_unit,
                                                  .work = forward_work,
                                                  .share = forward_share,
                                                  .least = forward_least,
                                                  .compute = compute_tiles,
                                                  .fault = stack_fault_of_row},
                                         .floats = forward_floats,
                                         .what = "the feed-forward of"};
const struct stack_step stack_step_down = {.step = {.unit = down_unit,
                                                    .work = forward_work,
                                                    .share = forward_share,
                                                    .compute = compute_tiles,
                                                    .fault = stack_fault_of_row},
                                           .floats = forward_floats,
                                           .what = "the feed-forward of",
                                           .down = true};
