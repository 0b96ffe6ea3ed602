/* nth: a preloaded library in which one call fails: NTH="eventfd 3" is the third call of eventfd.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

static int fails(const char *name) {
  static atomic_int calls;
  const char *text = getenv("NTH");
  char wanted[64];
  int n;
  if (!text || sscanf(text, "%63s %d", wanted, &n) != 2 || strcmp(wanted, name) != 0) return 0;
  return atomic_fetch_add(&calls, 1) + 1 == n;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *of) {
  int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
      dlsym(RTLD_NEXT, "pthread_create");
  return fails("pthread_create") ? EAGAIN : real(thread, how, run, of);
}

int eventfd(unsigned count, int flags) {
  int (*real)(unsigned, int) = dlsym(RTLD_NEXT, "eventfd");
  errno = EMFILE;
  return fails("eventfd") ? -1 : real(count, flags);
}

int pipe2(int fd[2], int flags) {
  int (*real)(int[2], int) = dlsym(RTLD_NEXT, "pipe2");
  errno = EMFILE;
  return fails("pipe2") ? -1 : real(fd, flags);
}

int epoll_create1(int flags) {
  int (*real)(int) = dlsym(RTLD_NEXT, "epoll_create1");
  errno = EMFILE;
  return fails("epoll_create1") ? -1 : real(flags);
}

int socket(int domain, int type, int protocol) {
  int (*real)(int, int, int) = dlsym(RTLD_NEXT, "socket");
  errno = EMFILE;
  return fails("socket") ? -1 : real(domain, type, protocol);
}

int listen(int fd, int backlog) {
  int (*real)(int, int) = dlsym(RTLD_NEXT, "listen");
  errno = EADDRINUSE;
  return fails("listen") ? -1 : real(fd, backlog);
}
