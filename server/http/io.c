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

#include "core/base/clock.h"
#include "core/base/thread.h"

enum {
  /* The most in one turn of the loop, so that connections that are open already get theirs. */
  ARRIVALS_MAX = 64,
  ENDS_MAX = 64,
  SOURCES = 4,       /* descriptors that the thread polls, without those of `met` */
  MET_MS = 5,        /* the wait for the first bytes, which are known before libmicrohttpd reads */
  MET_LOOK_MS = 1,   /* between two looks at connections that have sent too few */
  LOBBY_LOOK_MS = 2, /* between two looks at the lobby while requests wait there */
  /* libmicrohttpd asks to be called again at once while a connection's buffer is full of bytes that
   * it cannot use: a line of a chunk that is longer than the buffer. After BLOCKED_TURNS such turns
   * in a row, without an event and without a response to send, the thread sleeps between them. */
  BLOCKED_TURNS = 64,
  BLOCKED_MS = 10,
};

static void add_connection(struct io *io, const struct io_arrival *a) {
  io->opened = false;
  if (MHD_add_connection(io->daemon, a->fd, (const struct sockaddr *)&a->from, a->size) == MHD_YES)
    return;
  /* A connection that was reported as open before the failure is reported as closed, too. */
  if (!io->opened) io->connection_lost(io->owner);
}

/* Looks again at the connections that had sent too little, and adds those that have sent more and
 * those whose time is over; `now` of UINT64_MAX: all. */
static void meet_again(struct io *io, uint64_t now) {
  size_t left = 0;
  for (size_t i = 0; i < io->met_count; i++) {
    struct io_arrival *a = &io->met[i];
    const enum io_met met = io->connection_met(io->owner, a->fd);
    a->begun = met == IO_MET_PART;
    if (met <= IO_MET_PART && now < a->until)
      io->met[left++] = *a;
    else if (met != IO_MET_ENDED)
      add_connection(io, a);
  }
  io->met_count = left;
}

/* Meets the connections in the pipe. False: the pipe has ended. */
static bool add_arrivals(struct io *io, uint64_t now) {
  struct io_arrival a;
  for (int n = 0; n < ARRIVALS_MAX; n++) {
    const ssize_t got = read(io->arrivals[0], &a, sizeof a);
    if (got == 0) return false;
    if (got != sizeof a) return true; /* the pipe is empty */
    const enum io_met met = io->connection_met(io->owner, a.fd);
    if (met <= IO_MET_PART && io->met_count < IO_MET_MAX) {
      a.until = now + MET_MS * CLOCK_MS;
      a.begun = met == IO_MET_PART;
      io->met[io->met_count++] = a;
    } else if (met != IO_MET_ENDED) {
      add_connection(io, &a);
    }
  }
  return true;
}

/* Milliseconds that the thread may sleep; -1: until an event. */
static int sleep_ms(struct io *io) {
  if (io->leaving.block) return 0;
  MHD_UNSIGNED_LONG_LONG ms;
  if (MHD_get_timeout(io->daemon, &ms) != MHD_YES) ms = INT_MAX;
  io->quiet_turns = ms == 0 && !io->answers ? io->quiet_turns + 1 : 0;
  if (io->quiet_turns > BLOCKED_TURNS) ms = BLOCKED_MS;
  if (io->lobby.line.first && ms > LOBBY_LOOK_MS) return LOBBY_LOOK_MS;
  if (io->met_count > 0 && ms > MET_LOOK_MS) ms = MET_LOOK_MS;
  if (io->silence.line.first) {
    const int left = silence_left_ms(&io->silence, clock_now());
    if (ms > (MHD_UNSIGNED_LONG_LONG)left) return left;
  }
  return ms < INT_MAX ? (int)ms : -1;
}

/* Sleeps until there is something to do. A resume after `asleep` is set writes to `wake`; an
 * earlier one is caught by the check of `resumed`. */
static void wait_for_events(struct io *io, struct pollfd p[SOURCES + IO_MET_MAX]) {
  int wait = sleep_ms(io);
  if (wait) {
    atomic_store(&io->asleep, true);
    if (atomic_load(&io->resumed)) wait = 0;
  }
  for (size_t i = 0; i < io->met_count; i++)
    p[SOURCES + i] = (struct pollfd){.fd = io->met[i].begun ? -1 : io->met[i].fd, .events = POLLIN};
  const int ready = poll(p, SOURCES + io->met_count, wait);
  if (ready < 0) p[1].revents = p[2].revents = p[3].revents = 0;
  if (ready != 0) io->quiet_turns = 0;
  atomic_store(&io->asleep, false);
  uint64_t count;
  if (p[2].revents) (void)!read(io->wake, &count, sizeof count);
  atomic_store(&io->resumed, false); /* before MHD_run, which handles what was resumed */
}

static void *io_main(void *of) {
  struct io *io = of;
  struct pollfd p[SOURCES + IO_MET_MAX] = {{.fd = io->events, .events = POLLIN},
                                           {.fd = io->arrivals[0], .events = POLLIN},
                                           {.fd = io->wake, .events = POLLIN},
                                           {.fd = io->ends, .events = POLLIN}};
  thread_name("attend-io");
  for (;;) {
    wait_for_events(io, p);
    pulse_pass(&io->pulse);
    const uint64_t begun = clock_now();
    if (io->met_count > 0) meet_again(io, begun);
    if (p[1].revents && !add_arrivals(io, begun)) break;
    MHD_run(io->daemon);
    if (p[3].revents) {
      /* No connection is closed between epoll_wait and the calls, so each pointer is valid. */
      struct epoll_event e[ENDS_MAX];
      const int n = epoll_wait(io->ends, e, ENDS_MAX, 0);
      for (int i = 0; i < n; i++) io->client_ended(e[i].data.ptr);
    }
    arena_free_some(&io->leaving);
    const uint64_t ended = clock_now();
    for (struct lobby_waiter *w; (w = lobby_call(&io->lobby, ended));) io->wait_ended(w);
    for (struct silent *w; (w = silence_over(&io->silence, ended));) io->silence_over(w);
    /* While a turn lasts, all other connections of the thread wait: the longest is a metric. */
    uint64_t longest = atomic_load_explicit(io->longest_turn, memory_order_relaxed);
    while (ended - begun > longest &&
           !atomic_compare_exchange_weak(io->longest_turn, &longest, ended - begun))
      continue;
  }
  meet_again(io, UINT64_MAX);
  /* A daemon with suspended connections must not be stopped: all waiters are resumed. */
  for (struct lobby_waiter *w; (w = lobby_close(&io->lobby));) io->wait_ended(w);
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
  /* Only the reading end does not block: a writer waits where the pipe is full. */
  const bool ready = io->wake >= 0 && io->ends >= 0 && !fcntl(io->arrivals[0], F_SETFL, O_NONBLOCK);
  int failed = ready ? pthread_create(&io->thread, NULL, io_main, io) : errno;
  if (failed) return error_set(e, STATUS_SYSTEM, "I/O thread: %s", strerror(failed));
  io->running = true;
  return STATUS_OK;
}

bool io_add(struct io *io, int fd, const struct sockaddr *from, socklen_t size) {
  struct io_arrival a = {.fd = fd, .size = size};
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

/* libmicrohttpd 0.9.75 wakes no thread but its own. Later releases wake this one, too, and a second
 * wake-up does no harm. */
void io_resume(struct io *io, struct MHD_Connection *c) {
  MHD_resume_connection(c);
  atomic_store(&io->resumed, true);
  if (atomic_exchange(&io->asleep, false)) (void)!write(io->wake, &(uint64_t){1}, sizeof(uint64_t));
}

/* `how`: an operation of epoll_ctl. */
static void set_watch(struct io *io, int how, int fd, void *watched) {
  struct epoll_event e = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = watched};
  (void)epoll_ctl(io->ends, how, fd, &e);
}

void io_watch(struct io *io, int fd, void *watched) { set_watch(io, EPOLL_CTL_ADD, fd, watched); }

void io_watch_again(struct io *io, int fd, void *watched) {
  set_watch(io, EPOLL_CTL_MOD, fd, watched);
}

void io_unwatch(struct io *io, int fd) {
  (void)epoll_ctl(io->ends, EPOLL_CTL_DEL, fd, &(struct epoll_event){0});
}

void io_stop(struct io *io) {
  if (io->arrivals[1]) close(io->arrivals[1]);
  if (io->running) pthread_join(io->thread, NULL);
  if (io->arrivals[0]) close(io->arrivals[0]);
  if (io->wake > 0) close(io->wake);
  if (io->daemon) MHD_stop_daemon(io->daemon); /* closes connections, which end their watch */
  arena_free(&io->leaving);                    /* also of the requests that ended just now */
  if (io->ends > 0) close(io->ends);
}
