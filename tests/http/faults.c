/* faults: a preloaded library that makes the host worse, as the test asks.
 *
 * FAULTS names a folder. While it has a file `add`, libmicrohttpd takes no connection; while it has
 * `epoll`, nothing new can be waited for, which libmicrohttpd finds out about a connection that it
 * has reported as open. If it has `serial`, OpenBLAS says that it was built for one thread, and the
 * program ends when a second one enters it.
 *
 * Its file `control`, if there is one, is mapped and shared with the test, which may say of each
 * kind of system call that the n-th one fails from then on, or a random share of them.
 *
 * What Linux cannot do is not done here either: nothing on an eventfd but EAGAIN and EINTR; no
 * EAGAIN, EINTR or short count on a socket that does not block and has more to give, for whoever
 * waits for edges would wait for ever. (Small buffers make real short counts.) */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* The order is the test's, too (KINDS in test_faults.py). */
enum kind {
  READ,
  WRITE,
  RECV,
  SEND,
  ACCEPT,
  EPOLL_CTL,
  EPOLL_WAIT,
  POLL,
  THREAD,
  EVENTFD,
  PIPE,
  FCNTL,
  RANDOM,
  OPEN,
  FSTAT,
  MMAP,
  PREAD,
  SOCKET,
  EPOLL_CREATE,
  HAND_ON,
  KINDS
};

enum { REASONS = 6 };

static const int reason[KINDS][REASONS] = {
    [READ] = {EINTR, EAGAIN, EIO},
    [WRITE] = {EINTR, ENOSPC, EIO, EPIPE, EAGAIN},
    [RECV] = {ECONNRESET, ETIMEDOUT, EHOSTUNREACH, ENOMEM},
    [SEND] = {EPIPE, ECONNRESET, ETIMEDOUT, ENOBUFS, ENOMEM},
    [ACCEPT] = {EMFILE, ENFILE, ECONNABORTED, EINTR, ENOBUFS, ENOMEM},
    [EPOLL_CTL] = {ENOMEM, ENOSPC},
    [EPOLL_WAIT] = {EINTR},
    [POLL] = {EINTR, ENOMEM},
    [THREAD] = {EAGAIN},
    [EVENTFD] = {EMFILE, ENFILE, ENOMEM},
    [PIPE] = {EMFILE, ENFILE},
    [FCNTL] = {EMFILE, ENOMEM},
    [RANDOM] = {EAGAIN, ENOSYS, EINTR},
    [OPEN] = {EMFILE, EIO, EACCES, ENOMEM, ENFILE, ENOENT},
    [FSTAT] = {EIO, ENOMEM},
    [MMAP] = {ENOMEM},
    [PREAD] = {EIO, EINTR},
    [SOCKET] = {EMFILE, ENOBUFS},
    [EPOLL_CREATE] = {EMFILE, ENOMEM},
    [HAND_ON] = {ENOMEM, EINTR}, /* through a pipe inside the process */
};

struct control {
  _Atomic int64_t kinds;     /* a bit for each kind that may fail */
  _Atomic int64_t countdown; /* n: the n-th of their calls fails, and no other; 0: see share */
  _Atomic int64_t share;     /* one of so many fails; 0: none */
  _Atomic int64_t which;     /* of the reasons, for a countdown */
  _Atomic int64_t failed;    /* calls so far */
  _Atomic int64_t narrow;    /* bytes of the buffers of accepted sockets */
  _Atomic int64_t clock;     /* seconds that the time of day is wrong by */
  _Atomic int64_t shrink;    /* the n-th pread finds that its file has just been emptied */
};

static struct control *control;

static void path_of(char path[4096], const char *name) {
  const char *folder = getenv("FAULTS");
  snprintf(path, 4096, "%s/%s", folder ? folder : "", name);
}

__attribute__((constructor)) static void open_control(void) {
  int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
  char path[4096];
  path_of(path, "control");
  int file = real(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  void *(*map)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");
  void *p = map(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (p != MAP_FAILED) control = p;
}

static int wanted(const char *fault) {
  char path[4096];
  path_of(path, fault);
  return access(path, F_OK) == 0;
}

static uint64_t draw(void) {
  static _Atomic uint64_t seed;
  static _Thread_local uint64_t state;
  if (!state) state = (atomic_fetch_add(&seed, 1) + 1) * 0x9e3779b97f4a7c15u;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state >> 11;
}

static int64_t reasons(enum kind kind) {
  int64_t count = 0;
  while (count < REASONS && reason[kind][count]) count++;
  return count;
}

/* Counts a countdown down; is it over with this call? */
static int is_turn(_Atomic int64_t *countdown) {
  int64_t left = atomic_load(countdown);
  while (left > 0 && !atomic_compare_exchange_weak(countdown, &left, left - 1))
    ;
  return left == 1;
}

/* Is it this call's turn to fail? Then errno says why, one of the first `most` reasons. */
static int fails_for(enum kind kind, int64_t most) {
  if (!control || !(atomic_load(&control->kinds) >> kind & 1)) return 0;
  const int64_t share = atomic_load(&control->share);
  int64_t which = atomic_load(&control->which);
  if (share > 0) {
    if (draw() % (uint64_t)share) return 0;
    which = (int64_t)(draw() % REASONS);
  } else if (!is_turn(&control->countdown)) {
    return 0;
  }
  atomic_fetch_add(&control->failed, 1);
  errno = reason[kind][which % most];
  return 1;
}

static int fails(enum kind kind) { return fails_for(kind, reasons(kind)); }

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* --- files --- */

ssize_t read(int fd, void *out, size_t size) {
  REAL(read);
  return fails_for(READ, size == sizeof(uint64_t) ? 2 : 3) ? -1 : real(fd, out, size);
}

ssize_t write(int fd, const void *text, size_t size) {
  REAL(write);
  if (size == sizeof(uint64_t)) return real(fd, text, size);
  return fails(fd <= 2 ? WRITE : HAND_ON) ? -1 : real(fd, text, size);
}

ssize_t pread(int fd, void *out, size_t size, off_t at) {
  REAL(pread);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  if (control && is_turn(&control->shrink) && truncate(path, 0)) abort();
  return fails(PREAD) ? -1 : real(fd, out, size, at);
}

ssize_t pread64(int fd, void *out, size_t size, off_t at) { return pread(fd, out, size, at); }

int open(const char *path, int flags, ...) {
  REAL(open);
  va_list args;
  va_start(args, flags);
  const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
  va_end(args);
  return fails(OPEN) ? -1 : real(path, flags, mode);
}

FILE *fopen(const char *path, const char *mode) {
  REAL(fopen);
  return fails(OPEN) ? NULL : real(path, mode);
}

int fstat(int fd, struct stat *about) {
  REAL(fstat);
  return fails(FSTAT) ? -1 : real(fd, about);
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
  REAL(mmap);
  return fails(MMAP) ? MAP_FAILED : real(at, size, protection, flags, fd, offset);
}

/* --- sockets --- */

ssize_t recv(int fd, void *out, size_t size, int flags) {
  REAL(recv);
  return fails(RECV) ? -1 : real(fd, out, size, flags);
}

ssize_t send(int fd, const void *text, size_t size, int flags) {
  REAL(send);
  return fails(SEND) ? -1 : real(fd, text, size, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
  REAL(sendmsg);
  return fails(SEND) ? -1 : real(fd, message, flags);
}

ssize_t writev(int fd, const struct iovec *part, int count) {
  REAL(writev);
  return fails(SEND) ? -1 : real(fd, part, count);
}

int accept4(int fd, struct sockaddr *from, socklen_t *size, int flags) {
  REAL(accept4);
  if (fails(ACCEPT)) return -1;
  const int got = real(fd, from, size, flags);
  const int room = control ? (int)atomic_load(&control->narrow) : 0;
  if (got >= 0 && room) {
    setsockopt(got, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    setsockopt(got, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  }
  return got;
}

int socket(int family, int type, int protocol) {
  REAL(socket);
  return fails(SOCKET) ? -1 : real(family, type, protocol);
}

/* --- waiting --- */

int epoll_create1(int flags) {
  REAL(epoll_create1);
  return fails(EPOLL_CREATE) ? -1 : real(flags);
}

int epoll_ctl(int set, int what, int fd, struct epoll_event *event) {
  REAL(epoll_ctl);
  if (what != EPOLL_CTL_ADD) return real(set, what, fd, event);
  if (fails(EPOLL_CTL)) return -1;
  if (!wanted("epoll")) return real(set, what, fd, event);
  errno = ENOSPC;
  return -1;
}

int epoll_wait(int set, struct epoll_event *events, int most, int timeout) {
  REAL(epoll_wait);
  return fails(EPOLL_WAIT) ? -1 : real(set, events, most, timeout);
}

int poll(struct pollfd *p, nfds_t count, int timeout) {
  REAL(poll);
  return fails(POLL) ? -1 : real(p, count, timeout);
}

int ppoll(struct pollfd *p, nfds_t count, const struct timespec *timeout, const sigset_t *open) {
  REAL(ppoll);
  return fails(POLL) ? -1 : real(p, count, timeout, open);
}

/* --- what a start takes --- */

int pthread_create(pthread_t *thread, const pthread_attr_t *with, void *(*begin)(void *),
                   void *of) {
  REAL(pthread_create);
  return fails(THREAD) ? errno : real(thread, with, begin, of);
}

int eventfd(unsigned count, int flags) {
  REAL(eventfd);
  return fails(EVENTFD) ? -1 : real(count, flags);
}

int pipe2(int ends[2], int flags) {
  REAL(pipe2);
  return fails(PIPE) ? -1 : real(ends, flags);
}

int fcntl(int fd, int what, ...) {
  REAL(fcntl);
  va_list args;
  va_start(args, what);
  const long value = va_arg(args, long);
  va_end(args);
  if ((what == F_DUPFD_CLOEXEC || what == F_SETFL) && fails(FCNTL)) return -1;
  return real(fd, what, value);
}

int fcntl64(int fd, int what, ...) {
  va_list args;
  va_start(args, what);
  const long value = va_arg(args, long);
  va_end(args);
  return fcntl(fd, what, value);
}

ssize_t getrandom(void *out, size_t size, unsigned flags) {
  REAL(getrandom);
  return fails(RANDOM) ? -1 : real(out, size, flags);
}

/* --- the time of day --- */

int clock_gettime(clockid_t clock, struct timespec *now) {
  REAL(clock_gettime);
  const int failed = real(clock, now);
  if (!failed && clock == CLOCK_REALTIME && control) now->tv_sec += atomic_load(&control->clock);
  return failed;
}

/* --- libraries --- */

struct MHD_Daemon;

int MHD_add_connection(struct MHD_Daemon *daemon, int fd, const struct sockaddr *from,
                       socklen_t size) {
  REAL(MHD_add_connection);
  if (!wanted("add")) return real(daemon, fd, from, size);
  close(fd);
  errno = ENOMEM;
  return 0;
}

int openblas_get_parallel(void) {
  REAL(openblas_get_parallel);
  return wanted("serial") ? 0 : real();
}

void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc) {
  static atomic_int threads;
  static _Thread_local int known;
  REAL(cblas_sgemm);
  if (!known && atomic_fetch_add(&threads, 1) > 0 && wanted("serial")) abort();
  known = 1;
  real(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
