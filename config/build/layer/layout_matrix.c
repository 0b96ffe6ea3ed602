/* layout_matrix: reads parts of tensors, transposed where they lie the other way. */
#include "config/build/layer/layout_matrix.h"

#include "core/base/size.h"
#include "core/base/team.h"

/* Numbers: of a piece that one thread reads, and those of it that are held at a time where they do
 * not lie as they are wanted. */
enum { PIECE = 256 * 1024, HELD = 8 * 1024 };

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

/* A part that is being read. */
struct layout_reading {
  struct checkpoint *file;
  const struct checkpoint_entry *tensor;
  struct layout_lines lines;
  uint64_t begin, end; /* from its first number to its last, in the tensor */
  bool scattered;      /* the numbers do not lie one behind the other, as they are wanted */
  float *out;
};

static enum status read_scattered(const struct layout_reading *r, uint64_t at, uint64_t end,
                                  struct error *e) {
  float held[HELD];
  for (size_t n; at < end && e->status == STATUS_OK; at += n) {
    n = size_min(HELD, (size_t)(end - at));
    if (checkpoint_read_floats(r->file, r->tensor, at, n, held, e) == STATUS_OK)
      scatter_piece(&r->lines, at, held, n, r->out);
  }
  return e->status;
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
