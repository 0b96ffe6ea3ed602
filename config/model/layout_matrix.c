/* layout_matrix: reads parts of tensors, transposed where they lie the other way. */
#include "config/model/layout_matrix.h"

#include <stdlib.h>

#include "core/run/size.h"

enum { PIECE = 64 * 1024 }; /* numbers held at a time */

/* A part as it lies in the file: the tensor is lines of `width` numbers, a line being what runs
 * fastest in the file. The part has `lines` of them from `line` on, and of each the numbers from
 * `column` to `column + columns - 1`. */
struct layout_lines {
  uint64_t width;
  uint64_t line, column;
  size_t lines, columns;
  bool turned; /* the result runs the other way */
};

static struct layout_lines lines_of_part(const struct layout_part *p, bool transposed) {
  const struct checkpoint_entry *t = p->tensor;
  const uint64_t rows = t->rank == 1 ? 1 : t->dim[0], columns = t->dim[t->rank - 1];
  if (t->by_columns && t->rank == 2)
    return (struct layout_lines){.width = rows,
                                 .line = p->column,
                                 .column = p->row,
                                 .lines = p->columns,
                                 .columns = p->rows,
                                 .turned = !transposed};
  return (struct layout_lines){.width = columns,
                               .line = p->row,
                               .column = p->column,
                               .lines = p->rows,
                               .columns = p->columns,
                               .turned = transposed};
}

/* Puts `count` numbers, the tensor's from number `at` on, where the part has them; others are
 * skipped. */
static void scatter_piece(const struct layout_lines *l, uint64_t at, const float *numbers,
                          size_t count, float *out) {
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

enum status layout_matrix_read(struct checkpoint *file, const struct layout_part *part,
                               bool transposed, float *out, struct error *e) {
  const struct layout_lines l = lines_of_part(part, transposed);
  uint64_t at = l.line * l.width + l.column;
  const uint64_t end = (l.line + l.lines - 1) * l.width + l.column + l.columns;
  if (!l.turned && (l.lines == 1 || l.columns == l.width))
    return checkpoint_read_floats(file, part->tensor, at, l.lines * l.columns, out, e);
  float *piece = malloc(size_min(PIECE, (size_t)(end - at)) * sizeof *piece);
  if (!piece) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a piece of a tensor");
  for (size_t n; at < end && e->status == STATUS_OK; at += n) {
    n = size_min(PIECE, (size_t)(end - at));
    if (checkpoint_read_floats(file, part->tensor, at, n, piece, e) == STATUS_OK)
      scatter_piece(&l, at, piece, n, out);
  }
  free(piece);
  return e->status;
}
