/* line_reader: the lines of a descriptor; each is complete in memory, up to a length. */
#ifndef SERVER_LINE_READER_H
#define SERVER_LINE_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/status.h"

struct line_reader {
  int in;
  size_t longest; /* the most bytes of a line */
  bool ended;     /* `in` has no more, or could not be read */
  size_t number;  /* the number of the last line that was returned, from 1 */

  /* Private: bytes[begin..end] have not been returned, and none of them before `searched` ends a
   * line. */
  char *bytes;
  size_t capacity, begin, searched, end;
  bool skips; /* the rest of a line that was too long */
};

/* A line without its newline, valid until the next call of line_reader_fill. A line that is too
 * long is cut to its first `longest` + 1 bytes. */
struct line_reader_line {
  const char *text;
  size_t length;
};

void line_reader_init(struct line_reader *r, int in, size_t longest);
void line_reader_done(struct line_reader *r);

/* Returns the next complete line, also if it is blank; the last one needs no newline. False: there
 * is none before line_reader_fill, or, if the reader has ended, at all. */
bool line_reader_next(struct line_reader *r, struct line_reader_line *line);

/* Reads the bytes that `in` has, and waits if there are none yet. To be called when
 * line_reader_next returns false. A failure ends the reader. */
enum status line_reader_fill(struct line_reader *r, struct error *e);

#endif
