/* huge: memory for large matrices. */
#ifndef CORE_HUGE_H
#define CORE_HUGE_H

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Allocates large matrices on huge pages, if the system has them: address translation of small
 * pages costs a few percent of reading. The caller frees it; NULL: there is not enough. */
static inline void *huge_alloc(size_t bytes) {
  enum { HUGE_PAGE = 2 << 20 };
  void *memory;
  const int large = bytes >= HUGE_PAGE;
  if (posix_memalign(&memory, large ? HUGE_PAGE : 64, bytes)) return NULL;
  if (large) madvise(memory, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
  return memory;
}

#endif
