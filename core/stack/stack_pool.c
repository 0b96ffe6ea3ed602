/* stack_pool: the rows of an item become one vector. */
#include <math.h>
#include <string.h>

#include "core/kernel/gemm.h"
#include "core/run/size.h"
#include "core/stack/stack_parts.h"

/* --- the layout of the scratch: vectors of a unit's items, before and behind a matrix --- */

static size_t widest(const struct stack *s) {
  return size_round_up(size_max(s->form.width, s->form.pooling.dense_size), 16);
}

size_t stack_pool_floats(const struct stack *s) {
  const size_t vectors = 2 * STACK_POOL_ITEMS * widest(s);
  return vectors + STACK_POOL_ITEMS * KERNEL_PANEL_MAX + 2 * size_round_up(s->form.width, 16);
}

/* --- rows to a vector --- */

/* Each number in double, row after row. */
static void take_mean(const float *row, size_t rows, size_t d, float *to, double *sum) {
  memset(sum, 0, d * sizeof *sum);
  for (size_t i = 0; i < rows; i++)
    for (size_t x = 0; x < d; x++) sum[x] += row[i * d + x];
  for (size_t x = 0; x < d; x++) to[x] = (float)(sum[x] / (double)rows);
}

static void take_max(const float *row, size_t rows, size_t d, float *to) {
  memcpy(to, row, d * sizeof *to);
  for (size_t i = 1; i < rows; i++)
    for (size_t x = 0; x < d; x++) to[x] = row[i * d + x] > to[x] ? row[i * d + x] : to[x];
}

static void take_item(const struct stack *s, const struct stack_run *r, size_t item, float *to,
                      double *sum) {
  const size_t d = s->form.width, rows = r->geometry.item[item].q;
  const float *row = r->space->flow[s->form.layers].input + r->geometry.item[item].q_row * d;
  if (r->pool == STACK_POOL_MEAN)
    take_mean(row, rows, d, to, sum);
  else if (r->pool == STACK_POOL_MAX)
    take_max(row, rows, d, to);
  else
    memcpy(to, r->pool == STACK_POOL_LAST ? row + (rows - 1) * d : row, d * sizeof *to);
}

/* --- vectors through a matrix --- */

struct pooled {
  size_t items, size;
  float *vector, *other; /* [items, widest] */
  size_t row;
  float *product; /* [items, stripe] */
};

/* The tanh of a finite number. Of others it is not finite, so that they are found. */
static float curve(float z) { return (float)tanh(z) + (z - z); }

static void multiply(struct pooled *p, const struct gemm *g, size_t out, bool curved) {
  for (size_t first = 0, columns; first < out; first += columns) {
    columns = gemm_columns(g, first);
    gemm_run(g, first, p->items, p->vector, p->row, p->product);
    for (size_t i = 0; i < p->items; i++)
      for (size_t x = 0; x < columns; x++) {
        const float z = p->product[i * KERNEL_PANEL_MAX + x];
        p->other[i * p->row + first + x] = curved ? curve(z) : z;
      }
  }
  float *done = p->other;
  p->other = p->vector, p->vector = done, p->size = out;
}

/* --- the whole --- */

/* The vector to length 1, unless it has none. */
static void make_unit(float *x, size_t count) {
  double squares = 0;
  for (size_t i = 0; i < count; i++) squares += (double)x[i] * x[i];
  for (size_t i = 0; i < count && squares > 0; i++) x[i] = (float)(x[i] / sqrt(squares));
}

static void put_items(const struct stack *s, const struct stack_run *r, const struct unit *u,
                      const struct pooled *p) {
  const size_t size = r->output_size;
  for (size_t i = 0; i < u->items; i++) {
    float *to = r->space->pooled + (u->item + i) * size;
    memcpy(to, p->vector + i * p->row, size * sizeof *to);
    if (r->normalize) make_unit(to, size);
    if (s->kernel->peak(size, to) >= KERNEL_NOT_FINITE)
      run_note_fault(u->run, u->step, u->item + i);
  }
}

static void pool_items(const struct stack *s, const struct unit *u, float *scratch) {
  const struct stack_run *r = stack_run_of(u->run);
  const size_t row = widest(s);
  struct pooled p = {.items = u->items, .size = s->form.width, .row = row};
  double *sum = (double *)scratch;
  p.vector = scratch + 2 * size_round_up(s->form.width, 16);
  p.other = p.vector + STACK_POOL_ITEMS * row;
  p.product = p.other + STACK_POOL_ITEMS * row;
  for (size_t i = 0; i < u->items; i++) take_item(s, r, u->item + i, p.vector + i * row, sum);
  if (r->pool == STACK_POOL_POOLER) multiply(&p, s->pooler, s->form.width, true);
  if (s->dense && !r->dense_left)
    multiply(&p, s->dense, s->form.pooling.dense_size, s->form.pooling.dense_tanh);
  put_items(s, r, u, &p);
}

static bool pool_unit(const struct step *step, struct cursor *at, struct unit *u) {
  (void)step;
  const struct stack_run *r = stack_run_of(u->run);
  if (r->pool == STACK_POOL_NONE || at->item == r->geometry.items) return false;
  u->item = at->item;
  u->items = size_min(STACK_POOL_ITEMS, r->geometry.items - at->item);
  at->item += u->items;
  return true;
}

/* Of so many items with so many rows. */
static double items_work(const struct stack *s, size_t items, size_t rows) {
  const double d = (double)s->form.width, out = (double)s->form.pooling.dense_size;
  return 4 * d * (double)rows + 2 * d * (d + out) * (double)items;
}

static double pool_work(const struct step *step, const struct unit *u) {
  const struct item *item = &stack_run_of(u->run)->geometry.item[u->item];
  const struct item *last = item + u->items - 1;
  return items_work(stack_step_of(step)->stack, u->items, last->q_row + last->q - item->q_row);
}

double stack_pool_work(const struct stack *s, const struct stack_run *r) {
  return r->pool == STACK_POOL_NONE ? 0 : items_work(s, r->geometry.items, r->geometry.q_rows);
}

static void compute_pool(const struct step *step, const struct span *span, void *scratch) {
  const unsigned mode = kernel_enter();
  struct span left = *span;
  struct unit u;
  while (run_next_unit(&left, &u)) pool_items(stack_step_of(step)->stack, &u, scratch);
  kernel_leave(mode);
}

static enum status fault_of_pool(const struct step *step, const struct run *r, uint64_t item,
                                 struct error *e) {
  (void)step, (void)r;
  return error_set(e, STATUS_NOT_FINITE, "the vector of item %zu is beyond float32", (size_t)item);
}

const struct step stack_step_pool = {
    .unit = pool_unit, .work = pool_work, .compute = compute_pool, .fault = fault_of_pool};
