/* io: a thread that runs a daemon of libmicrohttpd. */
#include "server/http/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/run/clock.h"
#include "core/run/thread.h"

enum {
  ARRIVALS_MAX = 64, /* taken at once: those that are here already are not forgotten */
  ENDS_MAX = 64,     /* the same */
  SOURCES = 4,       /* that the thread waits for */
  LOBBY_LOOK_MS = 2, /* how often those in the lobby are looked after */
};

/* What goes through the pipe; small enough to go through whole. */
struct arrival {
  int fd;
  socklen_t size;
  struct sockaddr_storage from;
};

static void take(struct io *io, const struct arrival *a) {
  io->opened = false;
  if (MHD_add_connection(io->daemon, a->fd, (const struct sockaddr *)&a->from, a->size) == MHD_YES)
    return;
  if (!io->opened) io->lost(io->of); /* or it was reported as open, and as closed */
}

/* False: there will be no more. */
static bool take_arrivals(struct io *io) {
  struct arrival a;
  for (int n = 0; n < ARRIVALS_MAX; n++) {
    ssize_t got = read(io->arrivals[0], &a, sizeof a);
    if (got == 0) return false;
    if (got != sizeof a) return true; /* none for now */
    take(io, &a);
  }
  return true;
}

/* Nothing is closed between asking and telling. */
static void tell_ends(struct io *io) {
  struct epoll_event e[ENDS_MAX];
  const int n = epoll_wait(io->ends, e, ENDS_MAX, 0);
  for (int i = 0; i < n; i++) io->ended(e[i].data.ptr);
}

static void call_waiters(struct io *io) {
  if (!io->lobby.first) return;
  const uint64_t now = clock_now();
  for (struct waiter *w; (w = lobby_call(&io->lobby, now));) io->called(w);
}

/* libmicrohttpd is not stopped while connections are suspended. */
static void close_lobby(struct io *io) {
  for (struct waiter *w; (w = lobby_close(&io->lobby));) io->called(w);
}

/* How long the thread may wait; -1: for an event. */
static int patience(const struct io *io) {
  MHD_UNSIGNED_LONG_LONG ms;
  if (MHD_get_timeout(io->daemon, &ms) != MHD_YES) ms = INT_MAX;
  if (io->lobby.first && ms > LOBBY_LOOK_MS) return LOBBY_LOOK_MS;
  return ms < INT_MAX ? (int)ms : -1;
}

/* Waits for whatever there is to do. Who resumes a connection after `asleep` is set wakes us, who
 * did so before is seen here. */
static void await(struct io *io, struct pollfd p[SOURCES]) {
  int wait = patience(io);
  if (wait) {
    atomic_store(&io->asleep, true);
    if (atomic_load(&io->resumed)) wait = 0;
  }
  if (poll(p, SOURCES, wait) < 0) p[1].revents = p[2].revents = p[3].revents = 0;
  atomic_store(&io->asleep, false);
  uint64_t count;
  if (p[2].revents) (void)!read(io->wake, &count, sizeof count);
  atomic_store(&io->resumed, false); /* before the daemon looks */
}

static void *io_main(void *of) {
  struct io *io = of;
  struct pollfd p[SOURCES] = {{.fd = io->events, .events = POLLIN},
                              {.fd = io->arrivals[0], .events = POLLIN},
                              {.fd = io->wake, .events = POLLIN},
                              {.fd = io->ends, .events = POLLIN}};
  thread_name("attend-io");
  for (;;) {
    await(io, p);
    pulse_pass(&io->pulse);
    if (p[1].revents && !take_arrivals(io)) break;
    MHD_run(io->daemon);
    if (p[3].revents) tell_ends(io);
    call_waiters(io);
  }
  close_lobby(io);
  return NULL;
}

enum status io_start(struct io *io, struct MHD_Daemon *daemon, struct error *e) {
  io->daemon = daemon;
  if (!daemon) return error_set(e, STATUS_SYSTEM, "libmicrohttpd does not start");
  io->events = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
  if (pipe2(io->arrivals, O_CLOEXEC)) {
    io->arrivals[0] = io->arrivals[1] = 0;
    return error_set(e, STATUS_SYSTEM, "I/O thread: %s", strerror(errno));
  }
  io->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  io->ends = io->wake < 0 ? 0 : epoll_create1(EPOLL_CLOEXEC);
  /* Only one end does not wait: the writer does where the pipe is full. */
  const bool ready = io->wake >= 0 && io->ends >= 0 && !fcntl(io->arrivals[0], F_SETFL, O_NONBLOCK);
  int failed = ready ? pthread_create(&io->thread, NULL, io_main, io) : errno;
  if (failed) return error_set(e, STATUS_SYSTEM, "I/O thread: %s", strerror(failed));
  io->running = true;
  return STATUS_OK;
}

bool io_add(struct io *io, int fd, const struct sockaddr *from, socklen_t size) {
  struct arrival a = {.fd = fd, .size = size};
  must(size <= sizeof a.from && sizeof a <= PIPE_BUF);
  memcpy(&a.from, from, size);
  while (write(io->arrivals[1], &a, sizeof a) < 0)
    if (errno != EINTR) return false;
  return true;
}

void io_ask(struct io *io) {
  pulse_ask(&io->pulse);
  (void)!write(io->wake, &(uint64_t){1}, sizeof(uint64_t));
}

/* In 0.9.75 libmicrohttpd wakes nobody whose thread is not its own; later ones wake it, too, and
 * twice does no harm. */
void io_resume(struct io *io, struct MHD_Connection *c) {
  MHD_resume_connection(c);
  atomic_store(&io->resumed, true);
  if (atomic_exchange(&io->asleep, false)) (void)!write(io->wake, &(uint64_t){1}, sizeof(uint64_t));
}

static void watch(struct io *io, int how, int fd, void *watched) {
  struct epoll_event e = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = watched};
  (void)epoll_ctl(io->ends, how, fd, &e);
}

void io_watch(struct io *io, int fd, void *watched) { watch(io, EPOLL_CTL_ADD, fd, watched); }

void io_watch_again(struct io *io, int fd, void *watched) { watch(io, EPOLL_CTL_MOD, fd, watched); }

void io_unwatch(struct io *io, int fd) {
  (void)epoll_ctl(io->ends, EPOLL_CTL_DEL, fd, &(struct epoll_event){0});
}

void io_stop(struct io *io) {
  if (io->arrivals[1]) close(io->arrivals[1]);
  if (io->running) pthread_join(io->thread, NULL);
  if (io->arrivals[0]) close(io->arrivals[0]);
  if (io->wake > 0) close(io->wake);
  if (io->daemon) MHD_stop_daemon(io->daemon); /* which closes connections that are watched */
  if (io->ends > 0) close(io->ends);
}
