/* layout_read: reads parts of tensors, turned round where they lie the other way. */
#include "config/model/layout_read.h"

#include <stdlib.h>

#include "core/run/size.h"

enum { PIECE = 64 * 1024 }; /* numbers held at a time */

/* A part as it lies: lines of `width` numbers one after the other, of which each has its own from
 * `column` to `column + columns - 1`. What runs fastest in the file is a line. */
struct lie {
  uint64_t width;
  uint64_t line, column;
  size_t lines, columns;
  bool turned; /* what is wanted runs the other way */
};

static struct lie lie_of(const struct layout_part *p, bool transposed) {
  const struct checkpoint_entry *t = p->tensor;
  const uint64_t rows = t->rank == 1 ? 1 : t->dim[0], columns = t->dim[t->rank - 1];
  if (t->by_columns && t->rank == 2)
    return (struct lie){.width = rows,
                        .line = p->column,
                        .column = p->row,
                        .lines = p->columns,
                        .columns = p->rows,
                        .turned = !transposed};
  return (struct lie){.width = columns,
                      .line = p->row,
                      .column = p->column,
                      .lines = p->rows,
                      .columns = p->columns,
                      .turned = transposed};
}

/* Puts `count` numbers, the tensor's from `at` on, where they belong; others are passed over. */
static void put(const struct lie *l, uint64_t at, const float *numbers, size_t count, float *out) {
  while (count > 0) {
    const size_t line = (size_t)(at / l->width - l->line);
    const uint64_t from = at % l->width, end = l->column + l->columns;
    const size_t n = l->width - from < count ? (size_t)(l->width - from) : count;
    for (size_t i = from < l->column ? (size_t)size_min(l->column - from, n) : 0;
         i < n && from + i < end; i++) {
      const size_t column = (size_t)(from + i - l->column);
      out[l->turned ? column * l->lines + line : line * l->columns + column] = numbers[i];
    }
    at += n;
    numbers += n;
    count -= n;
  }
}

enum status layout_read(struct checkpoint *file, const struct layout_part *part, bool transposed,
                        float *out, struct error *e) {
  const struct lie l = lie_of(part, transposed);
  uint64_t at = l.line * l.width + l.column;
  const uint64_t end = (l.line + l.lines - 1) * l.width + l.column + l.columns;
  if (!l.turned && (l.lines == 1 || l.columns == l.width))
    return checkpoint_floats(file, part->tensor, at, l.lines * l.columns, out, e);
  float *piece = malloc(size_min(PIECE, (size_t)(end - at)) * sizeof *piece);
  if (!piece) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a piece of a tensor");
  for (size_t n; at < end && e->status == STATUS_OK; at += n) {
    n = size_min(PIECE, (size_t)(end - at));
    if (checkpoint_floats(file, part->tensor, at, n, piece, e) == STATUS_OK)
      put(&l, at, piece, n, out);
  }
  free(piece);
  return e->status;
}
