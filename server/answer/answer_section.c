/* answer_section: what shape a section of an answer has, and how its rows are written. */
#include "server/answer/answer_section.h"

#include <stdint.h>

/* The numbers of an item's rows of all heads begin here in their array. */
static size_t begin_of(const struct answer_section *s, size_t item) {
  return s->times * answer_size(s->begin, item);
}

/* Is each row a list of numbers? */
static bool has_width(const struct answer_section *s) {
  return !s->bare && s->number != NUMBER_INTEGER && s->number != NUMBER_LENGTH;
}

static struct answer_array array_of(const struct answer_section *s, size_t rows, size_t width) {
  struct answer_array a = {.count = s->heads * rows * width};
  if (s->per_head) a.dim[a.rank++] = s->heads;
  if (!s->scalar) a.dim[a.rank++] = rows;
  if (has_width(s)) a.dim[a.rank++] = width;
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
  /* Of a single list the rows are the batch's dimension: there already, where it is not omitted. */
  if (s->single && unbatched) memmove(a.dim, a.dim + 1, --a.rank * sizeof *a.dim);
  if (s->single || !s->batch || (unbatched && !s->several)) return a;
  memmove(a.dim + 1, a.dim, a.rank * sizeof *a.dim);
  a.dim[0] = s->items;
  a.rank++;
  a.count *= s->items;
  return a;
}

/* Numbers of one row of the padded array, from `column` on, as many as there are. */
static void copy_row(const struct answer_section *s, size_t row, size_t column, size_t count,
                     char *out) {
  const size_t size = answer_section_size(s), list = row / s->padded_rows;
  const size_t item = list / s->heads, head = list % s->heads, at = row % s->padded_rows;
  const size_t rows = answer_size(s->rows, item), width = answer_size(s->width, item);
  const size_t there = at < rows && column < width ? width - column : 0;
  const size_t copied = there < count ? there : count;
  if (copied) {
    const size_t from = begin_of(s, item) + (head * rows + at) * width + column;
    memcpy(out, (const char *)s->data + from * size, copied * size);
  }
  memset(out + copied * size, 0, (count - copied) * size);
}

void answer_section_copy(const struct answer_section *s, size_t from, size_t count, void *out) {
  const size_t size = answer_section_size(s), width = s->padded_width;
  char *to = out;
  if (!s->padded) {
    memcpy(out, (const char *)s->whole.data + from * size, count * size);
    return;
  }
  while (count > 0) {
    const size_t column = from % width, left = width - column, n = count < left ? count : left;
    copy_row(s, from / width, column, n, to);
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
