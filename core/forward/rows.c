/* rows: what the steps of a stack have in common: units of rows, shared columns, faults. */
#include <stdio.h>

#include "core/base/size.h"
#include "core/forward/forward.h"

void stack_compute(const struct step *step, const struct span *span, void *scratch) {
  const struct stack_step *s = stack_step_of(step);
  struct span left = *span;
  struct unit u;
  while (run_next_unit(&left, &u)) s->each(s, &u, scratch);
}

void stack_compute_kernels(const struct step *step, const struct span *span, void *scratch) {
  const unsigned mode = kernel_enter();
  stack_compute(step, span, scratch);
  kernel_leave(mode);
}

void stack_compute_tiles(const struct step *step, const struct span *span, void *scratch) {
  const struct stack_step *s = stack_step_of(step);
  const unsigned mode = kernel_enter();
  struct span left = *span;
  struct stack_tile t;
  struct unit u;
  t.step = s;
  t.rows = t.parts = 0;
  while (run_next_unit(&left, &u)) {
    if (t.rows && t.column != u.column) s->tile(&t, scratch), t.rows = t.parts = 0;
    t.number = u.step;
    t.column = u.column, t.columns = u.columns;
    for (size_t row = u.row, end = u.row + u.rows, rows; row < end; row += rows) {
      rows = size_min(end - row, s->stack->tile - t.rows);
      t.part[t.parts++] =
          (struct gathered_part){.run = u.run, .row = row, .rows = rows, .bad = rows};
      t.rows += rows;
      if (t.rows == s->stack->tile) s->tile(&t, scratch), t.rows = t.parts = 0;
    }
  }
  if (t.rows) s->tile(&t, scratch);
  kernel_leave(mode);
}

bool stack_rows_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_step *s = stack_step_of(step);
  const size_t rows = stack_run_of(u->run)->geometry.q_rows;
  if (at->row >= rows) return false;
  u->row = at->row;
  u->rows = size_min(s->rows, rows - at->row);
  at->row += u->rows;
  return true;
}

double stack_rows_work(const struct step *step, const struct unit *u) {
  return stack_step_of(step)->row_work * (double)u->rows;
}

size_t stack_share_columns(const struct step *step, size_t rows, double work, size_t least) {
  if (rows == 0 || rows > SHARED_ROWS || work * (double)rows < 2.0 * SHARED_WORK) return 0;
  const double column = stack_step_of(step)->row_work / (double)step->columns * (double)rows;
  return shared_columns(step->columns, column, least, KERNEL_PANEL_MAX);
}

void stack_share_rows(const struct stack *s, struct stack_run *r) {
  for (unsigned kind = 1; kind < s->kinds; kind++) {
    struct geometry *g = &r->further[kind - 1];
    g->items = r->geometry.items;
    g->item = r->geometry.item;
    g->q_rows = r->geometry.q_rows;
    g->k_rows = r->geometry.k_rows;
    g->lens = r->geometry.lens;
    g->moves = r->geometry.moves;
  }
}

size_t stack_item_of(const struct geometry *g, size_t row) {
  size_t first = 0, end = g->items; /* of these the last one that begins no later */
  while (first + 1 < end) {
    const size_t middle = first + (end - first) / 2;
    if (g->item[middle].q_row <= row)
      first = middle;
    else
      end = middle;
  }
  return first;
}

struct kernel_norm stack_norm_rows(const struct stack *s, const struct stack_norm *norm,
                                   size_t rows, const float *x, float *y) {
  const size_t d = s->form.width;
  return (struct kernel_norm){.rows = rows,
                              .count = d,
                              .rms = s->form.norm == NORM_RMS,
                              .epsilon = s->form.epsilon,
                              .factor = norm->factor,
                              .shift = norm->shift,
                              .x = x,
                              .x_row = d,
                              .y = y,
                              .y_row = d};
}

void stack_record_rows(const struct stack *s, const struct unit *u, const float *row,
                       uint32_t top) {
  const size_t d = s->form.width;
  if (top < KERNEL_NOT_FINITE) return;
  for (size_t i = 0; i < u->rows; i++)
    if (s->kernel->peak(d, row + i * d) >= KERNEL_NOT_FINITE) {
      run_record_fault(u->run, u->step, u->row + i);
      return;
    }
}

enum status stack_fault(const struct stack_step *s, const struct run *r, const char *what,
                        uint64_t row, struct error *e) {
  const struct geometry *g = &stack_run_of(r)->geometry;
  const struct stack_form *f = &s->stack->form;
  const size_t item = stack_item_of(g, row);
  char layer[STACK_NAME_SIZE] = "";
  if (s->layer < f->layers) snprintf(layer, sizeof layer, " layer %zu", s->layer);
  const size_t before = (size_t)g->item[item].offset; /* rows of earlier rounds */
  return error_set(e, STATUS_NOT_FINITE,
                   "%s%s: %s position %zu of item %zu exceeds the float32 range", f->name, layer,
                   what, before + (size_t)row - g->item[item].q_row,
                   stack_named(stack_run_of(r), item));
}

enum status stack_fault_of_row(const struct step *step, const struct run *r, uint64_t row,
                               struct error *e) {
  return stack_fault(stack_step_of(step), r, stack_step_of(step)->what, row, e);
}

float *stack_hidden_rows(const struct stack *s, const struct stack_run *r, size_t l) {
  const struct stack_flow *flow = &r->space->flow[l];
  return l < s->form.layers || s->form.last_aside ? flow->state : flow->input;
}

float *stack_input_rows(const struct stack *s, const struct stack_run *r, size_t number) {
  const size_t layers = s->form.layers;
  return number < layers ? r->space->flow[number].input : r->space->flow[number - layers].asking;
}
