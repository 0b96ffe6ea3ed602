/* hang: a preloaded library in which a thread stops for good, or the program is started again.
 *
 * HANG names a folder. Once it has a file `io`, `accept` or `reaper`, a thread of that kind that is
 * about to wait does not come back from it until the file is gone. They are told by what they wait
 * for: so many descriptors. With `first-io` or `first-accept` it is only the first one that ever
 * waited: the admin door's, which is opened before the other. With `read`, what reads much of a file
 * at a time does not come back. If it has `old`, OpenBLAS takes the processor for an old one until it
 * is told otherwise; with `older`, whatever it is told. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int wanted(const char *what) {
  const char *folder = getenv("HANG");
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder ? folder : "", what);
  return access(path, F_OK) == 0;
}

static int is_first(nfds_t count) {
  static _Atomic pid_t first[8];
  pid_t none = 0;
  return atomic_compare_exchange_strong(&first[count % 8], &none, gettid()) || none == gettid();
}

int poll(struct pollfd *fds, nfds_t count, int timeout) {
  static const char *const kinds[] = {NULL, "reaper", "accept", NULL, "io"};
  int (*real)(struct pollfd *, nfds_t, int) = dlsym(RTLD_NEXT, "poll");
  const char *kind = count < sizeof kinds / sizeof *kinds ? kinds[count] : NULL;
  char alone[16];
  snprintf(alone, sizeof alone, "first-%s", kind ? kind : "");
  const int first = is_first(count);
  while (kind && (wanted(kind) || (first && wanted(alone)))) usleep(1000);
  return real(fds, count, timeout);
}

ssize_t pread(int fd, void *out, size_t size, off_t at) {
  ssize_t (*real)(int, void *, size_t, off_t) = dlsym(RTLD_NEXT, "pread");
  while (size > 16384 && wanted("read")) usleep(1000);
  return real(fd, out, size, at);
}

char *openblas_get_corename(void) {
  static char old[] = "Prescott";
  char *(*real)(void) = dlsym(RTLD_NEXT, "openblas_get_corename");
  return wanted("older") || (wanted("old") && !getenv("OPENBLAS_CORETYPE")) ? old : real();
}
