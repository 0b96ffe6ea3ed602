/* failmalloc: a preloaded allocator whose n-th allocation fails, counted from outside.
 *
 * The file named by FAILMALLOC is mapped and shared with the test, which arms it by writing
 * `countdown`: n makes the n-th allocation from then on fail, 0 disarms. With `sticky` all later
 * ones fail too. Allocations of the libraries count like our own. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct control {
  _Atomic int64_t countdown;
  _Atomic int64_t sticky;
  _Atomic int64_t failed; /* how many allocations have failed */
};

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static struct control *control;

__attribute__((constructor)) static void open_control(void) {
  const char *path = getenv("FAILMALLOC");
  int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *p = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (p != MAP_FAILED) control = p;
}

/* Is it this allocation's turn to fail? */
static int fails(void) {
  if (!control) return 0;
  int64_t left = atomic_load(&control->countdown);
  do {
    if (left == 0) return 0;
    if (left == 1 && atomic_load(&control->sticky)) break;
  } while (!atomic_compare_exchange_weak(&control->countdown, &left, left - 1));
  if (left != 1) return 0;
  atomic_fetch_add(&control->failed, 1);
  errno = ENOMEM;
  return 1;
}

void *malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }

void *calloc(size_t count, size_t size) { return fails() ? NULL : __libc_calloc(count, size); }

void *realloc(void *old, size_t size) { return fails() ? NULL : __libc_realloc(old, size); }

void *aligned_alloc(size_t alignment, size_t size) {
  return fails() ? NULL : __libc_memalign(alignment, size);
}

void *memalign(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }

int posix_memalign(void **out, size_t alignment, size_t size) {
  void *p = fails() ? NULL : __libc_memalign(alignment, size);
  if (!p) return ENOMEM;
  *out = p;
  return 0;
}
