/* faults: a preloaded library that makes the host worse, as the test asks.
 *
 * FAULTS names a folder. While it has a file `add`, libmicrohttpd takes no connection; while it has
 * `epoll`, nothing new can be waited for, which libmicrohttpd finds out about a connection that it
 * has reported as open. If it has `serial`, OpenBLAS says that it was built for one thread, and the
 * program ends when a second one enters it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static int wanted(const char *fault) {
  const char *folder = getenv("FAULTS");
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder ? folder : "", fault);
  return access(path, F_OK) == 0;
}

struct MHD_Daemon;

int MHD_add_connection(struct MHD_Daemon *daemon, int fd, const struct sockaddr *from,
                       socklen_t size) {
  int (*real)(struct MHD_Daemon *, int, const struct sockaddr *, socklen_t) =
      dlsym(RTLD_NEXT, "MHD_add_connection");
  if (!wanted("add")) return real(daemon, fd, from, size);
  close(fd);
  errno = ENOMEM;
  return 0;
}

int epoll_ctl(int set, int what, int fd, struct epoll_event *event) {
  int (*real)(int, int, int, struct epoll_event *) = dlsym(RTLD_NEXT, "epoll_ctl");
  if (what != EPOLL_CTL_ADD || !wanted("epoll")) return real(set, what, fd, event);
  errno = ENOSPC;
  return -1;
}

int openblas_get_parallel(void) {
  int (*real)(void) = dlsym(RTLD_NEXT, "openblas_get_parallel");
  return wanted("serial") ? 0 : real();
}

void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc) {
  static atomic_int threads;
  static _Thread_local int known;
  void (*real)(int, int, int, int, int, int, float, const float *, int, const float *, int, float,
               float *, int) = dlsym(RTLD_NEXT, "cblas_sgemm");
  if (!known && atomic_fetch_add(&threads, 1) > 0 && wanted("serial")) abort();
  known = 1;
  real(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
