/* connection: what is known of each open connection, and the reaper. */
#include "server/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/size.h"
#include "core/thread.h"
#include "server/reply.h"

enum {
  PHASE_BITS = 4,
  TICK_MS_MAX = 100,
  DRAIN_TICK_MS = 5,
  LOOK_MS = 500,       /* how often the system is asked about a waiting connection */
  HEAD_GRACE_MS = 500, /* a draining server's patience with a head that is not there */
  LINGER_MAX = 128,
  LINGER_MS = 1000,
  LINGER_BYTES = 16 << 20, /* a proxy sends some megabytes before it looks for an answer */
  SHOWN_MAX = 4096, /* ends of a connection shown: then libmicrohttpd does not want to see it */
  EMPTY_LINE = 2,   /* bytes that may follow a request without being the next one's beginning */
};

/* A descriptor whose answer is sent and whose client may still be sending. */
struct leaving {
  int fd;
  uint64_t until; /* ms */
  size_t bytes;   /* that may still be discarded */
};

struct connections {
  struct connection_times times;
  struct metrics *metrics;
  struct keep *keep; /* or NULL */
  uint64_t tick_ms;
  int wake; /* eventfd */
  atomic_bool stop;
  _Atomic uint64_t draining; /* since when; 0: not */
  bool running;
  pthread_t thread;
  struct pulse pulse;
  pthread_mutex_t lock; /* of all that follows */
  struct connection *first;
  size_t count;
  uint64_t serial;
  size_t lingering;
  struct leaving leaving[LINGER_MAX];
};

static uint64_t now_ms(void) { return clock_now() / CLOCK_MS; }

static uint64_t state_of(enum connection_phase phase) { return now_ms() << PHASE_BITS | phase; }
static enum connection_phase phase_of(uint64_t state) {
  return (enum connection_phase)(state & ((1u << PHASE_BITS) - 1));
}
static uint64_t since(uint64_t state) { return state >> PHASE_BITS; }

/* --- the I/O thread's side --- */

static void wake(struct connections *all) {
  (void)!write(all->wake, &(uint64_t){1}, sizeof(uint64_t));
}

void connection_open(struct connections *all, struct connection *c, int fd) {
  *c = (struct connection){.fd = fd};
  atomic_init(&c->state, state_of(CONNECTION_FRESH));
  pthread_mutex_lock(&all->lock);
  c->serial = ++all->serial;
  c->next = all->first;
  if (c->next) c->next->previous = c;
  all->first = c;
  bool sleeping = all->count++ == 0 && all->lingering == 0;
  pthread_mutex_unlock(&all->lock);
  if (sleeping) wake(all);
}

/* With the lock held. */
static bool linger_add(struct connections *all, int fd) {
  if (all->lingering == LINGER_MAX) return false;
  all->leaving[all->lingering++] =
      (struct leaving){.fd = fd, .until = now_ms() + LINGER_MS, .bytes = LINGER_BYTES};
  return true;
}

void connection_close(struct connections *all, struct connection *c) {
  /* The copy of the descriptor outlives libmicrohttpd's close, so that what the client still
   * sends does not meet a reset before it has read its answer. */
  int copy = c->discard ? fcntl(c->fd, F_DUPFD_CLOEXEC, 0) : -1;
  pthread_mutex_lock(&all->lock);
  if (c->next) c->next->previous = c->previous;
  if (c->previous)
    c->previous->next = c->next;
  else
    all->first = c->next;
  all->count--;
  bool taken = copy >= 0 && linger_add(all, copy);
  pthread_mutex_unlock(&all->lock);
  if (taken)
    wake(all);
  else if (copy >= 0)
    close(copy);
}

void connections_linger(struct connections *all, int fd) {
  pthread_mutex_lock(&all->lock);
  bool taken = linger_add(all, fd);
  pthread_mutex_unlock(&all->lock);
  if (taken)
    wake(all);
  else
    close(fd);
}

/* libmicrohttpd waits for edges and misses the end of stream that came together with the last
 * bytes; shutting the receiving half makes another edge and loses nothing that has arrived. */
static void show_end(const struct connection *c) { shutdown(c->fd, SHUT_RD); }

bool connection_half_closed(struct connection *c) {
  c->half_closed = true;
  if (connection_phase(c) > CONNECTION_BODY || c->shown == SHOWN_MAX) return false;
  c->shown++;
  show_end(c);
  return true;
}

enum connection_phase connection_enter(struct connection *c, enum connection_phase phase) {
  uint64_t was = atomic_load(&c->state);
  do {
    if (connection_is_ended(phase_of(was))) break;
  } while (!atomic_compare_exchange_weak(&c->state, &was, state_of(phase)));
  return phase_of(was);
}

enum connection_phase connection_phase(struct connection *c) {
  return phase_of(atomic_load_explicit(&c->state, memory_order_acquire));
}

void connection_refuse(struct connection *c, const struct error *e, const char *request_id) {
  char text[REPLY_RAW_SIZE];
  const enum reply_errors form = request_id && c->v2 ? REPLY_V2 : REPLY_PROBLEM;
  size_t size = reply_raw(e, form, request_id, request_id ? c->origin : NULL, text);
  /* It fits in an empty socket buffer; a client whose buffer is full does not read anyway. */
  (void)!send(c->fd, text, size, MSG_DONTWAIT | MSG_NOSIGNAL);
  shutdown(c->fd, SHUT_WR);
}

/* --- the reaper --- */

static struct tcp_info socket_info(int fd) {
  struct tcp_info info = {0};
  socklen_t size = sizeof info;
  getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size);
  return info;
}

static bool move_to(struct connection *c, uint64_t seen, enum connection_phase phase) {
  return atomic_compare_exchange_strong(&c->state, &seen, state_of(phase));
}

/* Has the connection sent more of a head than the empty line that may stand before one? */
static bool has_begun(const struct connection *c, uint64_t seen) {
  return phase_of(seen) == CONNECTION_HEAD || socket_info(c->fd).tcpi_bytes_received > EMPTY_LINE;
}

static void end_slow_head(struct connections *all, struct connection *c, uint64_t seen) {
  bool begun = has_begun(c, seen);
  if (!move_to(c, seen, CONNECTION_SLOW_HEAD)) return;
  metrics_reject(all->metrics, 0, REJECT_SLOW_HEAD);
  if (!begun) {
    shutdown(c->fd, SHUT_RDWR);
    return;
  }
  struct error e = {0};
  error_set(&e, STATUS_TOO_SLOW, "the head of the request did not arrive within %llu ms",
            (unsigned long long)all->times.header_ms);
  connection_refuse(c, &e, NULL);
}

static void end_slow_body(struct connections *all, struct connection *c, uint64_t seen) {
  if (!move_to(c, seen, CONNECTION_SLOW_BODY)) return;
  metrics_reject(all->metrics, 0, REJECT_SLOW_BODY);
  struct error e = {0};
  error_set(&e, STATUS_TOO_SLOW, "the body did not arrive within %llu ms",
            (unsigned long long)all->times.body_ms);
  connection_refuse(c, &e, c->request_id);
}

/* Unsent bytes of the answer are thrown away: the system would keep them for minutes. */
static void end_slow_reader(struct connections *all, struct connection *c, uint64_t seen) {
  if (!move_to(c, seen, CONNECTION_SLOW_READER)) return;
  metrics_reject(all->metrics, 0, REJECT_SLOW_READER);
  struct linger now = {.l_onoff = 1, .l_linger = 0};
  setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  shutdown(c->fd, SHUT_RDWR);
}

/* Only the receiving half: a request that has arrived already is still answered. */
static void end_idle(struct connection *c, uint64_t seen) {
  if (move_to(c, seen, CONNECTION_OVER_IDLE)) shutdown(c->fd, SHUT_RD);
}

/* An answer that the system has taken, but not sent yet, is not read: the reader's deadline holds
 * for it, too, and the connection is not given up as idle before that. */
static void judge_idle(struct connections *all, struct connection *c, uint64_t seen, uint64_t age,
                       bool look) {
  const uint64_t due =
      look ? size_min(all->times.idle_ms, all->times.answer_ms) : all->times.idle_ms;
  if (age < due) return;
  if (!socket_info(c->fd).tcpi_notsent_bytes) {
    if (age >= all->times.idle_ms) end_idle(c, seen);
  } else if (age >= all->times.answer_ms) {
    end_slow_reader(all, c, seen);
  }
}

/* A draining server does not wait for heads as long as they may take else. */
static void end_undecided(struct connections *all, struct connection *c, uint64_t seen,
                          uint64_t now) {
  if (!has_begun(c, seen)) {
    end_idle(c, seen);
    return;
  }
  if (now < atomic_load(&all->draining) + HEAD_GRACE_MS) return;
  if (!move_to(c, seen, CONNECTION_SLOW_HEAD)) return;
  metrics_reject(all->metrics, 0, REJECT_DRAINING);
  struct error e = {0};
  error_set(&e, STATUS_DRAINING, "the server is stopping");
  connection_refuse(c, &e, NULL);
}

/* What libmicrohttpd does not tell. When a later request began to come: the socket's own count
 * grows from one look to the next, by more than an empty line. And that the client has closed its
 * half, should nobody have been told. */
static void look_at(struct connection *c, uint64_t seen) {
  enum { CLOSE_WAIT = 8 }; /* of the states of TCP, which two system headers name alike */
  struct tcp_info info = socket_info(c->fd);
  if (info.tcpi_state == CLOSE_WAIT) show_end(c);
  if (phase_of(seen) != CONNECTION_IDLE) return;
  if (c->idle_state != seen) {
    c->idle_state = seen;
    c->idle_bytes = info.tcpi_bytes_received;
  } else if (info.tcpi_bytes_received > c->idle_bytes + EMPTY_LINE) {
    move_to(c, seen, CONNECTION_HEAD); /* or the head is there by now */
  }
}

static void judge(struct connections *all, struct connection *c, uint64_t now, bool look) {
  uint64_t seen = atomic_load(&c->state);
  uint64_t age = now > since(seen) ? now - since(seen) : 0;
  bool draining = atomic_load(&all->draining) != 0;
  if (look && phase_of(seen) <= CONNECTION_BODY) look_at(c, seen);
  switch (phase_of(seen)) {
  case CONNECTION_FRESH:
  case CONNECTION_HEAD:
    if (age >= all->times.header_ms)
      end_slow_head(all, c, seen);
    else if (draining && age >= HEAD_GRACE_MS)
      end_undecided(all, c, seen, now);
    return;
  case CONNECTION_IDLE:
    if (draining)
      end_idle(c, seen);
    else
      judge_idle(all, c, seen, age, look);
    return;
  case CONNECTION_BODY:
    if (age >= all->times.body_ms) end_slow_body(all, c, seen);
    return;
  case CONNECTION_ANSWER:
    if (age >= all->times.answer_ms) end_slow_reader(all, c, seen);
    return;
  case CONNECTION_SLOW_HEAD:
  case CONNECTION_SLOW_BODY:
  case CONNECTION_REFUSED:
    /* The client had its second to read the answer; now libmicrohttpd must let go. */
    if (age >= LINGER_MS) shutdown(c->fd, SHUT_RD);
    return;
  case CONNECTION_QUEUED: /* the pool keeps that deadline */
  case CONNECTION_SLOW_READER:
  case CONNECTION_OVER_IDLE:
    return;
  }
}

/* Discards what has arrived; true when there is nothing left to wait for. */
static bool leaving_step(struct leaving *l, uint64_t now) {
  char sink[16384];
  for (int i = 0; i < 16; i++) {
    ssize_t n = recv(l->fd, sink, sizeof sink, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return true;
    if (n < 0) break;
    if ((size_t)n >= l->bytes) return true;
    l->bytes -= (size_t)n;
  }
  return now >= l->until;
}

/* Waits until something is to be done. A server without connections sleeps for good once no memory
 * is kept: memory is kept only while a request ends, so a connection is open then. */
static void reaper_wait(struct connections *all) {
  struct pollfd p[1 + LINGER_MAX] = {{.fd = all->wake, .events = POLLIN}};
  pthread_mutex_lock(&all->lock);
  size_t n = all->lingering;
  for (size_t i = 0; i < n; i++)
    p[1 + i] = (struct pollfd){.fd = all->leaving[i].fd, .events = POLLIN};
  bool quiet = n == 0 && all->count == 0 && !(all->keep && !keep_rests(all->keep));
  pthread_mutex_unlock(&all->lock);
  uint64_t tick = atomic_load(&all->draining) ? DRAIN_TICK_MS : all->tick_ms;
  uint64_t count;
  if (poll(p, n + 1, quiet ? -1 : (int)tick) > 0 && (p[0].revents & POLLIN))
    (void)!read(all->wake, &count, sizeof count);
}

static void *reaper_main(void *of) {
  struct connections *all = of;
  uint64_t next_scan = 0, next_look = 0;
  thread_name("attend-reaper");
  while (!atomic_load(&all->stop)) {
    reaper_wait(all);
    pulse_pass(&all->pulse);
    uint64_t now = now_ms();
    if (all->keep) keep_trim(all->keep, now * CLOCK_MS);
    pthread_mutex_lock(&all->lock);
    for (size_t i = all->lingering; i-- > 0;)
      if (leaving_step(&all->leaving[i], now)) {
        close(all->leaving[i].fd);
        all->leaving[i] = all->leaving[--all->lingering];
      }
    if (now >= next_scan) {
      bool look = now >= next_look;
      for (struct connection *c = all->first; c; c = c->next) judge(all, c, now, look);
      if (look) next_look = now + size_min(LOOK_MS, all->times.header_ms / 4);
      next_scan = now + (atomic_load(&all->draining) ? DRAIN_TICK_MS : all->tick_ms);
    }
    pthread_mutex_unlock(&all->lock);
  }
  return NULL;
}

/* --- all of them --- */

struct connections *connections_new(const struct connection_times *t, struct metrics *m,
                                    struct keep *keep, struct error *e) {
  struct connections *all = calloc(1, sizeof *all);
  if (!all) {
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the connections");
    return NULL;
  }
  all->metrics = m;
  all->keep = keep;
  all->times = *t;
  uint64_t least = size_min(size_min(t->header_ms, t->body_ms), size_min(t->answer_ms, t->idle_ms));
  all->tick_ms = size_min(TICK_MS_MAX, size_max(least / 8, 1));
  pthread_mutex_init(&all->lock, NULL);
  all->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  int failed = all->wake < 0 ? errno : pthread_create(&all->thread, NULL, reaper_main, all);
  if (failed) {
    error_set(e, STATUS_SYSTEM, "reaper thread: %s", strerror(failed));
    connections_free(all);
    return NULL;
  }
  all->running = true;
  return all;
}

void connections_free(struct connections *all) {
  if (!all) return;
  if (all->running) {
    atomic_store(&all->stop, true);
    wake(all);
    pthread_join(all->thread, NULL);
  }
  for (size_t i = 0; i < all->lingering; i++) close(all->leaving[i].fd);
  if (all->wake >= 0) close(all->wake);
  pthread_mutex_destroy(&all->lock);
  free(all);
}

void connections_drain(struct connections *all) {
  atomic_store(&all->draining, size_max(now_ms(), 1));
  wake(all);
}

void connections_ask(struct connections *all) {
  pulse_ask(&all->pulse);
  wake(all);
}

bool connections_answered(struct connections *all) { return pulse_answered(&all->pulse); }

static bool waits(enum connection_phase p) { return p <= CONNECTION_BODY; }

/* Of two that may be ended to make room, is it the first? */
static bool ends_before(uint64_t a, uint64_t b) {
  if (waits(phase_of(a)) != waits(phase_of(b))) return waits(phase_of(a));
  return since(a) <= since(b);
}

void connections_make_room(struct connections *all) {
  struct connection *first = NULL;
  uint64_t seen = 0;
  pthread_mutex_lock(&all->lock);
  for (struct connection *c = all->first; c; c = c->next) {
    const uint64_t state = atomic_load(&c->state);
    if (phase_of(state) > CONNECTION_ANSWER || (first && ends_before(seen, state))) continue;
    first = c;
    seen = state;
  }
  if (first && move_to(first, seen, CONNECTION_SLOW_READER)) shutdown(first->fd, SHUT_RDWR);
  pthread_mutex_unlock(&all->lock);
}

size_t connections_busy(struct connections *all) {
  size_t n = 0;
  pthread_mutex_lock(&all->lock);
  for (struct connection *c = all->first; c; c = c->next) {
    enum connection_phase p = phase_of(atomic_load(&c->state));
    n += p != CONNECTION_IDLE && p != CONNECTION_OVER_IDLE && !connection_is_ended(p);
  }
  pthread_mutex_unlock(&all->lock);
  return n;
}

size_t connections_queued(struct connections *all) {
  size_t n = 0;
  pthread_mutex_lock(&all->lock);
  for (struct connection *c = all->first; c; c = c->next)
    n += phase_of(atomic_load(&c->state)) == CONNECTION_QUEUED;
  pthread_mutex_unlock(&all->lock);
  return n;
}

size_t connections_count(struct connections *all) {
  pthread_mutex_lock(&all->lock);
  size_t n = all->count;
  pthread_mutex_unlock(&all->lock);
  return n;
}

uint64_t connections_opened(struct connections *all) {
  pthread_mutex_lock(&all->lock);
  const uint64_t n = all->serial;
  pthread_mutex_unlock(&all->lock);
  return n;
}
