/* failmalloc: a preloaded allocator whose n-th allocation fails, counted from outside.
 *
 * The file named by FAILMALLOC is mapped and shared with the test, which arms it by writing
 * `countdown`: n makes the n-th allocation from then on fail, 0 disarms. With `sticky` all later
 * ones fail too. With `share` one of so many fails, at random. Allocations of the libraries count
 * like our own. What does not fail goes on to the next allocator, which may be a sanitizer's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
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
  _Atomic int64_t share;  /* 0: by countdown */
};

static struct control *control;

__attribute__((constructor)) static void open_control(void) {
  const char *path = getenv("FAILMALLOC");
  int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *p = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (p != MAP_FAILED) control = p;
}

static int is_drawn(int64_t share) {
  static _Atomic uint64_t turn;
  uint64_t x = atomic_fetch_add(&turn, 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9u;
  return (x >> 32) % (uint64_t)share == 0;
}

static int is_turn(void) {
  int64_t left = atomic_load(&control->countdown);
  do {
    if (left == 0) return 0;
    if (left == 1 && atomic_load(&control->sticky)) break;
  } while (!atomic_compare_exchange_weak(&control->countdown, &left, left - 1));
  return left == 1;
}

/* The address sanitizer asks where a new thread's stack is, and ends the process if there is no
 * memory for that. What it needs then does not count. */
static _Thread_local int exempt;

/* Is it this allocation's turn to fail? */
static int fails(void) {
  if (!control || exempt) return 0;
  const int64_t share = atomic_load(&control->share);
  if (!(share ? is_drawn(share) : is_turn())) return 0;
  atomic_fetch_add(&control->failed, 1);
  errno = ENOMEM;
  return 1;
}

#define REAL(name)               \
  static __typeof__(&name) real; \
  if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes) {
  REAL(pthread_getattr_np);
  exempt++;
  const int failed = real(thread, attributes);
  exempt--;
  return failed;
}

void *malloc(size_t size) {
  REAL(malloc);
  return fails() ? NULL : real(size);
}

void *calloc(size_t count, size_t size) {
  REAL(calloc);
  return fails() ? NULL : real(count, size);
}

void *realloc(void *old, size_t size) {
  REAL(realloc);
  return fails() ? NULL : real(old, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  REAL(aligned_alloc);
  return fails() ? NULL : real(alignment, size);
}

void *memalign(size_t alignment, size_t size) {
  REAL(memalign);
  return fails() ? NULL : real(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
  REAL(posix_memalign);
  return fails() ? ENOMEM : real(out, alignment, size);
}
