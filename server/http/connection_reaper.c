/* connection_reaper: the thread that ends connections which take too long. */
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/base/keep.h"
#include "core/base/size.h"
#include "core/base/thread.h"
#include "server/http/connection_parts.h"

enum {
  DRAIN_TICK_MS = 5,
  LOOK_MS = 500,         /* between two questions to the system about a waiting connection */
  HEADER_GRACE_MS = 500, /* a draining server waits for a header to be complete, */
  BODY_GRACE_MS = 500,   /* and for more of a body, */
  DRAIN_LOOK_MS = 50,    /* and asks the system about it in this interval */
  EMPTY_LINE = 2,        /* bytes that may follow a request without beginning the next one */
};

void connection_refuse(struct connection *c, const struct error *e, const char *request_id) {
  char text[REPLY_RAW_SIZE];
  const enum error_form form = request_id ? c->errors : ERROR_PROBLEM;
  size_t size = reply_raw(e, form, request_id, request_id ? c->origin : NULL, text);
  /* The text fits in an empty socket buffer. If the buffer is full, the client does not read. */
  (void)!send(c->fd, text, size, MSG_DONTWAIT | MSG_NOSIGNAL);
  shutdown(c->fd, SHUT_WR);
}

static struct tcp_info socket_info(int fd) {
  struct tcp_info info = {0};
  socklen_t size = sizeof info;
  getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size);
  return info;
}

/* Whether the client has sent more of a request than the empty line that may precede one. */
static bool has_begun_request(const struct connection *c, uint64_t seen) {
  return connection_state_phase(seen) == CONNECTION_HEADER ||
         socket_info(c->fd).tcpi_bytes_received > EMPTY_LINE;
}

static void end_slow_header(struct connections *all, struct connection *c, uint64_t seen) {
  const bool begun = has_begun_request(c, seen);
  if (!connection_move(c, seen, CONNECTION_SLOW_HEADER)) return;
  metrics_add(all->metrics, 0, REJECT_SLOW_HEADER, 1);
  if (!begun) {
    shutdown(c->fd, SHUT_RDWR);
    return;
  }
  struct error e = {0};
  error_set(&e, STATUS_TOO_SLOW, "the header of the request did not arrive within %llu ms",
            (unsigned long long)all->times.header_ms);
  connection_refuse(c, &e, NULL);
}

static void end_slow_body(struct connections *all, struct connection *c, uint64_t seen) {
  if (!connection_move(c, seen, CONNECTION_SLOW_BODY)) return;
  metrics_add(all->metrics, 0, REJECT_SLOW_BODY, 1);
  struct error e = {0};
  error_set(&e, STATUS_TOO_SLOW, "the body did not arrive within %llu ms",
            (unsigned long long)all->times.body_ms);
  connection_refuse(c, &e, c->request_id);
}

/* Drops unsent bytes of the response, which the system would keep for minutes. */
static void end_slow_reader(struct connections *all, struct connection *c, uint64_t seen) {
  if (!connection_move(c, seen, CONNECTION_SLOW_READER)) return;
  metrics_add(all->metrics, 0, REJECT_SLOW_READER, 1);
  struct linger now = {.l_onoff = 1, .l_linger = 0};
  setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  shutdown(c->fd, SHUT_RDWR);
}

/* Shuts only the receiving half, so that a request that has arrived already gets its response.
 * False: another thread has moved the connection meanwhile. */
static bool end_idle(struct connection *c, uint64_t seen) {
  const bool moved = connection_move(c, seen, CONNECTION_OVER_IDLE);
  if (moved) shutdown(c->fd, SHUT_RD);
  return moved;
}

/* Rejects, in a draining server, an incomplete request. False: another thread has moved the
 * connection meanwhile. */
static bool end_incomplete(struct connections *all, struct connection *c, uint64_t seen) {
  const bool in_body = connection_state_phase(seen) >= CONNECTION_LOBBY;
  if (!connection_move(c, seen, CONNECTION_DRAINED)) return false;
  metrics_add(all->metrics, 0, REJECT_DRAINING, 1);
  struct error e = {0};
  error_set(&e, STATUS_DRAINING, "the server is stopping%s",
            in_body ? ", and the body is incomplete" : "");
  connection_refuse(c, &e, in_body ? c->request_id : NULL);
  return true;
}

/* Rejects, in a draining server, a request whose body has stopped arriving. Bytes that wait to be
 * read are no fault of the client. */
static void end_stalled_body(struct connections *all, struct connection *c, uint64_t seen,
                             uint64_t now) {
  int unread = 0;
  const uint64_t bytes = socket_info(c->fd).tcpi_bytes_received;
  ioctl(c->fd, FIONREAD, &unread);
  if (unread || c->looked_state != seen || c->looked_bytes != bytes) {
    c->looked_state = seen;
    c->looked_bytes = bytes;
    c->looked_ms = now;
  } else if (now >= c->looked_ms + BODY_GRACE_MS) {
    end_incomplete(all, c, seen);
  }
}

/* Finds what libmicrohttpd does not report: that a later request has begun to arrive (the socket's
 * count of bytes has grown by more than an empty line since the last look), and that the client has
 * closed its half (io_watch may have had no memory). */
static void look_at_socket(struct connection *c, uint64_t seen) {
  enum { CLOSE_WAIT = 8 }; /* a state of TCP; the two headers that name it exclude each other */
  struct tcp_info info = socket_info(c->fd);
  if (info.tcpi_state == CLOSE_WAIT) connection_show_end(c);
  if (connection_state_phase(seen) != CONNECTION_IDLE) return;
  if (c->looked_state != seen) {
    c->looked_state = seen;
    c->looked_bytes = info.tcpi_bytes_received;
  } else if (info.tcpi_bytes_received > c->looked_bytes + EMPTY_LINE) {
    connection_move(c, seen, CONNECTION_HEADER); /* fails if the header is complete by now */
  }
}

/* Ends the connection if its phase has taken too long. */
static void end_if_overdue(struct connections *all, struct connection *c, uint64_t now, bool look) {
  const struct connection_times *times = &all->times;
  const uint64_t seen = atomic_load(&c->state), since = connection_state_since_ms(seen);
  const uint64_t age = now > since ? now - since : 0, draining = atomic_load(&all->draining);
  if (look && connection_state_phase(seen) <= CONNECTION_BODY) look_at_socket(c, seen);
  switch (connection_state_phase(seen)) {
  case CONNECTION_FRESH:
  case CONNECTION_HEADER:
    if (age >= times->header_ms)
      end_slow_header(all, c, seen);
    else if (!draining || age < HEADER_GRACE_MS)
      return;
    else if (!has_begun_request(c, seen))
      end_idle(c, seen);
    else if (now >= draining + HEADER_GRACE_MS)
      end_incomplete(all, c, seen);
    return;
  case CONNECTION_IDLE:
    if (draining) {
      end_idle(c, seen);
    } else if (age >= (look ? size_min(times->idle_ms, times->answer_ms) : times->idle_ms)) {
      /* Unsent bytes of the last response mean a client that does not read: then the deadline of
       * the phase ANSWER is valid, not that of an idle connection. */
      const bool unread = socket_info(c->fd).tcpi_notsent_bytes > 0;
      if (unread && age >= times->answer_ms) end_slow_reader(all, c, seen);
      if (!unread && age >= times->idle_ms) end_idle(c, seen);
    }
    return;
  case CONNECTION_LOBBY:
  case CONNECTION_BODY:
    if (age >= times->body_ms)
      end_slow_body(all, c, seen);
    else if (draining && look && connection_state_phase(seen) == CONNECTION_BODY)
      end_stalled_body(all, c, seen, now);
    return;
  case CONNECTION_ANSWER:
    if (age >= times->answer_ms) end_slow_reader(all, c, seen);
    return;
  case CONNECTION_SLOW_HEADER:
  case CONNECTION_SLOW_BODY:
  case CONNECTION_DRAINED:
  case CONNECTION_REFUSED:
    /* The client had a second to read the response; the end of stream makes libmicrohttpd close. */
    if (age >= LINGER_MS) shutdown(c->fd, SHUT_RD);
    return;
  case CONNECTION_QUEUED: /* the pool keeps that deadline */
  case CONNECTION_SLOW_READER:
  case CONNECTION_OVER_IDLE:
    return;
  }
}

/* Rejects a connection's request if it is incomplete, and returns whether it was. A connection
 * between requests is ended as an idle one. */
static bool refuse_if_incomplete(struct connections *all, struct connection *c) {
  for (;;) { /* again if another thread has moved the connection meanwhile */
    const uint64_t seen = atomic_load(&c->state);
    const enum connection_phase phase = connection_state_phase(seen);
    if (phase > CONNECTION_BODY) return false;
    const bool begun = phase >= CONNECTION_LOBBY || has_begun_request(c, seen);
    if (phase == CONNECTION_IDLE || !begun) {
      if (end_idle(c, seen)) return false;
    } else if (end_incomplete(all, c, seen)) {
      return true;
    }
  }
}

size_t connections_refuse_incomplete(struct connections *all) {
  size_t refused = 0;
  pthread_mutex_lock(&all->lock);
  for (struct connection *c = all->first; c; c = c->next) refused += refuse_if_incomplete(all, c);
  pthread_mutex_unlock(&all->lock);
  return refused;
}

/* Discards the bytes that have arrived on a lingering descriptor. True: it can be closed. */
static bool discard_arrived(struct connection_leaving *l, uint64_t now) {
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

/* Sleeps until there is something to do. Without connections, and with no memory kept, it sleeps
 * until it is woken: memory is kept only when a request ends, and a connection is open then. */
static void wait_for_work(struct connections *all) {
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

void *connection_reaper(void *set) {
  struct connections *all = set;
  uint64_t next_scan = 0, last_look = 0;
  thread_name("attend-reaper");
  while (!atomic_load(&all->stop)) {
    wait_for_work(all);
    pulse_pass(&all->pulse);
    uint64_t now = connection_now_ms();
    if (all->keep) keep_trim(all->keep, now * CLOCK_MS);
    pthread_mutex_lock(&all->lock);
    for (size_t i = all->lingering; i-- > 0;)
      if (discard_arrived(&all->leaving[i], now)) {
        close(all->leaving[i].fd);
        all->leaving[i] = all->leaving[--all->lingering];
      }
    if (now >= next_scan) {
      const bool draining = atomic_load(&all->draining) != 0;
      const uint64_t pause = draining ? DRAIN_LOOK_MS : size_min(LOOK_MS, all->times.header_ms / 4);
      const bool look = now >= last_look + pause;
      for (struct connection *c = all->first; c; c = c->next) end_if_overdue(all, c, now, look);
      if (look) last_look = now;
      next_scan = now + (draining ? DRAIN_TICK_MS : all->tick_ms);
    }
    pthread_mutex_unlock(&all->lock);
  }
  return NULL;
}
