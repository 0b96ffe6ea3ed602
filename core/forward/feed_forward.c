/* feed_forward: rows through the two matrices of a feed-forward, with the activation between them.
 *
 * Many rows go through both matrices in one unit, a tile at a time: what lies between them stays in
 * the thread's scratch, which the second cache holds. Few rows, of all runs of a batch together,
 * would not occupy all threads so: then columns are shared out, first those of `up` (with `gate`),
 * then those of `down`, and what lies between is memory of the run's own. A number's bits are the
 * same on both ways: each is one chain of multiply-adds over the whole depth (gemm.h). */
#include <string.h>

#include "core/base/size.h"
#include "core/forward/forward.h"
#include "core/kernel/gemm.h"

enum {
  ROWS_LEAST = 32, /* of a unit towards the end, so that threads end together */
  TURNS = 4        /* units that what is left of the rows makes at least */
};

/* --- units --- */

/* Each unit lays the rows of several runs side by side. */
static size_t forward_share(const struct step *step, const struct run *first) {
  const struct stack_form *f = &stack_step_of(step)->stack->form;
  const double product = 2.0 * (double)f->width * (double)f->forward_size;
  size_t rows = 0;
  for (const struct run *r = first; r; r = r->next)
    rows += stack_run_of((struct run *)r)->geometry.q_rows;
  return stack_share_columns(step, rows, product, first->next ? 2 : 1);
}

static double forward_work(const struct step *step, const struct unit *u) {
  const struct stack_step *s = stack_step_of(step);
  if (!u->columns) return s->tile_work * (double)u->rows;
  return s->row_work * (double)u->rows * (double)u->columns / (double)step->columns;
}

/* Rows that share the reading of the matrices: not more than go through these together. */
static size_t rows_least(const struct stack_step *s) {
  return size_min(s->stack->tile, ROWS_LEAST);
}

static double forward_least(const struct step *step, const struct cursor *at) {
  const struct stack_step *s = stack_step_of(step);
  return at->columns ? 0 : s->tile_work * (double)rows_least(s);
}

/* As many rows as share the reading of the matrices, and fewer towards the end. */
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

static size_t whole_lines(size_t floats) { return size_round_up(floats, 16); }

static size_t forward_floats(const struct stack *s) {
  const size_t d = s->form.width, f = s->form.forward_size, tile = s->tile;
  return tile * (whole_lines(size_max(d, f)) + 2 * KERNEL_PANEL_MAX + whole_lines(f));
}

static void tile_init(struct tile *t, const struct stack_step *s, float *scratch) {
  const struct stack_form *f = &s->stack->form;
  const size_t tile = s->stack->tile;
  t->step = s;
  t->rows = t->parts = 0;
  t->gathered = scratch;
  t->product = t->gathered + tile * whole_lines(size_max(f->width, f->forward_size));
  t->gate = t->product + tile * KERNEL_PANEL_MAX;
  t->inner = t->gate + tile * KERNEL_PANEL_MAX;
}

/* Where the rows of a part lie: before the feed-forward, between its matrices, behind it. */
static float *entering_of(const struct tile *t, const struct tile_part *p) {
  return p->run->space->flow[t->step->layer].entering + p->row * t->step->stack->form.width;
}
static float *inner_of(const struct tile *t, const struct tile_part *p) {
  return p->run->space->inner + p->row * t->step->stack->form.forward_size;
}
static float *forward_of(const struct tile *t, const struct tile_part *p) {
  return p->run->space->flow[t->step->layer].forward + p->row * t->step->stack->form.width;
}

/* The rows as one matrix: where they lie if they follow each other, else a copy. */
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

/* A stripe of `up`, activated. What lies behind its last column is activated, too, and not read. */
static void activate_stripe(struct tile *t, const float *x, size_t first) {
  const struct stack *s = t->step->stack;
  const struct stack_block *b = &s->layer[t->step->layer];
  const size_t d = s->form.width, count = t->rows * KERNEL_PANEL_MAX;
  gemm_run(b->up, first, t->rows, x, d, t->product);
  if (b->gate) {
    gemm_run(b->gate, first, t->rows, x, d, t->gate);
    s->kernel->activate(s->form.activation, count, t->gate, t->product);
  } else {
    s->kernel->activate(s->form.activation, count, t->product, NULL);
  }
}

/* To the scratch, or, where columns are shared out, to the runs. */
static void run_up(struct tile *t, size_t end) {
  const struct stack_block *b = &t->step->stack->layer[t->step->layer];
  const size_t size = t->step->stack->form.forward_size;
  const float *x = gather(t, t->step->stack->form.width, entering_of);
  for (size_t first = t->column, columns; first < end; first += columns) {
    columns = size_min(gemm_columns(b->up, first), end - first);
    activate_stripe(t, x, first);
    const float *from = b->gate ? t->gate : t->product;
    if (!t->columns) {
      copy_columns(t->rows, columns, from, t->inner + first, size);
      continue;
    }
    for (size_t i = 0; i < t->parts; from += t->part[i++].rows * KERNEL_PANEL_MAX)
      copy_columns(t->part[i].rows, columns, from, inner_of(t, &t->part[i]) + first, size);
  }
}

/* A stripe of `down` to its runs; notes what exceeds the float32 range. */
static void put_stripe(const struct tile *t, size_t first, size_t columns) {
  const struct kernel *k = t->step->stack->kernel;
  const float *from = t->product;
  const size_t d = t->step->stack->form.width;
  for (size_t i = 0; i < t->parts; from += t->part[i++].rows * KERNEL_PANEL_MAX) {
    const struct tile_part *p = &t->part[i];
    float *to = forward_of(t, p) + first;
    if (k->carry(p->rows, columns, from, KERNEL_PANEL_MAX, to, d) < KERNEL_NOT_FINITE) continue;
    for (size_t row = 0; row < p->rows; row++)
      if (k->peak(columns, to + row * d) >= KERNEL_NOT_FINITE)
        run_note_fault(&p->run->run, t->number, p->row + row);
  }
}

static void run_down(struct tile *t, const float *x, size_t end) {
  const struct stack_block *b = &t->step->stack->layer[t->step->layer];
  for (size_t first = t->column, columns; first < end; first += columns) {
    columns = size_min(gemm_columns(b->down, first), end - first);
    gemm_run(b->down, first, t->rows, x, t->step->stack->form.forward_size, t->product);
    put_stripe(t, first, columns);
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

static void add_unit(struct tile *t, const struct unit *u) {
  const size_t most = t->step->stack->tile;
  if (t->parts && t->column != u->column) flush(t);
  t->number = u->step;
  t->column = u->column, t->columns = u->columns;
  for (size_t row = u->row, end = u->row + u->rows, rows; row < end; row += rows) {
    rows = size_min(end - row, most - t->rows);
    t->part[t->parts++] = (struct tile_part){stack_run_of(u->run), row, rows};
    t->rows += rows;
    if (t->rows == most) flush(t);
  }
}

static void compute_tiles(const struct step *step, const struct span *span, void *scratch) {
  const unsigned mode = kernel_enter();
  struct span left = *span;
  struct tile t;
  struct unit u;
  tile_init(&t, stack_step_of(step), scratch);
  while (run_next_unit(&left, &u)) add_unit(&t, &u);
  flush(&t);
  kernel_leave(mode);
}

static enum status fault_of_forward(const struct step *step, const struct run *r, uint64_t row,
                                    struct error *e) {
  return stack_fault(stack_step_of(step), r, "the feed-forward of", row, e);
}

const struct stack_step stack_step_up = {.step = {.unit = up_unit,
                                                  .work = forward_work,
                                                  .share = forward_share,
                                                  .least = forward_least,
                                                  .compute = compute_tiles,
                                                  .fault = fault_of_forward},
                                         .floats = forward_floats};
const struct stack_step stack_step_down = {.step = {.unit = down_unit,
                                                    .work = forward_work,
                                                    .share = forward_share,
                                                    .compute = compute_tiles,
                                                    .fault = fault_of_forward},
                                           .floats = forward_floats,
                                           .down = true};
