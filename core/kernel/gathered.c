/* gathered: rows of several runs that go through a matrix together. */
#include "core/kernel/gathered.h"

#include <string.h>

#include "core/base/size.h"

const float *gathered_rows(const struct gathered_part *part, size_t parts, size_t width,
                           float *copy) {
  bool together = true;
  for (size_t i = 1; i < parts && together; i++)
    together = part[i].from == part[i - 1].from + part[i - 1].rows * width;
  if (together) return part[0].from;
  float *to = copy;
  for (size_t i = 0; i < parts; to += part[i++].rows * width)
    memcpy(to, part[i].from, part[i].rows * width * sizeof *to);
  return copy;
}

void gathered_update(struct gathered_part *p, uint32_t top, size_t columns, const float *x,
                     size_t x_row) {
  p->top = top > p->top ? top : p->top;
  if (top < KERNEL_NOT_FINITE) return;
  for (size_t i = 0; i < p->bad; i++)
    if (kernel_best(KERNEL_FASTEST)->peak(columns, x + i * x_row) >= KERNEL_NOT_FINITE) p->bad = i;
}

void gathered_multiply(const struct gathered_product *p, struct gathered_part *part, size_t parts) {
  const struct kernel *k = gemm_kernel_of(p->matrix);
  const size_t stripe = gemm_stripe(p->matrix);
  const struct gathered_activation *a = p->activation;
  float *const from = a && a->gate ? a->gated : p->scratch;
  size_t rows = 0;
  for (size_t i = 0; i < parts; i++) rows += part[i].rows;
  const struct gemm_input x =
      gemm_input(p->matrix, rows, p->x, p->x_row, p->scratch + rows * stripe);
  for (size_t first = p->first, columns; first < p->end; first += columns) {
    columns = size_min(gemm_columns(p->matrix, first), p->end - first);
    gemm_run(p->matrix, first, &x, p->scratch);
    if (p->cap > 0) k->cap(p->cap, rows * stripe, p->scratch);
    if (a && a->gate) gemm_run(a->gate, first, &x, a->gated);
    /* Some numbers follow the last column: unread. */
    if (a) k->activate(a->kind, rows * stripe, from, a->gate ? p->scratch : NULL);
    const float *at = from;
    for (size_t i = 0; i < parts; at += part[i++].rows * stripe) {
      float *to = part[i].to + first - p->first;
      for (size_t row = 0; a && row < part[i].rows; row++)
        memcpy(to + row * part[i].to_row, at + row * stripe, columns * sizeof *to);
      if (a) continue;
      const uint32_t top = k->carry(part[i].rows, columns, at, stripe, to, part[i].to_row);
      gathered_update(&part[i], top, columns, at, stripe);
    }
  }
}

void gathered_record_faults(const struct gathered_part *part, size_t parts, unsigned step) {
  for (size_t i = 0; i < parts; i++)
    if (part[i].bad < part[i].rows) run_record_fault(part[i].run, step, part[i].row + part[i].bad);
}

size_t shared_columns(size_t columns, double work, size_t least, size_t whole) {
  const size_t most = size_max(SHARED_COLUMNS * least, (size_t)(SHARED_WORK / work));
  return size_min((most + whole - 1) / whole * whole, columns);
}
