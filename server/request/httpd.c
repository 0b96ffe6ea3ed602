/* httpd: the socket of a door.
 *
 * A thread of its own accepts the connections, and gives them to daemons without a listening
 * socket, one for each I/O thread. So connections are spread evenly over the threads, and a
 * connection over the limit gets an answer instead of waiting in silence. The daemons have no
 * timeouts: the reaper keeps all deadlines. */
#include "server/request/httpd.h"

#include <errno.h>
#include <limits.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/size.h"
#include "core/base/thread.h"
#include "server/http/framing.h"
#include "server/http/io.h"
#include "server/http/listener.h"
#include "server/request/request.h"

#if MHD_VERSION >= 0x01000000
#define OPTION_STRICT MHD_OPTION_CLIENT_DISCIPLINE_LVL
#else
#define OPTION_STRICT MHD_OPTION_STRICT_FOR_CLIENT
#endif

enum {
  /* libmicrohttpd zeroes it for every request, so that much more would cost time. Half of it is for
   * reading: a body of 40 kB that has arrived comes in one call, and gets its response before the
   * thread turns to another connection. */
  CONNECTION_MEMORY = 80 * 1024,
  ACCEPT_PAUSE_MS = 50, /* between attempts while accepting fails */
  OVERLAP = 64,         /* connections that the admin door has ended and that are not closed yet */
  FIRST_MEMORY = 1024 * 1024, /* for a first connection and a small request */
};

struct httpd {
  struct door *door;
  struct log *log;
  struct io *io; /* [io_threads]; io_of chooses one for a connection */
  struct listener listener;
  int wake;         /* eventfd: the accepting thread is asked for its pulse, or has to end */
  atomic_bool last; /* the accepting thread ends after one more turn */
  bool accepting;
  pthread_t thread;
  struct pulse pulse;        /* of the accepting thread */
  atomic_size_t connections; /* accepted and not closed */
  atomic_size_t arriving;    /* of these, those that libmicrohttpd does not have yet */
  char address[LISTENER_TEXT_SIZE];
};

static struct io *io_of(const struct httpd *h, int fd) {
  return &h->io[(size_t)fd % h->door->io_threads];
}

/* --- libmicrohttpd's calls --- */

static enum MHD_Result on_access(void *of, struct MHD_Connection *c, const char *url,
                                 const char *method, const char *version, const char *bytes,
                                 size_t *size, void **context) {
  (void)of;
  struct request *r = *context;
  bool good; /* or the connection has to be closed */
  if (!r) {
    r = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    if (!r) return MHD_NO;
    *context = r;
    good = request_header(r, url, method, version);
  } else if (*size) {
    good = request_body(r, bytes, *size);
    *size = 0;
  } else {
    good = request_continue(r);
  }
  return good ? MHD_YES : MHD_NO;
}

/* Returns no context, because on_access knows its first call by the lack of one. */
static void *on_target(void *of, const char *target, struct MHD_Connection *c) {
  (void)of;
  struct request *r =
      MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
  if (r) request_target(r, target);
  return NULL;
}

static void on_completed(void *of, struct MHD_Connection *c, void **context,
                         enum MHD_RequestTerminationCode how) {
  (void)of, (void)c;
  if (*context) request_end(*context, how == MHD_REQUEST_TERMINATED_COMPLETED_OK);
  *context = NULL;
}

static void on_connection(void *of, struct MHD_Connection *c, void **context,
                          enum MHD_ConnectionNotificationCode what) {
  struct httpd *h = of;
  if (what == MHD_CONNECTION_NOTIFY_STARTED) {
    int fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    struct io *io = io_of(h, fd);
    io->opened = true;
    *context = request_open(h->door, io, c, fd);
    atomic_fetch_sub(&h->arriving, 1); /* now that the door's connections include it */
    if (*context) return;
    /* A connection without a record would have no deadline, and libmicrohttpd overlooks an end of
     * stream that comes together with the last bytes. It surely closes only a socket that is no
     * longer connected. */
    const struct sockaddr nothing = {.sa_family = AF_UNSPEC};
    (void)connect(fd, &nothing, sizeof nothing);
    return;
  }
  if (*context) request_close(*context);
  *context = NULL;
  atomic_fetch_sub(&h->connections, 1);
}

static void on_client_ended(void *watched) { request_client_ended(watched); }

/* Leaves paths percent-encoded: the routes cut a path into segments before they decode each one. */
static size_t leave_escaped(void *of, struct MHD_Connection *c, char *text) {
  (void)of, (void)c;
  return strlen(text);
}

static void on_message(void *of, const char *format, va_list args) {
  struct httpd *h = of;
  char text[256];
  vsnprintf(text, sizeof text, format, args);
  text[strcspn(text, "\n")] = 0;
  log_complain(h->log, COMPLAINT_HTTP, "libmicrohttpd: %s", text);
}

/* --- accepting --- */

/* Sends an error to a connection over the limit, and closes it. */
static void refuse_connection(struct httpd *h, int fd) {
  struct error e = {0};
  char text[REPLY_RAW_SIZE];
  const unsigned long long most = h->door->max_connections;
  if (h->door->kind == DOOR_MAIN)
    error_set(
        &e, STATUS_NOT_READY,
        "too many connections: all %llu (max_connections) are open; the operator can raise it, "
        "or lower idle_timeout_ms",
        most);
  else
    error_set(&e, STATUS_NOT_READY, "all %llu connections of the admin address are busy", most);
  size_t size = reply_raw(&e, ERROR_PROBLEM, NULL, NULL, text);
  (void)!send(fd, text, size, MSG_DONTWAIT | MSG_NOSIGNAL);
  shutdown(fd, SHUT_WR);
  log_complain(h->log, COMPLAINT_FULL, "a connection was refused: %s", e.detail);
  metrics_add(h->door->server->metrics, 0, REJECT_CONNECTIONS, 1);
  connections_linger(h->door->connections, fd);
}

/* Whether there is room for one more connection. On the admin door a prober that keeps its
 * connections open must not lock others out: that door ends a connection to make room, which is
 * closed a moment later. */
static bool has_room(struct httpd *h) {
  const size_t now = atomic_load(&h->connections), most = h->door->max_connections;
  if (now < most) return true;
  if (h->door->kind != DOOR_ADMIN) return false;
  connections_make_room(h->door->connections, most);
  return now < most + OVERLAP;
}

/* Counts a connection for which there was no memory; libmicrohttpd or the caller closes it. */
static void on_connection_lost(void *of) {
  struct httpd *h = of;
  atomic_fetch_sub(&h->arriving, 1);
  atomic_fetch_sub(&h->connections, 1);
  log_complain(h->log, COMPLAINT_LOST, "a connection could not be taken: %s", strerror(errno));
}

/* Looks at the first bytes of a connection. A client that begins with HTTP/2 is rejected here:
 * libmicrohttpd would close the connection after a response that such a client cannot read. It
 * still does if the bytes arrive too late. */
static enum io_met on_connection_met(void *of, int fd) {
  static const enum io_met met[] = {[FRAMING_NOTHING] = IO_MET_NOTHING,
                                    [FRAMING_PART] = IO_MET_PART,
                                    [FRAMING_HTTP_2] = IO_MET_ENDED,
                                    [FRAMING_OTHER] = IO_MET_WELCOME};
  struct httpd *h = of;
  const enum framing_first first = framing_look(fd);
  if (first != FRAMING_HTTP_2) return met[first];
  framing_refuse_http2(fd);
  metrics_add(h->door->server->metrics, 0, REJECT_HTTP_2, 1);
  atomic_fetch_sub(&h->arriving, 1);
  atomic_fetch_sub(&h->connections, 1);
  log_complain(h->log, COMPLAINT_HTTP_2,
               "a client spoke HTTP/2: this server supports only HTTP/1.1: use a proxy for HTTP/2");
  connections_linger(h->door->connections, fd);
  return IO_MET_ENDED;
}

/* Accepts until the backlog is empty, but no more than one full backlog, so that a flood cannot
 * keep the thread here. False: accepting would fail again at once, because descriptors or memory
 * are used up, or another process has shut the shared socket down. */
static bool accept_all(struct httpd *h) {
  for (int n = 0; n < SOMAXCONN; n++) {
    struct sockaddr_storage from;
    socklen_t size = sizeof from;
    int fd = accept4(h->listener.fd, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return true;
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM ||
          errno == EINVAL)
        return false;
      continue; /* any other error concerns this one connection */
    }
    if (!has_room(h)) {
      refuse_connection(h, fd);
      continue;
    }
    atomic_fetch_add(&h->connections, 1);
    atomic_fetch_add(&h->arriving, 1);
    if (io_add(io_of(h, fd), fd, (struct sockaddr *)&from, size)) continue;
    on_connection_lost(h);
    close(fd);
  }
  return true;
}

static void *accept_thread_main(void *of) {
  struct httpd *h = of;
  struct pollfd p[2] = {{.fd = h->wake, .events = POLLIN},
                        {.fd = h->listener.fd, .events = POLLIN}};
  uint64_t count;
  thread_name("attend-accept");
  for (;;) {
    if (poll(p, 2, -1) < 0) continue;
    pulse_pass(&h->pulse);
    if (p[0].revents) (void)!read(h->wake, &count, sizeof count);
    const bool last = atomic_load(&h->last);
    if (last && h->listener.inherited) return NULL;
    if (!accept_all(h)) {
      log_complain(h->log, COMPLAINT_ACCEPT, "cannot accept: %s", strerror(errno));
      poll(p, 1, ACCEPT_PAUSE_MS);
    }
    if (last) return NULL;
  }
}

/* --- life --- */

size_t httpd_descriptors(const struct door *d) {
  return d->max_connections + IO_DESCRIPTORS * d->io_threads +
         (d->kind == DOOR_ADMIN ? OVERLAP : 0);
}

struct httpd *httpd_new(struct door *d, const struct listener *l, struct error *e) {
  struct httpd *h = calloc(1, sizeof *h);
  if (!h) {
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the server");
    close(l->fd);
    return NULL;
  }
  h->door = d;
  h->log = d->server->log;
  h->listener = *l;
  listener_text(l->fd, h->address);
  h->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  h->io = calloc(d->io_threads, sizeof *h->io);
  if (h->wake >= 0 && h->io) return h;
  error_set(e, STATUS_SYSTEM, "the server cannot start: %s", strerror(errno));
  httpd_free(h);
  return NULL;
}

const char *httpd_address(const struct httpd *h) { return h->address; }

/* libmicrohttpd's limit on connections is set too high to matter: has_room keeps the limit. */
static struct MHD_Daemon *start_daemon(struct httpd *h) {
  size_t limit = size_min(UINT_MAX / 4, h->door->max_connections + OVERLAP);
  unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME;
  if (log_wants(h->log, LOG_DEBUG)) flags |= MHD_USE_ERROR_LOG;
  struct MHD_OptionItem options[] = {
      {MHD_OPTION_EXTERNAL_LOGGER, (intptr_t)on_message, h}, /* first, to report on the others */
      {MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)on_target, NULL},
      {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)on_completed, NULL},
      {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)on_connection, h},
      {MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t)leave_escaped, NULL},
      {OPTION_STRICT, framing_is_needed() ? 0 : 1, NULL},
      {MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, NULL},
      {MHD_OPTION_CONNECTION_LIMIT, (intptr_t)limit, NULL},
      {MHD_OPTION_END, 0, NULL},
  };
  return MHD_start_daemon(flags, 0, NULL, NULL, on_access, h, MHD_OPTION_ARRAY, options,
                          MHD_OPTION_END);
}

enum status httpd_start(struct httpd *h, struct error *e) {
  struct server *s = h->door->server;
  for (size_t i = 0; i < h->door->io_threads; i++) {
    struct io *io = &h->io[i];
    io->owner = h;
    io->longest_turn = &s->longest_turn;
    io->connection_met = on_connection_met;
    io->connection_lost = on_connection_lost;
    io->client_ended = on_client_ended;
    io->wait_ended = request_end_wait;
    io->silence_over = request_speak;
    io->silence.most = s->config->stream_silence_ms * CLOCK_MS;
    io->lobby.pool = s->service.pool; /* NULL at the admin door, which computes nothing */
    io->lobby.threads = h->door->io_threads;
    if (io_start(io, start_daemon(h), e)) return e->status;
  }
  int failed = pthread_create(&h->thread, NULL, accept_thread_main, h);
  if (failed) return error_set(e, STATUS_SYSTEM, "accept thread: %s", strerror(failed));
  h->accepting = true;
  /* If addresses are limited (ulimit -v), all may be in use by now. Such a server would close every
   * connection and look alive: it does not start. */
  void *some = mmap(NULL, FIRST_MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (some == MAP_FAILED)
    return error_set(e, STATUS_OUT_OF_MEMORY, "no memory is left for connections: %s",
                     strerror(errno));
  munmap(some, FIRST_MEMORY);
  return STATUS_OK;
}

static void wake_accept_thread(struct httpd *h) {
  (void)!write(h->wake, &(uint64_t){1}, sizeof(uint64_t));
}

void httpd_stop_accepting(struct httpd *h) {
  if (!h->accepting) return;
  atomic_store(&h->last, true);
  wake_accept_thread(h);
  pthread_join(h->thread, NULL);
  h->accepting = false;
  close(h->listener.fd);
  h->listener.fd = -1;
}

size_t httpd_arriving(const struct httpd *h) { return atomic_load(&h->arriving); }

void httpd_ask(struct httpd *h) {
  if (!h) return;
  for (size_t i = 0; i < h->door->io_threads; i++) io_ask(&h->io[i]);
  connections_ask(h->door->connections);
  pulse_ask(&h->pulse);
  wake_accept_thread(h);
}

bool httpd_answered(struct httpd *h) {
  if (!h) return true;
  for (size_t i = 0; i < h->door->io_threads; i++)
    if (!pulse_answered(&h->io[i].pulse)) return false;
  return connections_answered(h->door->connections) && (!h->accepting || pulse_answered(&h->pulse));
}

void httpd_free(struct httpd *h) {
  if (!h) return;
  httpd_stop_accepting(h);
  for (size_t i = 0; h->io && i < h->door->io_threads; i++) io_stop(&h->io[i]);
  if (h->listener.fd >= 0) close(h->listener.fd);
  if (h->wake >= 0) close(h->wake);
  free(h->io);
  free(h);
}
