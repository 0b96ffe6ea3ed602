/* layer_disentangled: DeBERTa's disentangled positions: the position keys and position queries with
 * which queries and keys are multiplied.
 *
 * They depend on the layer alone: the table of positions is projected once, when the layer is made,
 * in float32 even if the layer's matrices are quantized. Only rows that some distance has are kept,
 * in the order of the distances: so the next distance has the same row or the next one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/attention/layer_parts.h"
#include "core/base/size.h"

enum { PROJECTED_ROWS = 128 }; /* that are projected at a time */

struct disentangled {
  size_t rows;
  float *key;   /* [G, rows, d], or NULL */
  float *query; /* [H, d, query_row], multiplied by the scale, or NULL */
  size_t query_row;
  int32_t *row; /* [2 (reach + KERNEL_LANES_MAX) + 1] of each distance from the least one on */
  int32_t reach;
  double key_top, query_top; /* greatest magnitudes */
};

/* --- the rows of distances --- */

/* The row of the table for a distance. A number of steps that should be whole is not exactly: it
 * misses a whole number by far less than any other distance. */
static size_t row_of(const struct layer_shape *s, int64_t distance) {
  const int64_t span = (int64_t)s->position_span, half = span / 2, size = llabs(distance);
  int64_t r = distance;
  if (s->position_reach > 0 && size > half) {
    const long double most = (long double)(s->position_reach - 1) / (long double)half;
    const long double steps =
        logl((long double)size / (long double)half) / logl(most) * (long double)(half - 1);
    const long double whole = roundl(steps);
    const int64_t to = half + (int64_t)(fabsl(steps - whole) < 1e-12L ? whole : ceill(steps));
    r = distance < 0 ? -to : to;
  }
  return (size_t)((r < -span ? -span : r >= span ? span - 1 : r) + span);
}

/* Sets the row of each distance, counted among those that some distance has, which become the first
 * d->rows of `used` [2 S]. */
static void number_rows(const struct layer_shape *s, struct disentangled *d, size_t *used) {
  const int64_t most = d->reach + KERNEL_LANES_MAX;
  for (int64_t r = -most; r <= most; r++) {
    const size_t row = row_of(s, r < -d->reach ? -d->reach : r > d->reach ? d->reach : r);
    if (d->rows == 0 || used[d->rows - 1] != row) used[d->rows++] = row;
    d->row[r + most] = (int32_t)d->rows - 1;
  }
}

/* The number of rows that some distance has: distances in order have rows in order. */
static size_t count_rows(const struct layer_shape *s) {
  const int64_t reach = (int64_t)size_max(s->position_span, s->position_reach);
  size_t rows = 0;
  for (int64_t r = -reach, last = -1; r <= reach; r++) {
    const int64_t row = (int64_t)row_of(s, r);
    rows += row != last;
    last = row;
  }
  return rows;
}

/* --- sizes --- */

/* A panel of columns may begin at the last row; and rows begin in different sets of the cache. */
static size_t query_row(size_t rows) {
  return size_round_up(rows + KERNEL_PANEL_MAX + 2 * KERNEL_LANES_MAX, 32) + 16;
}

/* Half of the numbers in the table of the distances' rows. */
static size_t half_distances(const struct layer_shape *s) {
  return size_max(s->position_span, s->position_reach) + KERNEL_LANES_MAX + 1;
}

static size_t bytes_of(const struct layer_shape *s, size_t rows) {
  return 2 * half_distances(s) * sizeof(int32_t) +
         (s->position_keys ? s->kv_heads * rows * s->head_size * sizeof(float) : 0) +
         (s->position_queries ? s->heads * query_row(rows) * s->head_size * sizeof(float) : 0);
}

size_t layer_position_bytes(const struct layer_shape *s) {
  return s->position_span ? bytes_of(s, count_rows(s)) : 0;
}

size_t disentangled_bytes(const struct layer *l) {
  return l->disentangled ? bytes_of(&l->shape, l->disentangled->rows) : 0;
}

/* --- projections --- */

/* The place of the projected rows, as heads. */
struct projected {
  float *to;
  size_t head_step, number_step, row_step; /* from one to the next */
  float factor;
  double top; /* greatest magnitude so far; infinite if one is not a number */
};

static void store(struct projected *p, size_t head, size_t x, size_t row, float y) {
  const float z = y * p->factor;
  p->to[head * p->head_step + x * p->number_step + row * p->row_step] = z;
  p->top = isfinite(z) ? fmax(p->top, fabs((double)z)) : INFINITY;
}

/* Multiplies `rows` rows x [rows, in] with the matrix; they are numbered from `first` on. */
static void project_rows(const struct layer *l, const struct gemm *g, size_t out, const float *x,
                         size_t first, size_t rows, float *scratch, struct projected *p) {
  const size_t in = l->shape.query_size, size = l->shape.head_size, stripe = gemm_stripe(g);
  const struct gemm_input input = gemm_input(g, rows, x, in, scratch + rows * stripe);
  for (size_t column = 0, count; column < out; column += count) {
    count = gemm_columns(g, column);
    gemm_run(g, column, &input, scratch);
    for (size_t i = 0; i < rows; i++)
      for (size_t c = 0; c < count; c++)
        store(p, (column + c) / size, (column + c) % size, first + i, scratch[i * stripe + c]);
  }
}

/* Projects the used rows of the table into `heads` heads. */
static void project(const struct layer *l, const struct layer_matrix matrix[ROLE_COUNT],
                    enum role role, enum gemm_engine engine, const size_t *used,
                    struct projected *p, struct error *e) {
  const enum role own = role == ROLE_KEY ? ROLE_POSITION_KEY : ROLE_POSITION_QUERY;
  const struct layer_matrix *m = matrix[own].weight ? &matrix[own] : &matrix[role];
  const size_t in = l->shape.query_size, out = role_heads(l, role) * l->shape.head_size;
  const size_t all = l->disentangled->rows;
  struct gemm *g = gemm_new(out, in, 1, m->weight, m->bias, engine, e);
  if (!g) return;
  const size_t scratch = gemm_scratch_floats(g, PROJECTED_ROWS);
  float *room = aligned_alloc(64, size_round_up(scratch + PROJECTED_ROWS * in, 16) * sizeof *room);
  if (!room) error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a layer");
  for (size_t first = 0, rows; room && first < all; first += rows) {
    float *x = room + scratch;
    rows = size_min(PROJECTED_ROWS, all - first);
    for (size_t i = 0; i < rows; i++)
      memcpy(x + i * in, matrix[ROLE_POSITION].weight + used[first + i] * in, in * sizeof *x);
    project_rows(l, g, out, x, first, rows, room, p);
  }
  free(room);
  gemm_free(g);
}

/* --- the layer --- */

static void *alloc_numbers(size_t a, size_t b, size_t c, struct error *e) {
  size_t count;
  void *p = size_mul(a, b, &count) && size_mul(count, c, &count) ? calloc(count, 4) : NULL;
  if (!p) error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a layer");
  return p;
}

/* Sets the rows of distances: their number is less than the table's, or the same. */
static void make_rows(struct layer *l, size_t *used, struct error *e) {
  struct disentangled *d = l->disentangled;
  const size_t reach = size_max(l->shape.position_span, l->shape.position_reach);
  must(l->shape.position_reach == 0 || l->shape.position_span % 2 == 0);
  must(reach < INT32_MAX / 2);
  d->row = alloc_numbers(half_distances(&l->shape), 2, 1, e);
  if (!d->row) return;
  d->reach = (int32_t)reach;
  number_rows(&l->shape, d, used);
  d->query_row = query_row(d->rows);
}

void disentangled_make(struct layer *l, const struct layer_matrix matrix[ROLE_COUNT],
                       enum gemm_engine any, struct error *e) {
  const struct layer_shape *s = &l->shape;
  const enum gemm_engine engine = gemm_is_quantized(any) ? GEMM_UNIFORM
                                  : any == GEMM_NARROW   ? GEMM_PACKED /* the same bits */
                                                         : any;
  if (s->position_span == 0 || e->status) return;
  struct disentangled *d = l->disentangled = calloc(1, sizeof *d);
  size_t *used = d ? calloc(s->position_span, 2 * sizeof *used) : NULL;
  if (!used) error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a layer");
  const unsigned mode = kernel_enter();
  if (used) make_rows(l, used, e);
  if (s->position_keys && !e->status) {
    const size_t head = d->rows * s->head_size;
    d->key = alloc_numbers(s->kv_heads, d->rows, s->head_size, e);
    struct projected p = {d->key, head, 1, s->head_size, 1.0f, 0};
    if (d->key) project(l, matrix, ROLE_KEY, engine, used, &p, e);
    d->key_top = p.top;
  }
  if (s->position_queries && !e->status) {
    const size_t head = d->query_row * s->head_size;
    d->query = alloc_numbers(s->heads, d->query_row, s->head_size, e);
    struct projected p = {d->query, head, d->query_row, 1, s->scale, 0};
    if (d->query) project(l, matrix, ROLE_QUERY, engine, used, &p, e);
    d->query_top = p.top;
  }
  kernel_leave(mode);
  free(used);
}

void disentangled_free(struct disentangled *d) {
  if (!d) return;
  free(d->key);
  free(d->query);
  free(d->row);
  free(d);
}

double disentangled_bound(const struct layer *l, double query, double key) {
  const struct disentangled *d = l->disentangled;
  if (!d) return 0;
  return (double)l->shape.head_size * (query * d->key_top + key * d->query_top);
}

/* --- the tile --- */

struct kernel_disentangled disentangled_tile(const struct layer *l, const struct item *item,
                                             size_t row, size_t head) {
  const struct disentangled *d = l->disentangled;
  const size_t size = l->shape.head_size, shared = head / (l->shape.heads / l->shape.kv_heads);
  const float *key = d->key ? d->key + shared * d->rows * size : NULL;
  const float *query = d->query ? d->query + head * size * d->query_row : NULL;
  return (struct kernel_disentangled){.key = key,
                                      .query = query,
                                      .query_row = d->query_row,
                                      .row = d->row + d->reach + KERNEL_LANES_MAX,
                                      .reach = d->reach,
                                      .first = (int64_t)row + item->offset};
}

double disentangled_score(const struct kernel_tile *t, const float *query, const float *key,
                          size_t j) {
  const struct kernel_disentangled *d = &t->disentangled;
  double sum = 0;
  if (!d->row) return 0;
  const int64_t r = d->first - (int64_t)j;
  const size_t row = (size_t)d->row[r < -d->reach ? -d->reach : r > d->reach ? d->reach : r];
  for (size_t x = 0; x < t->head_size; x++) {
    if (d->key) sum += (double)t->scale * query[x] * d->key[row * t->head_size + x];
    if (d->query) sum += (double)key[x] * d->query[x * d->query_row + row];
  }
  return sum;
}
