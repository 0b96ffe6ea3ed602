/* adapter_term: a product of two small matrices, of which a piece is computed when it is needed. */
#include "config/adapter/adapter_term.h"

#include <stdlib.h>

#include "config/build/layer/layout_matrix.h"
#include "core/base/size.h"

enum { BLOCK = 256 }; /* numbers of a line whose sums are computed together */

/* The tensor's numbers are lines of `width`. In line i, number j gets the product of row i of
 * `left` with column j of `right`. */
struct adapter_term {
  struct adapter_term *next;
  size_t rank, width;
  double scale;
  float *left;  /* [lines, rank] */
  float *right; /* [rank, width] */
};

/* Reads a matrix, or with `turned` its transpose. */
static float *read_matrix(struct checkpoint *file, const struct checkpoint_entry *t, bool turned,
                          struct error *e) {
  const struct layout_part part = {t, 0, 0, (size_t)t->dim[0], (size_t)t->dim[1]};
  size_t count, bytes;
  float *out = size_mul(part.rows, part.columns, &count) && size_mul(count, sizeof *out, &bytes)
                   ? malloc(bytes)
                   : NULL;
  if (!out)
    error_no_memory(e);
  else
    layout_matrix_read(file, &part, turned, out, e);
  return out;
}

struct adapter_term *adapter_term_read(const struct adapter *a, const struct adapter_pair *pair,
                                       bool turned, struct error *e) {
  const struct checkpoint_entry *left = turned ? pair->a : pair->b,
                                *right = turned ? pair->b : pair->a;
  struct adapter_term *t = calloc(1, sizeof *t);
  if (!t) {
    error_no_memory(e);
    return NULL;
  }
  *t = (struct adapter_term){.rank = pair->rank,
                             .width = (size_t)right->dim[turned ? 0 : 1],
                             .scale = pair->scale};
  t->left = read_matrix(a->file, left, turned, e);
  if (e->status == STATUS_OK) t->right = read_matrix(a->file, right, turned, e);
  if (e->status == STATUS_OK) return t;
  adapter_term_free(t);
  return NULL;
}

void adapter_term_free(struct adapter_term *t) {
  while (t) {
    struct adapter_term *next = t->next;
    free(t->left);
    free(t->right);
    free(t);
    t = next;
  }
}

void adapter_term_append(struct adapter_term *t, struct adapter_term *next) {
  while (t->next) t = t->next;
  t->next = next;
}

/* Adds to `count` numbers of a line, from `column` on. */
static void add_block(const struct adapter_term *t, size_t line, size_t column, size_t count,
                      float *numbers) {
  const float *left = t->left + line * t->rank;
  double sum[BLOCK] = {0};
  for (size_t k = 0; k < t->rank; k++) {
    const float *right = t->right + k * t->width + column;
    const double factor = left[k];
    for (size_t j = 0; j < count; j++) sum[j] += factor * right[j];
  }
  for (size_t j = 0; j < count; j++) numbers[j] = (float)(numbers[j] + t->scale * sum[j]);
}

void adapter_term_add(const void *term, uint64_t first, size_t count, float *numbers) {
  for (const struct adapter_term *t = term; t; t = t->next) {
    for (size_t at = 0, n; at < count; at += n) {
      const uint64_t place = first + at;
      const size_t column = (size_t)(place % t->width);
      n = size_min(size_min(t->width - column, BLOCK), count - at);
      add_block(t, (size_t)(place / t->width), column, n, numbers + at);
    }
  }
}
