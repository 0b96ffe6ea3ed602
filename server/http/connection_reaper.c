/* connection_reaper: the thread that ends what takes too long. */
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include "core/run/keep.h"
#include "core/run/size.h"
#include "core/run/thread.h"
#include "server/http/connection_parts.h"

enum {
  DRAIN_TICK_MS = 5,
  LOOK_MS = 500,       /* how often the system is asked about a waiting connection */
  HEAD_GRACE_MS = 500, /* a draining server's patience with a head that is not there */
  EMPTY_LINE = 2,      /* bytes that may follow a request without being the next one's beginning */
};

static struct tcp_info socket_info(int fd) {
  struct tcp_info info = {0};
  socklen_t size = sizeof info;
  getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size);
  return info;
}

/* Has the connection sent more of a head than the empty line that may stand before one? */
static bool has_begun(const struct connection *c, uint64_t seen) {
  return phase_of(seen) == CONNECTION_HEAD || socket_info(c->fd).tcpi_bytes_received > EMPTY_LINE;
}

static void end_slow_head(struct connections *all, struct connection *c, uint64_t seen) {
  bool begun = has_begun(c, seen);
  if (!move_to(c, seen, CONNECTION_SLOW_HEAD)) return;
  metrics_reject(all->metrics, 0, REJECT_SLOW_HEADER);
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

void *connection_reaper(void *of) {
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
