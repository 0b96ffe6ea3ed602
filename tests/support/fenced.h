/* fenced: memory between two pages that must not be touched, for readers of text that look beyond
 * its end, but no further than their margin. */
#ifndef TESTS_FENCED_H
#define TESTS_FENCED_H

#include <stdbool.h>
#include <string.h>

#include <sys/mman.h>
#include <unistd.h>

#include "core/base/status.h"
#include "server/number/number.h"

enum { FENCED_ROOM = 256 * 1024 };

struct fenced {
  char *map, *begin, *end; /* what may be touched */
  size_t page;
};

static inline void fenced_init(struct fenced *f) {
  f->page = (size_t)sysconf(_SC_PAGESIZE);
  size_t size = FENCED_ROOM + 2 * f->page;
  f->map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  must(f->map != MAP_FAILED);
  f->begin = f->map + f->page;
  f->end = f->begin + FENCED_ROOM;
  must(mprotect(f->map, f->page, PROT_NONE) == 0);
  must(mprotect(f->end, f->page, PROT_NONE) == 0);
}

static inline void fenced_done(struct fenced *f) {
  must(munmap(f->map, FENCED_ROOM + 2 * f->page) == 0);
}

/* The text at the very start, or at the end with nothing but the margin behind it. The margin holds
 * more numbers, which must not be taken. */
static inline char *fenced_put(const struct fenced *f, const char *text, size_t length,
                               bool at_end) {
  must(length + NUMBER_READ_MARGIN <= FENCED_ROOM);
  char *to = at_end ? f->end - NUMBER_READ_MARGIN - length : f->begin;
  memcpy(to, text, length);
  for (size_t i = 0; i < NUMBER_READ_MARGIN; i++) to[length + i] = "1,2]"[i % 4];
  return to;
}

#endif
