/* number_rows_walk: how rows are cut into batches. Private to number_rows_avx*.c.
 *
 * Vectors pay for many numbers at a time: a batch of them, whatever rows they belong to, is first
 * turned into digits, then written out row by row. */
#ifndef SERVER_TEXT_NUMBER_ROWS_WALK_H
#define SERVER_TEXT_NUMBER_ROWS_WALK_H

#include <stddef.h>
#include <string.h>

enum { NUMBER_BATCH = 256 };

/* Each level has its own type of batch, which only these two functions know. `prepare` reads up to
 * NUMBER_BATCH numbers into it; `write` writes some of them, each followed by a comma. */
typedef void number_prepare(void *batch, const float *value, size_t count);
typedef char *number_write_some(char *out, const void *batch, const float *value, size_t from,
                                size_t count);

/* Inlined with its functions: narrow rows call `write` every few numbers. */
static inline __attribute__((always_inline)) char *
number_rows_walk(char *out, const float *value, size_t rows, size_t width, void *batch,
                 number_prepare *prepare, number_write_some *write) {
  if (rows == 0) return out;
  const float *end = value + rows * width;
  size_t left = width; /* numbers left in the row */
  *out++ = '[';
  for (; value < end; value += NUMBER_BATCH) {
    const size_t rest = (size_t)(end - value), count = rest < NUMBER_BATCH ? rest : NUMBER_BATCH;
    prepare(batch, value, count);
    for (size_t from = 0; from < count;) {
      const size_t some = left < count - from ? left : count - from;
      out = write(out, batch, value, from, some);
      from += some;
      left -= some;
      if (left > 0) continue;
      memcpy(out - 1, "],[", 3); /* in the place of the last comma */
      out += 2;
      left = width;
    }
  }
  return out - 2; /* no row follows */
}

#endif
