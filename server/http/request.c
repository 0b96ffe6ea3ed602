/* request: one HTTP request at a time on a connection. */
#include "server/http/request.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "core/run/clock.h"
#include "core/run/size.h"
#include "server/http/framing.h"
#include "server/http/request_id.h"
#include "server/http/request_parts.h"

/* A job that has waited less than this is not asked whether its client is still there: it spares a
 * system call, and answers a client that closes its sending half behind its request. */
enum { GONE_AFTER_US = 2000 };

/* A refused body of at most so many bytes is read, and its connection kept: to close it would take
 * as many bytes, and a client that comes again had to connect again. */
enum { REFUSED_BODY = 1 << 20 };

struct request *request_open(struct door *d, struct io *io, struct MHD_Connection *c, int fd) {
  struct request *r = calloc(1, sizeof *r);
  if (!r) return NULL;
  r->server = d->server;
  r->door = d;
  r->io = io;
  r->mhd = c;
  connection_open(d->connections, &r->connection, fd);
  io_watch(io, fd, r);
  return r;
}

void request_close(struct request *r) {
  /* If libmicrohttpd has not said that a request is over, it has freed its text all the same. */
  if (r->step != STEP_NONE) {
    r->url = r->word = "-";
    r->header.agent = r->header.trace = NULL;
    request_end(r, false);
  }
  io_unwatch(r->io, r->connection.fd);
  connection_close(r->door->connections, &r->connection);
  free(r);
}

void request_client_ended(struct request *r) {
  if (r->waiter.waits) {
    lobby_leave(&r->io->lobby, &r->waiter);
    io_resume(r->io, r->mhd);
  }
  if (connection_half_closed(&r->connection)) io_watch_again(r->io, r->connection.fd, r);
}

/* --- the head --- */

static enum MHD_Result add_field(void *of, enum MHD_ValueKind kind, const char *name,
                                 size_t name_size, const char *value, size_t value_size) {
  (void)kind, (void)value_size;
  header_add(of, name, name_size, value);
  return MHD_YES;
}

/* Which page the answer is for, if pages may ask at all; and whether this is only the question. */
static void identify_page(struct request *r) {
  const struct cors *cors = r->server->cors;
  const struct header *h = &r->header;
  r->connection.origin = cors && h->origin ? cors_allow(cors, h->origin) : NULL;
  r->preflight = r->connection.origin && h->asks_method && r->method == METHOD_OPTIONS &&
                 route_exists(r->route) && !header_has_body(h);
}

/* The client's own, if sane, or a new one: process, connection, and request on the connection. */
static void identify(struct request *r) {
  if (r->header.request_id)
    snprintf(r->id, sizeof r->id, "%s", r->header.request_id);
  else
    request_id_make(r->id, r->server->id_prefix, r->connection.serial, r->served);
  r->connection.request_id = r->id;
  r->connection.v2 = route_is_v2(r->route);
  identify_page(r);
}

/* Is the body on its way, whatever we say, and worth waiting for? */
static bool comes_anyway(const struct request *r) {
  return r->header.body_bytes <= REFUSED_BODY && !r->header.chunked &&
         !MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_EXPECT);
}

/* The admin door knows no paths but its own, and without the page there is none; what is hidden is
 * counted as none. */
static void hide_route(struct request *r) {
  const bool admin = r->door->kind == DOOR_ADMIN, page = r->server->config->page;
  if (admin ? route_is_admin(r->route) : page || r->route != ROUTE_PAGE) return;
  r->route = route_is_v2(r->route) ? ROUTE_V2_NONE : ROUTE_NONE;
}

static bool closes_at_once(const struct request *r) {
  enum status status = r->error.status;
  if (status == STATUS_OVERLOADED && comes_anyway(r)) return false;
  return status == STATUS_BAD_FRAMING || status == STATUS_UNSUPPORTED_TRANSFER_ENCODING ||
         (status && header_has_body(&r->header));
}

void request_target(struct request *r, const char *target) {
  r->target_end = framing_target(target);
}

bool request_head(struct request *r, const char *url, const char *method, const char *version) {
  r->started = clock_now();
  r->step = STEP_BODY;
  r->url = url;
  r->word = method;
  r->code = 0;
  r->verdict = STATUS_OK;
  r->body_bytes = r->answer_bytes = 0;
  r->answered = 0;
  r->timeline = (struct timeline){0};
  r->route = route_find(url, r->model);
  hide_route(r);
  r->method = method_find(method);
  header_init(&r->header);
  r->header.tags = r->server->page.tags;
  MHD_get_connection_values_n(r->mhd, MHD_HEADER_KIND, add_field, &r->header);
  header_finish(&r->header);
  if (!framing_head_is_whole(r->mhd, method, url, version, r->target_end))
    error_set(&r->header.error, STATUS_BAD_FRAMING,
              "the head has folded lines, or lines or characters that belong to no field");
  identify(r);
  if (connection_is_ended(connection_enter(&r->connection, CONNECTION_BODY))) return false;
  request_judge(r, version);
  if (!closes_at_once(r)) return true;
  /* Queued before the body, the answer makes libmicrohttpd close the connection behind it. */
  r->connection.discard = true;
  return request_answer_error(r, &r->error);
}

/* --- the body --- */

static void release(struct request *r) {
  request_note_stages(r);
  if (r->holds) exchange_end(&r->exchange);
  r->holds = false;
}

/* The answer now, past libmicrohttpd, which takes none before the body's end. What still arrives is
 * discarded. */
static void refuse_now(struct request *r, const struct error *e) {
  if (connection_is_ended(connection_enter(&r->connection, CONNECTION_REFUSED))) return;
  r->code = reply_code(e->status);
  r->verdict = e->status;
  r->connection.discard = true;
  request_count_reject(r, e->status);
  connection_refuse(&r->connection, e, r->id);
}

/* A body without end. */
static void refuse_endless(struct request *r) {
  struct error e = {0};
  error_limit(&e, "max_body_bytes", "the body is far larger than %llu bytes",
              (unsigned long long)r->server->config->max_body_bytes);
  refuse_now(r, &e);
}

/* No place: who would still have to send much, or waits to be asked for it, is told now. */
void request_called(struct waiter *w) {
  struct request *r = (struct request *)((char *)w - offsetof(struct request, waiter));
  if (!w->enters && !comes_anyway(r) && !request_enters(r)) refuse_now(r, &r->error);
  io_resume(r->io, r->mhd);
}

/* The rest of what is said of a head. */
static void leave_lobby(struct request *r) {
  request_judge_computed(r);
  r->step = STEP_BODY;
  if (r->error.status && !comes_anyway(r)) refuse_now(r, &r->error);
}

/* No answer can be queued in the middle of a body: what is wrong is remembered, and the rest of the
 * body is read but not kept. */
bool request_body(struct request *r, const char *bytes, size_t size) {
  if (connection_is_ended(connection_phase(&r->connection))) return true;
  r->body_bytes += size;
  if (r->step == STEP_LOBBY) leave_lobby(r);
  if (r->body_bytes > 2 * r->server->config->max_body_bytes) refuse_endless(r);
  if (r->holds && !r->error.status) {
    exchange_feed(&r->exchange, bytes, size);
    if (r->exchange.error.status) r->error = r->exchange.error;
  }
  if (r->error.status) release(r);
  return true;
}

/* --- the work --- */

static bool work_gone(struct exchange *x) {
  struct request *r = (struct request *)((char *)x - offsetof(struct request, exchange));
  if (clock_now() - r->submitted < GONE_AFTER_US * (uint64_t)1000) return false;
  struct tcp_info info = {0};
  socklen_t size = sizeof info;
  /* Not by reading: bytes of a next request may lie before the end. From TIME_WAIT on, the states
   * are those of a connection whose client has closed or reset it. */
  getsockopt(r->connection.fd, IPPROTO_TCP, TCP_INFO, &info, &size);
  return info.tcpi_state >= TCP_TIME_WAIT;
}

/* A worker's last touch: once HANDOFF_DONE is seen the request may be gone. */
static void work_done(struct exchange *x) {
  struct request *r = (struct request *)((char *)x - offsetof(struct request, exchange));
  struct MHD_Connection *mhd = r->mhd;
  struct io *io = r->io;
  if (atomic_exchange(&r->handoff, HANDOFF_DONE) == HANDOFF_SUSPENDED) io_resume(io, mhd);
}

/* How long the request may take: the least of what the server, the head and the body say. */
static uint64_t allowed_us(const struct request *r) {
  const uint64_t said_us = r->exchange.request.v2.timeout_us;
  uint64_t ms = r->server->config->deadline_ms;
  if (r->header.timeout_ms) ms = size_min(ms, r->header.timeout_ms);
  return said_us ? size_min(ms * 1000, said_us) : ms * 1000;
}

static bool submit(struct request *r) {
  struct exchange *x = &r->exchange;
  if (!exchange_finish(x)) return request_answer_error(r, &x->error);
  x->done = work_done;
  x->gone = work_gone;
  r->step = STEP_POOL;
  r->submitted = clock_now();
  atomic_store(&r->handoff, HANDOFF_RUNNING);
  exchange_submit(x, r->submitted + allowed_us(r) * 1000);
  lobby_leave(&r->io->lobby, &r->waiter);
  if (atomic_load(&r->handoff) == HANDOFF_DONE) return request_answer_exchange(r);
  MHD_suspend_connection(r->mhd);
  int running = HANDOFF_RUNNING;
  if (!atomic_compare_exchange_strong(&r->handoff, &running, HANDOFF_SUSPENDED))
    io_resume(r->io, r->mhd); /* done just now: the worker left waking it to us */
  return true;
}

bool request_rest(struct request *r) {
  switch (r->step) {
  case STEP_LOBBY: /* before the body; or the connection was ended while it waited */
    if (!connection_is_ended(connection_phase(&r->connection))) return true;
    r->connection.discard = true;
    return false;
  case STEP_BODY:
    if (connection_is_ended(connection_enter(&r->connection, CONNECTION_QUEUED))) return false;
    if (r->header.chunked && framing_has_trailer(r->mhd)) r->connection.discard = true;
    if (r->error.status) return request_answer_error(r, &r->error);
    if (r->preflight) return request_answer_preflight(r);
    return request_is_computed(r) ? submit(r) : request_answer_route(r);
  case STEP_POOL:
    return atomic_load(&r->handoff) == HANDOFF_DONE ? request_answer_exchange(r) : true;
  case STEP_NONE:
  case STEP_ANSWER:
    break; /* libmicrohttpd looks again at what it has */
  }
  return true;
}

/* --- the end --- */

/* The code under which a request is counted that we did not answer. */
static unsigned code_unanswered(struct request *r) {
  enum connection_phase phase = connection_phase(&r->connection);
  if (phase == CONNECTION_SLOW_BODY || phase == CONNECTION_SLOW_HEAD) {
    r->verdict = STATUS_TOO_SLOW;
    return reply_code(STATUS_TOO_SLOW);
  }
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_HTTP_STATUS);
  r->verdict = info && info->http_status ? STATUS_BAD_FRAMING : STATUS_GONE;
  if (info && info->http_status) return info->http_status; /* libmicrohttpd's own refusal */
  metrics_abort(r->server->metrics, request_shard(r),
                r->step == STEP_POOL ? ABORT_QUEUE : ABORT_BODY);
  return reply_code(STATUS_GONE);
}

/* How the sending of an answer went. A connection that we ended ourselves is no client's doing. */
static void count_sent(struct request *r, bool sent) {
  struct metrics *m = r->server->metrics;
  const struct timeline *t = &r->timeline;
  if (sent && t->reached[STAGE_ENCODE] && t->reached[STAGE_WRITE])
    metrics_stage(m, request_shard(r), STAGE_WRITE, t->ns[STAGE_WRITE]);
  else if (!sent && r->step == STEP_ANSWER && connection_phase(&r->connection) == CONNECTION_ANSWER)
    metrics_abort(m, request_shard(r), ABORT_ANSWER);
}

void request_end(struct request *r, bool sent) {
  const uint64_t now = clock_now(), nanoseconds = now - r->started;
  if (!r->code) r->code = code_unanswered(r);
  request_note_stages(r);
  if (r->answered) timeline_write(&r->timeline, now - r->answered);
  count_sent(r, sent);
  metrics_request(r->server->metrics, request_shard(r), r->route, r->method, r->code, nanoseconds);
  request_log(r, sent, nanoseconds);
  release(r);
  lobby_leave(&r->io->lobby, &r->waiter);
  r->error.status = STATUS_OK;
  r->served++;
  r->step = STEP_NONE;
  connection_enter(&r->connection, CONNECTION_IDLE);
  if (r->connection.half_closed) io_watch_again(r->io, r->connection.fd, r);
}
