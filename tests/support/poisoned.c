/* poisoned: an allocator whose memory holds NaN, and of which one allocation of so many may fail.
 *
 * The linker calls these in place of the system's own where objects of the program allocate; what
 * libraries allocate is not touched. */
#include "tests/support/poisoned.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

static atomic_size_t count, fatal;

void poisoned_fail(size_t n) {
  atomic_store(&fatal, n);
  atomic_store(&count, 0);
}

size_t poisoned_count(void) { return atomic_load(&count); }

static int fails(void) { return atomic_fetch_add(&count, 1) + 1 == atomic_load(&fatal); }

static void *poison(void *memory, size_t size) {
  return memory ? memset(memory, 0xff, size) : NULL;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t number, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **out, size_t alignment, size_t size);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t number, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __wrap_posix_memalign(void **out, size_t alignment, size_t size);

void *__wrap_malloc(size_t size) { return fails() ? NULL : poison(__real_malloc(size), size); }

void *__wrap_calloc(size_t number, size_t size) {
  return fails() ? NULL : __real_calloc(number, size);
}

void *__wrap_realloc(void *old, size_t size) { return fails() ? NULL : __real_realloc(old, size); }

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
  return fails() ? NULL : poison(__real_aligned_alloc(alignment, size), size);
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t size) {
  if (fails()) return ENOMEM;
  const int failed = __real_posix_memalign(out, alignment, size);
  if (!failed) poison(*out, size);
  return failed;
}
