/* line_reader: the lines of a descriptor; each is complete in memory, up to a length. */
#include "server/command/line_reader.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/size.h"

enum { CAPACITY_FIRST = 256 * 1024 };

void line_reader_init(struct line_reader *r, int in, size_t longest) {
  *r = (struct line_reader){.in = in, .longest = size_min(longest, SIZE_MAX / 4)};
}

void line_reader_done(struct line_reader *r) { free(r->bytes); }

bool line_reader_next(struct line_reader *r, struct line_reader_line *line) {
  if (r->skips && r->begin < r->end) { /* drops the rest of a line that was too long */
    const char *end = memchr(r->bytes + r->begin, '\n', r->end - r->begin);
    r->begin = end ? (size_t)(end - r->bytes) + 1 : r->end;
    r->searched = r->begin;
    r->skips = !end;
  }
  if (r->begin == r->end) return false;
  const char *end = memchr(r->bytes + r->searched, '\n', r->end - r->searched);
  const size_t length = (end ? (size_t)(end - r->bytes) : r->end) - r->begin;
  r->searched = r->end;
  r->skips = length > r->longest;
  if (!r->skips && !end && !r->ended) return false;
  *line = (struct line_reader_line){r->bytes + r->begin, r->skips ? r->longest + 1 : length};
  r->begin += line->length + (!r->skips && end ? 1 : 0);
  r->searched = r->begin;
  r->number++;
  return true;
}

/* Makes room for at least one more byte: moves unread bytes to the front, then grows. */
static enum status make_room(struct line_reader *r, struct error *e) {
  if (r->begin > 0) {
    memmove(r->bytes, r->bytes + r->begin, r->end - r->begin);
    r->searched -= r->begin;
    r->end -= r->begin;
    r->begin = 0;
  }
  if (r->end < r->capacity) return STATUS_OK;
  const size_t capacity = r->capacity ? 2 * r->capacity : CAPACITY_FIRST;
  char *bytes = realloc(r->bytes, capacity);
  if (!bytes)
    return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for line %zu, of more than %zu bytes",
                     r->number + 1, r->end);
  r->bytes = bytes;
  r->capacity = capacity;
  return STATUS_OK;
}

enum status line_reader_fill(struct line_reader *r, struct error *e) {
  ssize_t n = -1;
  if (make_room(r, e) == STATUS_OK) {
    do n = read(r->in, r->bytes + r->end, r->capacity - r->end);
    while (n < 0 && errno == EINTR);
    if (n < 0) error_set(e, STATUS_SYSTEM, "cannot read the requests: %s", strerror(errno));
  }
  if (n > 0)
    r->end += (size_t)n;
  else
    r->ended = true;
  if (n < 0) r->begin = r->end; /* an incomplete line is dropped */
  return n < 0 ? e->status : STATUS_OK;
}
