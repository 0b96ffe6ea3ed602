/* answer_section: what shape a section of an answer has, and how its rows are written. */
#include "server/answer/answer_section.h"

#include <stdint.h>

#include "core/base/size.h"

/* Returns where an item's rows of all heads begin in the array of numbers. */
static size_t begin_of(const struct answer_section *s, size_t item) {
  return s->times * answer_size(s->begin, item);
}

/* Returns the shape of one item. Rows that are one number each have no last dimension. */
static struct answer_array array_of(const struct answer_section *s, size_t rows, size_t width) {
  struct answer_array a = {.count = s->heads * rows * width};
  if (s->per_head) a.dim[a.rank++] = s->heads;
  if (!s->scalar) a.dim[a.rank++] = rows;
  if (!s->bare && s->number != NUMBER_INTEGER && s->number != NUMBER_LENGTH)
    a.dim[a.rank++] = width;
  return a;
}

struct answer_array answer_section_array(const struct answer_section *s, size_t item) {
  struct answer_array a = array_of(s, answer_size(s->rows, item), answer_size(s->width, item));
  if (a.count) a.data = (const char *)s->data + begin_of(s, item) * answer_section_size(s);
  return a;
}

struct answer_array answer_section_whole(const struct answer_section *s, bool unbatched) {
  struct answer_array a = s->padded
                              ? array_of(s, s->padded_rows, s->padded_width)
                              : array_of(s, answer_size(s->rows, 0), answer_size(s->width, 0));
  if (!s->padded) a.data = s->data;
  /* The rows of a single list are the batch's dimension, which may have to be omitted. */
  if (s->single && unbatched) memmove(a.dim, a.dim + 1, --a.rank * sizeof *a.dim);
  if (s->single || !s->batch || (unbatched && !s->several)) return a;
  memmove(a.dim + 1, a.dim, a.rank * sizeof *a.dim);
  a.dim[0] = s->items;
  a.rank++;
  a.count *= s->items;
  return a;
}

void answer_section_copy(const struct answer_section *s, size_t from, size_t count, void *out) {
  const size_t size = answer_section_size(s);
  char *to = out;
  if (!s->padded) {
    memcpy(out, (const char *)s->whole.data + from * size, count * size);
    return;
  }
  while (count > 0) {
    /* The rest of one padded row: the item's numbers as far as it has any, then zeros. */
    const size_t column = from % s->padded_width, n = size_min(count, s->padded_width - column);
    const size_t row = from / s->padded_width, list = row / s->padded_rows;
    const size_t item = list / s->heads, head = list % s->heads, at = row % s->padded_rows;
    const size_t rows = answer_size(s->rows, item), width = answer_size(s->width, item);
    const size_t copied = at < rows && column < width ? size_min(width - column, n) : 0;
    if (copied) {
      const size_t first = begin_of(s, item) + (head * rows + at) * width + column;
      memcpy(to, (const char *)s->data + first * size, copied * size);
    }
    memset(to + copied * size, 0, (n - copied) * size);
    from += n;
    count -= n;
    to += n * size;
  }
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

size_t answer_rows_index(const struct answer_rows *r) {
  const size_t row = r->head * answer_size(r->section->rows, r->item) + r->first;
  return begin_of(r->section, r->item) + row * r->width;
}

char *answer_write_floats(const struct answer_rows *r, char *out) {
  const float *row = r->width ? (const float *)r->section->data + answer_rows_index(r) : NULL;
  return number_write_rows(out, row, r->count, r->width);
}

char *answer_write_bare(const struct answer_rows *r, char *out) {
  const float *number = (const float *)r->section->data + answer_rows_index(r);
  for (size_t i = 0; i < r->count; i++) {
    if (i > 0) *out++ = ',';
    out = number_write(out, number[i]);
  }
  return out;
}

char *answer_write_integers(const struct answer_rows *r, char *out) {
  const int32_t *integer = (const int32_t *)r->section->data + answer_rows_index(r);
  for (size_t i = 0; i < r->count; i++) {
    if (i > 0) *out++ = ',';
    out = number_write_integer(out, integer[i]);
  }
  return out;
}

char *answer_usage_write(char *out, const struct answer_usage *u) {
  if (u->write) return u->write(out, u);
  out = answer_write_text(out, "{\"tokens\":");
  out = number_write_integer(out, (int64_t)u->tokens);
  out = answer_write_text(out, ",\"cached\":");
  out = number_write_integer(out, (int64_t)u->cached);
  out = answer_write_text(out, ",\"generated\":");
  out = number_write_integer(out, u->generated ? (int64_t)u->generated(u->of) : 0);
  return answer_write_text(out, "}");
}
