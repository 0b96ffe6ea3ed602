/* answer_section: what shape a section of an answer has, and how its rows are written. */
#include "server/answer/answer_section.h"

#include <stdint.h>

/* The numbers of an item's rows of all heads begin here in their array. */
static size_t begin_of(const struct answer_section *s, size_t item) {
  return s->times * answer_size(s->begin, item);
}

static struct answer_array array_of(const struct answer_section *s, size_t item) {
  const size_t rows = answer_size(s->rows, item), width = answer_size(s->width, item);
  struct answer_array a = {.count = answer_section_count(s, item)};
  if (s->per_head) a.dim[a.rank++] = s->heads;
  a.dim[a.rank++] = rows;
  if (!s->is_integer) a.dim[a.rank++] = width;
  return a;
}

struct answer_array answer_section_array(const struct answer_section *s, size_t item) {
  struct answer_array a = array_of(s, item);
  if (a.count) a.data = (const float *)s->data + begin_of(s, item);
  return a;
}

struct answer_array answer_section_whole(const struct answer_section *s, bool unbatched) {
  struct answer_array a = array_of(s, 0);
  a.data = s->data;
  if (unbatched) return a;
  memmove(a.dim + 1, a.dim, a.rank * sizeof *a.dim);
  a.dim[0] = s->items;
  a.rank++;
  a.count *= s->items;
  return a;
}

char *answer_write_shape(char *out, const struct answer_array *a) {
  *out++ = '[';
  for (size_t i = 0; i < a->rank; i++) {
    if (i > 0) *out++ = ',';
    out = number_write_integer(out, (int64_t)a->dim[i]);
  }
  *out++ = ']';
  return out;
}

/* Where the rows begin in their array. */
static size_t index_of(const struct answer_rows *r) {
  const size_t row = r->head * answer_size(r->section->rows, r->item) + r->first;
  return begin_of(r->section, r->item) + row * r->width;
}

char *answer_write_floats(const struct answer_rows *r, char *out) {
  const float *row = r->width ? (const float *)r->section->data + index_of(r) : NULL;
  return number_write_rows(out, row, r->count, r->width);
}

char *answer_write_integers(const struct answer_rows *r, char *out) {
  const int32_t *integer = (const int32_t *)r->section->data + index_of(r);
  for (size_t i = 0; i < r->count; i++) {
    if (i > 0) *out++ = ',';
    out = number_write_integer(out, integer[i]);
  }
  return out;
}
