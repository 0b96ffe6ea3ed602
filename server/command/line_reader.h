/* line_reader: what a descriptor holds, line by line; each is whole in memory, up to a length. */
#ifndef SERVER_LINE_READER_H
#define SERVER_LINE_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/status.h"

struct line_reader {
  int in;
  size_t longest; /* bytes of a line that is read whole */
  bool ended;     /* `in` has no more, or could not be read */
  size_t number;  /* of the last line that was given, from 1 */

  /* Its own: in `bytes`, those from `begin` to `end` have not been given, and before `searched`
   * none of them ends a line. */
  char *bytes;
  size_t capacity, begin, searched, end;
  bool skips; /* the rest of a line that was too long */
};

/* A line without its newline, until the next call of line_reader_fill. Of a line that is too long
 * it is the first `longest` + 1 bytes, and the rest is never seen. */
struct line_reader_line {
  const char *text;
  size_t length;
};

void line_reader_init(struct line_reader *r, int in, size_t longest);
void line_reader_done(struct line_reader *r);

/* Gives the next line that has been read whole, blank ones among them; the last needs no newline.
 * False: first comes line_reader_fill, or, if the reader has ended, nothing. */
bool line_reader_next(struct line_reader *r, struct line_reader_line *line);

/* Takes what `in` has to give, and waits if that is nothing yet. To be called when line_reader_next
 * has no more to give. A failure ends the reader. */
enum status line_reader_fill(struct line_reader *r, struct error *e);

#endif
