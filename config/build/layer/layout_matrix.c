/* layout_matrix: reads parts of tensors, and transposes them if they are stored the other way. */
#include "config/build/layer/layout_matrix.h"

#include "core/base/size.h"
#include "core/base/team.h"

/* Numbers of a piece that one thread reads, and of a buffer for numbers that must be scattered. */
enum { PIECE = 256 * 1024, HELD = 8 * 1024 };

/* A part as it is stored: the tensor, whose dimensions behind the first count as one, is lines of
 * `width` contiguous numbers. The part has `lines` of them from `line` on, and in each the numbers
 * from `column` to `column + columns - 1`. */
struct layout_lines {
  uint64_t width;
  uint64_t line, column;
  size_t lines, columns;
  bool turned; /* the result is the transpose of this */
};

static struct layout_lines lines_of_part(const struct layout_part *p, bool transposed) {
  const struct checkpoint_entry *t = p->tensor;
  const uint64_t rows = t->rank == 1 ? 1 : t->dim[0], columns = t->count / rows;
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

/* A part that is being read. */
struct layout_reading {
  struct checkpoint *file;
  const struct checkpoint_entry *tensor;
  struct layout_lines lines;
  uint64_t begin, end; /* from its first number to its last, in the tensor */
  bool scattered;      /* the numbers are not contiguous, or not in the order of the result */
  float *out;
};

/* Reads the tensor's numbers from `at` to `end - 1`, and copies those of the part
 * to their places. */
static enum status read_scattered(const struct layout_reading *r, uint64_t at, uint64_t end,
                                  struct error *e) {
  const struct layout_lines *l = &r->lines;
  float held[HELD];
  while (at < end) {
    const size_t count = size_min(HELD, (size_t)(end - at));
    if (checkpoint_read_floats(r->file, r->tensor, at, count, held, e)) return e->status;
    const float *numbers = held;
    for (size_t left = count, n; left > 0; at += n, numbers += n, left -= n) {
      const size_t line = (size_t)(at / l->width - l->line);
      const uint64_t from = at % l->width, last = l->column + l->columns;
      n = l->width - from < left ? (size_t)(l->width - from) : left;
      for (size_t i = from < l->column ? (size_t)size_min(l->column - from, n) : 0;
           i < n && from + i < last; i++) {
        const size_t column = (size_t)(from + i - l->column);
        r->out[l->turned ? column * l->lines + line : line * l->columns + column] = numbers[i];
      }
    }
  }
  return STATUS_OK;
}

static enum status read_piece(void *of, size_t index, struct error *e) {
  const struct layout_reading *r = of;
  const uint64_t at = r->begin + (uint64_t)index * PIECE;
  const size_t n = size_min(PIECE, (size_t)(r->end - at));
  if (r->scattered) return read_scattered(r, at, at + n, e);
  return checkpoint_read_floats(r->file, r->tensor, at, n, r->out + (at - r->begin), e);
}

enum status layout_matrix_read(struct checkpoint *file, const struct layout_part *part,
                               bool transposed, float *out, struct error *e) {
  struct layout_reading r = {.file = file, .tensor = part->tensor, .out = out};
  const struct layout_lines *l = &r.lines;
  r.lines = lines_of_part(part, transposed);
  r.begin = l->line * l->width + l->column;
  r.end = (l->line + l->lines - 1) * l->width + l->column + l->columns;
  r.scattered = l->turned || (l->lines > 1 && l->columns < l->width);
  const size_t pieces = (size_t)((r.end - r.begin + PIECE - 1) / PIECE);
  const bool anywhere = checkpoint_reads_anywhere(file);
  return (anywhere ? team_split : team_row)(pieces, read_piece, &r, e);
}
