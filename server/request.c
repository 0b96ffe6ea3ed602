/* request: one HTTP request at a time on a connection. */
#include "server/request.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "config/registry.h"
#include "core/clock.h"
#include "core/size.h"
#include "server/bearer.h"
#include "server/framing.h"
#include "server/request_id.h"
#include "server/request_parts.h"

/* A job that has waited less than this is not asked whether its client is still there: it spares a
 * system call, and answers a client that closes its sending half behind its request. */
enum { GONE_AFTER_US = 2000 };

enum {
  /* A body that is smaller may be a tiny request, which takes no place in the queue; and to read it
   * costs no more than to refuse it. */
  QUEUE_BODY = 16 * 1024,
  /* A refused body of at most so many bytes is read, and its connection kept: to close it would
   * take as many bytes, and a client that comes again had to connect again. */
  REFUSED_BODY = 1 << 20,
  LOBBY_MS = 500, /* so long a request waits for a place in the queue, its body unread */
};

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

/* Does the path lead to the pool? */
static bool is_computed(const struct request *r) {
  return r->route == ROUTE_ATTENTION || r->route == ROUTE_MODEL_ATTENTION ||
         r->route == ROUTE_MODEL_HEADS || r->route == ROUTE_V2_INFER;
}

/* The forms of body and answer that a native request asks for. */
static void judge_native(struct request *r, struct decode_head *head) {
  struct error *e = &r->error;
  const bool heads = r->route == ROUTE_MODEL_HEADS;
  const enum header_media content = r->header.content;
  const bool binary = content == MEDIA_SAFETENSORS || content == MEDIA_OCTETS;
  const enum header_wish wish = header_wish(&r->header, binary);
  if (content == MEDIA_OTHER)
    error_set(e, STATUS_UNSUPPORTED_MEDIA_TYPE,
              "the body's Content-Type is not application/json, application/x-safetensors or "
              "application/octet-stream: send one of these");
  else if (wish == WISH_NEITHER)
    error_set(e, STATUS_NOT_ACCEPTABLE,
              "Accept excludes both application/json and application/x-safetensors");
  else if (wish == WISH_BINARY_ALONE && heads)
    error_set(e, STATUS_NOT_ACCEPTABLE,
              "Accept excludes application/json, the only form that measures of heads have");
  head->ask = heads ? ASK_HEADS : ASK_ATTENTION;
  head->form = binary ? BODY_SAFETENSORS : BODY_JSON;
  head->wants_binary = !heads && wish != WISH_JSON;
  head->refuses_json = wish == WISH_BINARY_ALONE;
}

/* Clients of the protocol send no Content-Type or Accept, or any: the body says all. */
static void judge_v2(struct request *r, struct decode_head *head) {
  struct error *e = &r->error;
  if (r->header.bad_json_bytes)
    error_set(e, STATUS_INVALID_REQUEST,
              "Inference-Header-Content-Length is not a whole number of bytes");
  head->form = BODY_V2;
  head->json_bytes = r->header.json_bytes;
}

/* Is the body on its way, whatever we say, and worth waiting for? */
static bool comes_anyway(const struct request *r) {
  return r->header.body_bytes <= REFUSED_BODY && !r->header.chunked &&
         !MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_EXPECT);
}

/* Is there a place in the queue, as far as can be told before the body? If not the request waits
 * for one, once. */
static bool enters(struct request *r) {
  struct lobby *lobby = &r->io->lobby;
  const bool waited = r->step == STEP_LOBBY;
  if (r->header.body_bytes <= QUEUE_BODY) return true;
  if (waited ? !pool_is_full(lobby->pool) : !lobby_is_needed(lobby)) return true;
  if (waited) {
    error_set(&r->error, STATUS_QUEUE_FULL, "the queue is full");
    return false;
  }
  r->step = STEP_LOBBY;
  const uint64_t asked = r->header.timeout_ms;
  lobby_join(lobby, &r->waiter, r->started, asked ? size_min(asked, LOBBY_MS) : LOBBY_MS);
  MHD_suspend_connection(r->mhd);
  return false;
}

static void judge_computed(struct request *r) {
  struct server *s = r->server;
  struct error *e = &r->error;
  struct decode_head head = {
      .body_bytes = r->header.chunked ? DECODE_UNKNOWN : r->header.body_bytes,
      .json_bytes = DECODE_UNKNOWN,
  };
  const bool late = r->served && r->step != STEP_LOBBY; /* or it was let in before */
  if (late && atomic_load_explicit(&r->door->draining, memory_order_relaxed))
    error_set(e, STATUS_DRAINING, "the server is stopping");
  else if (r->header.coded)
    error_set(e, STATUS_UNSUPPORTED_MEDIA_TYPE, "the body may not have a Content-Encoding");
  else if (route_is_v2(r->route))
    judge_v2(r, &head);
  else
    judge_native(r, &head);
  if (e->status) return;
  struct models_hold hold = models_hold(s->service.models, request_shard(r));
  const struct model *m = r->route == ROUTE_ATTENTION ? registry_default(hold.registry)
                                                      : registry_find(hold.registry, r->model);
  if (!m) {
    request_refuse_model(r, hold.registry);
    models_release(&hold);
    return;
  }
  memcpy(r->model, m->name, strlen(m->name) + 1);
  if (!enters(r)) {
    models_release(&hold);
    return;
  }
  exchange_begin(&r->exchange, &s->service, &hold, m, &head);
  r->holds = true;
  *e = r->exchange.error;
}

/* The admin door knows no paths but its own; what is none of them is counted as none. */
static void keep_to_admin(struct request *r) {
  if (r->door->kind != DOOR_ADMIN || route_is_admin(r->route)) return;
  r->route = route_is_v2(r->route) ? ROUTE_V2_NONE : ROUTE_NONE;
}

static enum status refuse_path(struct request *r) {
  if (r->door->kind == DOOR_ADMIN)
    return error_set(&r->error, STATUS_NOT_FOUND,
                     "there is nothing at this path of the admin address; it has /healthz, "
                     "/readyz, /metrics, /v2/health/live and /v2/health/ready");
  if (r->route == ROUTE_V2_VERSION)
    return error_set(&r->error, STATUS_NOT_FOUND, "a model has one version, which is 1");
  if (r->route == ROUTE_V2_NONE)
    return error_set(&r->error, STATUS_NOT_FOUND,
                     "there is nothing at this path; try /v2, /v2/models, /v2/models/NAME or "
                     "/v2/models/NAME/infer");
  return error_set(
      &r->error, STATUS_NOT_FOUND,
      "there is nothing at this path; try /v1/attention, /v1/models or /v1/models/NAME/heads");
}

/* Strangers are told nothing more. */
static enum status judge_key(struct request *r) {
  const struct config *c = r->server->config;
  if (!*c->api_key_file || r->door->kind == DOOR_ADMIN) return STATUS_OK;
  if (!bearer_is_needed(r->route, c)) return STATUS_OK;
  struct models_hold hold = models_hold(r->server->service.models, request_shard(r));
  bearer_judge(&r->header, hold.keys, &r->error);
  models_release(&hold);
  return r->error.status;
}

/* Whatever can be said of the request before its body. */
static void judge_head(struct request *r, const char *version) {
  struct error *e = &r->error;
  const struct config *c = r->server->config;
  *e = r->header.error;
  if (r->header.chunked && strcmp(version, "HTTP/1.0") == 0)
    error_set(e, STATUS_BAD_FRAMING, "Transfer-Encoding in a message of HTTP/1.0");
  if (e->status || r->preflight || judge_key(r)) return;
  if (!route_exists(r->route))
    refuse_path(r);
  else if (!route_allows(r->route, r->method))
    error_set(e, STATUS_METHOD_NOT_ALLOWED, "this path takes %s", route_allow(r->route));
  else if (r->header.body_bytes > c->max_body_bytes)
    error_limit(e, "max_body_bytes", "the body is larger than %llu bytes",
                (unsigned long long)c->max_body_bytes);
  else if (is_computed(r))
    judge_computed(r);
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
  keep_to_admin(r);
  r->method = method_find(method);
  header_init(&r->header);
  MHD_get_connection_values_n(r->mhd, MHD_HEADER_KIND, add_field, &r->header);
  header_finish(&r->header);
  if (!framing_head_is_whole(r->mhd, method, url, version, r->target_end))
    error_set(&r->header.error, STATUS_BAD_FRAMING,
              "the head has folded lines, or lines or characters that belong to no field");
  identify(r);
  if (connection_is_ended(connection_enter(&r->connection, CONNECTION_BODY))) return false;
  judge_head(r, version);
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
  if (!w->enters && !comes_anyway(r) && !enters(r)) refuse_now(r, &r->error);
  io_resume(r->io, r->mhd);
}

/* The rest of what is said of a head. */
static void leave_lobby(struct request *r) {
  judge_computed(r);
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
  const uint64_t said_us = r->exchange.decoded.v2.timeout_us;
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
    return is_computed(r) ? submit(r) : request_answer_route(r);
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
