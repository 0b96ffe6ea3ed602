/* request: one HTTP request at a time on a connection. */
#include "server/request.h"

#include <arpa/inet.h>
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
#include "server/endpoint_models.h"
#include "server/framing.h"

enum step {
  STEP_NONE,
  STEP_BODY,   /* the head is judged, the body arrives */
  STEP_POOL,   /* given to the pool */
  STEP_ANSWER, /* the answer is queued, or the connection is being closed */
};

/* Who finds the work done: the I/O thread, or a worker that must wake the connection. */
enum handoff { HANDOFF_RUNNING, HANDOFF_SUSPENDED, HANDOFF_DONE };

/* A job that has waited less than this is not asked whether its client is still there: it spares a
 * system call, and answers a client that closes its sending half behind its request. */
enum { GONE_AFTER_US = 2000 };

enum { ID_SIZE = 129, TIMING_SIZE = 160, CLIENT_SIZE = INET6_ADDRSTRLEN + 10 };

struct request {
  struct connection connection;
  struct server *server;
  struct MHD_Connection *mhd;
  enum step step;
  enum route route;
  enum method method;
  const char *url, *word; /* path and method as sent; libmicrohttpd's */
  const char *target_end; /* of the whole target as it came */
  struct header header;
  struct error error; /* why there will be no answer but this */
  uint64_t started, submitted;
  uint64_t body_bytes;
  size_t answer_bytes;
  unsigned served; /* requests of this connection that have ended */
  unsigned code;   /* of the answer; 0: none yet */
  bool holds;      /* `exchange` has begun and not ended */
  _Atomic int handoff;
  struct exchange exchange;
  char model[ROUTE_MODEL_SIZE];
  char id[ID_SIZE];
  char timing[TIMING_SIZE];
  char problem[REPLY_PROBLEM_SIZE];
};

struct request *request_open(struct server *s, struct MHD_Connection *c, int fd) {
  struct request *r = calloc(1, sizeof *r);
  if (!r) return NULL;
  r->server = s;
  r->mhd = c;
  connection_open(s->connections, &r->connection, fd);
  return r;
}

void request_close(struct request *r) {
  if (r->step !=
      STEP_NONE) { /* libmicrohttpd has not said that it is over, and has freed its text */
    r->url = r->word = "-";
    r->header.agent = NULL;
    request_end(r);
  }
  connection_close(r->server->connections, &r->connection);
  free(r);
}

/* The shard of the I/O thread: libmicrohttpd, too, chooses it by the descriptor. Shard 0 is for
 * the threads that are not I/O threads. */
static size_t shard_of(const struct request *r) {
  return 1 + (size_t)r->connection.fd % r->server->io_threads;
}

/* --- answers --- */

static void count_reject(struct request *r, enum status status) {
  static const int reasons[STATUS_COUNT] = {
      [STATUS_OVERLOADED] = 1 + REJECT_OVERLOADED,
      [STATUS_DRAINING] = 1 + REJECT_DRAINING,
      [STATUS_DEADLINE] = 1 + REJECT_DEADLINE,
      [STATUS_OUT_OF_MEMORY] = 1 + REJECT_MEMORY,
      [STATUS_GONE] = 1 + REJECT_GONE,
  };
  if (reasons[status])
    metrics_reject(r->server->metrics, shard_of(r), (enum reject)(reasons[status] - 1));
}

/* An answer about to be queued; the clock for its reader starts. */
static struct reply begin_reply(struct request *r, unsigned code, const char *type) {
  r->step = STEP_ANSWER;
  r->code = code;
  return (struct reply){.to = r->mhd,
                        .code = code,
                        .type = type,
                        .request_id = r->id,
                        .close = r->connection.discard ||
                                 atomic_load_explicit(&r->server->draining, memory_order_relaxed)};
}

static bool start_answer(struct request *r) {
  return !connection_is_ended(connection_enter(&r->connection, CONNECTION_ANSWER));
}

static bool answer_error(struct request *r, const struct error *e) {
  count_reject(r, e->status);
  r->step = STEP_ANSWER;
  if (e->status == STATUS_GONE || !start_answer(r)) {
    r->code = e->status == STATUS_GONE ? reply_code(STATUS_GONE) : r->code;
    return false;
  }
  struct reply reply = begin_reply(r, reply_code(e->status), NULL);
  if (e->status == STATUS_METHOD_NOT_ALLOWED) reply.allow = route_allow(r->route);
  return reply_problem(&reply, e, r->problem, &r->answer_bytes);
}

static bool answer_status(struct request *r, enum status status, const char *detail) {
  struct error e = {0};
  error_set(&e, status, "%s", detail);
  return answer_error(r, &e);
}

/* Takes a text made with malloc. */
static bool answer_text(struct request *r, const char *type, char *text, size_t length) {
  if (!text) return answer_status(r, STATUS_OUT_OF_MEMORY, "no memory for the answer");
  if (!start_answer(r)) {
    free(text);
    return false;
  }
  r->answer_bytes = length;
  struct reply reply = begin_reply(r, 200, type);
  return reply_take(&reply, text, length);
}

/* The durations of the stages: into the metrics, and as the text of Server-Timing. */
static void time_stages(struct request *r) {
  const struct exchange *x = &r->exchange;
  const uint64_t ns[STAGE_COUNT] = {
      [STAGE_DECODE] = x->decode_ns,
      [STAGE_QUEUE] = x->job.started - x->job.submitted,
      [STAGE_COMPUTE] = x->job.computed - x->job.started,
      [STAGE_ENCODE] = x->job.finished - x->job.computed,
  };
  unsigned us[STAGE_COUNT];
  for (unsigned i = 0; i < STAGE_COUNT; i++) {
    metrics_stage(r->server->metrics, shard_of(r), (enum stage)i, ns[i]);
    us[i] = (unsigned)(ns[i] / 1000);
  }
  snprintf(r->timing, sizeof r->timing,
           "decode;dur=%u.%03u, queue;dur=%u.%03u, compute;dur=%u.%03u, encode;dur=%u.%03u",
           us[0] / 1000, us[0] % 1000, us[1] / 1000, us[1] % 1000, us[2] / 1000, us[2] % 1000,
           us[3] / 1000, us[3] % 1000);
}

static bool answer_exchange(struct request *r) {
  struct exchange *x = &r->exchange;
  if (x->error.status) return answer_error(r, &x->error);
  time_stages(r);
  if (!start_answer(r)) return false;
  r->answer_bytes = answer_bytes(&x->answer);
  struct reply reply = begin_reply(r, 200, "application/json");
  reply.timing = r->timing;
  return reply_pieces(&reply, x->answer.piece, x->answer.pieces);
}

static bool answer_ready(struct request *r) {
  static const char ready[] = "{\"status\":\"ready\"}\n";
  struct server *s = r->server;
  if (atomic_load(&s->stopping)) return answer_status(r, STATUS_DRAINING, "the server is stopping");
  if (!start_answer(r)) return false;
  r->answer_bytes = sizeof ready - 1;
  struct reply reply = begin_reply(r, 200, "application/json");
  return reply_bytes(&reply, ready, sizeof ready - 1);
}

static bool answer_health(struct request *r) {
  static const char works[] = "{\"status\":\"ok\"}\n";
  if (!start_answer(r)) return false;
  r->answer_bytes = sizeof works - 1;
  struct reply reply = begin_reply(r, 200, "application/json");
  return reply_bytes(&reply, works, sizeof works - 1);
}

static bool answer_metrics(struct request *r) {
  struct server *s = r->server;
  struct metrics_now now = {.connections = connections_count(s->connections),
                            .log_dropped = log_dropped(s->log),
                            .io_threads = s->io_threads};
  size_t length = 0;
  char *text = metrics_text(s->metrics, &s->service, &now, &length);
  return answer_text(r, "text/plain; version=0.0.4; charset=utf-8", text, length);
}

/* No model has the name of the path: says which there are, as many as fit. */
static void refuse_model(struct request *r) {
  const struct registry *all = r->server->service.registry;
  char names[200] = "";
  size_t used = 0;
  for (size_t i = 0; i < registry_count(all) && used < sizeof names; i++)
    used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                             registry_at(all, i)->name);
  error_set(&r->error, STATUS_UNKNOWN_MODEL, "no model has this name; there are: %s", names);
}

static bool answer_model(struct request *r) {
  size_t length = 0;
  const struct model *m = registry_find(r->server->service.registry, r->model);
  if (!m) {
    refuse_model(r);
    return answer_error(r, &r->error);
  }
  char *text = endpoint_model_text(m, &length);
  return answer_text(r, "application/json", text, length);
}

static bool answer_models(struct request *r) {
  size_t length = 0;
  char *text = endpoint_models_text(r->server->service.registry, &length);
  return answer_text(r, "application/json", text, length);
}

/* --- the head --- */

static enum MHD_Result add_field(void *of, enum MHD_ValueKind kind, const char *name,
                                 size_t name_size, const char *value, size_t value_size) {
  (void)kind, (void)value_size;
  header_add(of, name, name_size, value);
  return MHD_YES;
}

/* The client's own, if sane, or a new one: process, connection, and request on the connection. */
static void identify(struct request *r) {
  if (r->header.request_id)
    snprintf(r->id, sizeof r->id, "%s", r->header.request_id);
  else
    snprintf(r->id, sizeof r->id, "%08x%08llx%04x", r->server->id_prefix,
             (unsigned long long)r->connection.serial, r->served);
  r->connection.request_id = r->id;
}

/* Does the path lead to the pool? */
static bool is_computed(const struct request *r) {
  return r->route == ROUTE_ATTENTION || r->route == ROUTE_MODEL_ATTENTION ||
         r->route == ROUTE_MODEL_HEADS;
}

static void judge_computed(struct request *r) {
  struct server *s = r->server;
  struct error *e = &r->error;
  if (r->served && atomic_load_explicit(&s->draining, memory_order_relaxed))
    error_set(e, STATUS_DRAINING, "the server is stopping");
  else if (r->header.coded)
    error_set(e, STATUS_UNSUPPORTED_MEDIA_TYPE, "the body may not have a Content-Encoding");
  else if (!r->header.json)
    error_set(e, STATUS_UNSUPPORTED_MEDIA_TYPE,
              "the body's Content-Type is not application/json: send that header");
  else if (!header_accepts_json(&r->header))
    error_set(e, STATUS_NOT_ACCEPTABLE, "Accept excludes application/json");
  if (e->status) return;
  const struct model *m = r->route == ROUTE_ATTENTION
                              ? registry_default(s->service.registry)
                              : registry_find(s->service.registry, r->model);
  if (!m) {
    refuse_model(r);
    return;
  }
  exchange_begin(&r->exchange, &s->service, m,
                 r->route == ROUTE_MODEL_HEADS ? ASK_HEADS : ASK_ATTENTION);
  r->holds = true;
  *e = r->exchange.error;
}

/* Whatever can be said of the request before its body. */
static void judge_head(struct request *r, const char *version) {
  struct error *e = &r->error;
  const struct config *c = r->server->config;
  *e = r->header.error;
  if (r->header.chunked && strcmp(version, "HTTP/1.0") == 0)
    error_set(e, STATUS_BAD_FRAMING, "Transfer-Encoding in a message of HTTP/1.0");
  if (e->status) return;
  if (r->route == ROUTE_NONE)
    error_set(
        e, STATUS_NOT_FOUND,
        "there is nothing at this path; try /v1/attention, /v1/models or /v1/models/NAME/heads");
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
  r->body_bytes = r->answer_bytes = 0;
  r->route = route_find(url, r->model);
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
  return answer_error(r, &r->error);
}

/* --- the body --- */

static void release(struct request *r) {
  if (r->holds) exchange_end(&r->exchange);
  r->holds = false;
}

/* A body without end: it gets its answer now, past libmicrohttpd, which takes none here. */
static void refuse_endless(struct request *r) {
  struct error e = {0};
  error_limit(&e, "max_body_bytes", "the body is far larger than %llu bytes",
              (unsigned long long)r->server->config->max_body_bytes);
  if (connection_is_ended(connection_enter(&r->connection, CONNECTION_REFUSED))) return;
  r->code = reply_code(e.status);
  connection_refuse(&r->connection, &e, r->id);
}

/* No answer can be queued in the middle of a body: what is wrong is remembered, and the rest of the
 * body is read but not kept. */
bool request_body(struct request *r, const char *bytes, size_t size) {
  if (connection_is_ended(connection_phase(&r->connection))) return true;
  r->body_bytes += size;
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
  if (atomic_exchange(&r->handoff, HANDOFF_DONE) == HANDOFF_SUSPENDED) MHD_resume_connection(mhd);
}

static bool submit(struct request *r) {
  struct exchange *x = &r->exchange;
  if (!exchange_finish(x)) return answer_error(r, &x->error);
  uint64_t ms = r->server->config->deadline_ms;
  if (r->header.timeout_ms) ms = size_min(ms, r->header.timeout_ms);
  x->done = work_done;
  x->gone = work_gone;
  r->step = STEP_POOL;
  r->submitted = clock_now();
  atomic_store(&r->handoff, HANDOFF_RUNNING);
  exchange_submit(x, r->submitted + ms * CLOCK_MS);
  if (atomic_load(&r->handoff) == HANDOFF_DONE) return answer_exchange(r);
  MHD_suspend_connection(r->mhd);
  int running = HANDOFF_RUNNING;
  if (!atomic_compare_exchange_strong(&r->handoff, &running, HANDOFF_SUSPENDED))
    MHD_resume_connection(r->mhd); /* done just now: the worker left waking it to us */
  return true;
}

static bool answer_route(struct request *r) {
  switch (r->route) {
  case ROUTE_ATTENTION:
  case ROUTE_MODEL_ATTENTION:
  case ROUTE_MODEL_HEADS:
    return submit(r);
  case ROUTE_MODELS:
    return answer_models(r);
  case ROUTE_MODEL:
    return answer_model(r);
  case ROUTE_HEALTH:
    return answer_health(r);
  case ROUTE_READY:
    return answer_ready(r);
  case ROUTE_METRICS:
    return answer_metrics(r);
  case ROUTE_NONE:
  case ROUTE_COUNT:
    break;
  }
  must(!"a route that answers");
  return false;
}

bool request_rest(struct request *r) {
  switch (r->step) {
  case STEP_BODY:
    if (connection_is_ended(connection_enter(&r->connection, CONNECTION_QUEUED))) return false;
    if (r->header.chunked && framing_has_trailer(r->mhd)) r->connection.discard = true;
    return r->error.status ? answer_error(r, &r->error) : answer_route(r);
  case STEP_POOL:
    return atomic_load(&r->handoff) == HANDOFF_DONE ? answer_exchange(r) : true;
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
  if (phase == CONNECTION_SLOW_BODY || phase == CONNECTION_SLOW_HEAD)
    return reply_code(STATUS_TOO_SLOW);
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_HTTP_STATUS);
  if (info && info->http_status) return info->http_status; /* libmicrohttpd's own refusal */
  count_reject(r, STATUS_GONE);
  return reply_code(STATUS_GONE);
}

static void client_address(struct request *r, char text[CLIENT_SIZE]) {
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  const struct sockaddr *a = info ? info->client_addr : NULL;
  const void *from = NULL;
  if (a && a->sa_family == AF_INET) from = &((const struct sockaddr_in *)a)->sin_addr;
  if (a && a->sa_family == AF_INET6) from = &((const struct sockaddr_in6 *)a)->sin6_addr;
  if (!from || !inet_ntop(a->sa_family, from, text, CLIENT_SIZE)) snprintf(text, CLIENT_SIZE, "-");
}

static void write_access(struct request *r, uint64_t nanoseconds) {
  char client[CLIENT_SIZE];
  client_address(r, client);
  struct log_request line = {.id = r->id,
                             .client = client,
                             .method = r->word,
                             .path = r->url,
                             .agent = r->header.agent,
                             .code = r->code,
                             .bytes_in = r->body_bytes,
                             .bytes_out = r->answer_bytes,
                             .nanoseconds = nanoseconds};
  log_request(r->server->log, &line);
}

void request_end(struct request *r) {
  uint64_t nanoseconds = clock_now() - r->started;
  if (!r->code) r->code = code_unanswered(r);
  metrics_request(r->server->metrics, shard_of(r), r->route, r->method, r->code, nanoseconds);
  if (log_wants_access(r->server->log, r->code)) write_access(r, nanoseconds);
  release(r);
  r->error.status = STATUS_OK;
  r->served++;
  r->step = STEP_NONE;
  connection_enter(&r->connection, CONNECTION_IDLE);
}
