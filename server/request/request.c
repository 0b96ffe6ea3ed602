/* request: one HTTP request at a time on a connection. */
#include "server/request/request.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "config/model/registry.h"
#include "core/base/clock.h"
#include "core/base/size.h"
#include "server/http/bearer.h"
#include "server/request/request_parts.h"
#include "server/route/find_model.h"
#include "server/watch/request_id.h"

enum {
  /* The socket is asked whether the client is still there only after this time in the queue. That
   * saves a system call, and a client may close its sending half after its request. */
  GONE_AFTER_US = 2000,
  /* A rejected body of at most this size is read and its connection kept: most of the body is on
   * its way anyway, and the client need not connect again. */
  REFUSED_BODY = 1 << 20,
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

/* A request whose connection was closed while the pool had it. */
static void free_left(struct request *r) {
  exchange_end(&r->exchange);
  free(r);
}

void request_close(struct request *r) {
  /* libmicrohttpd may have freed the text of a request without a call of request_end. */
  if (r->state != REQUEST_NONE) {
    r->url = r->method_word = "-";
    r->header.agent = r->header.traceparent = NULL;
    request_end(r, false);
  }
  io_unwatch(r->io, r->connection.fd);
  connection_close(r->door->connections, &r->connection);
  if (!r->left)
    free(r);
  else if (atomic_exchange(&r->handoff, HANDOFF_LEFT) == HANDOFF_DONE)
    free_left(r);
}

/* The request is out of the lobby's line: its body is read from now on. */
static void resume_waiter(struct request *r) {
  connection_enter(&r->connection, CONNECTION_BODY);
  io_resume(r->io, r->mhd);
}

void request_client_ended(struct request *r) {
  if (r->waiter.line.waits) {
    lobby_leave(&r->io->lobby, &r->waiter);
    resume_waiter(r);
  }
  if (connection_half_closed(&r->connection)) io_watch_again(r->io, r->connection.fd, r);
}

/* --- the header --- */

static enum MHD_Result read_field(void *of, enum MHD_ValueKind kind, const char *name,
                                  size_t name_size, const char *value, size_t value_size) {
  (void)kind, (void)value_size;
  header_add(of, name, name_size, value);
  return MHD_YES;
}

/* Whether the body of a rejected request is likely to be on its way already, and small enough to be
 * read. */
static bool is_body_on_its_way(const struct request *r) {
  return r->header.body_bytes <= REFUSED_BODY && !r->header.chunked &&
         !MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_EXPECT);
}

/* Finds the route of r->url. Routes that do not exist on this door, or that a setting turns off,
 * are those of an unknown path. */
static void find_route(struct request *r) {
  const struct config *c = r->server->config;
  r->route = route_find(r->url, &r->names);
  if (r->door->kind == DOOR_ADMIN) {
    if (!route_row(r->route)->admin) r->route = route_unknown(r->route);
    return;
  }
  /* Clients of text-embeddings-inference may post to the root: its model decides on the route. */
  const bool root =
      r->route == ROUTE_PAGE && r->method == METHOD_POST && c->text_embeddings_inference;
  if (r->names.joined || root) {
    struct models_hold hold = models_hold(r->server->service.models, request_shard(r));
    /* A second segment that is not part of a model's name is a path below the model of the first
     * one. */
    if (r->names.joined && !registry_find(hold.registry, r->names.model))
      r->route = route_separate(r->route, &r->names);
    if (root) {
      const struct model *m = find_model_of_texts(hold.registry);
      r->route = m && m->whole->classes > 0 ? ROUTE_TEI_PREDICT : ROUTE_TEI_EMBED;
      r->names.errors = ERROR_TEI;
    }
    models_release(&hold);
  }
  if (!route_is_enabled(r->route, c)) r->route = ROUTE_NONE;
}

void request_target(struct request *r, const char *target) { r->target = framing_target(target); }

/* Finds faults of the header as a whole, and of its target. */
static void check_head(struct request *r, const char *version) {
  struct error *e = &r->header.error;
  const bool whole = strcmp(r->url, "*") == 0;
  r->asks_server = whole && r->method == METHOD_OPTIONS;
  if (r->target.fault) error_set(e, STATUS_BAD_FRAMING, "%s", r->target.fault);
  if (!framing_header_is_whole(r->mhd, r->method_word, r->url, version, r->target.end))
    error_set(e, STATUS_BAD_FRAMING,
              "the header has folded lines, or lines that are not header fields");
  if (!r->header.hosts && strcmp(version, "HTTP/1.0") != 0)
    error_set(e, STATUS_BAD_FRAMING, "the header has no Host field, which HTTP/1.1 requires");
  if (whole && !r->asks_server)
    error_set(e, STATUS_BAD_FRAMING, "the target * is for OPTIONS only");
}

bool request_header(struct request *r, const char *url, const char *method, const char *version) {
  struct header *h = &r->header;
  r->started = clock_now();
  r->state = REQUEST_IN_BODY;
  r->url = url;
  r->method_word = method;
  r->method = method_find(method);
  r->code = 0;
  r->verdict = STATUS_OK;
  r->body_bytes = r->answer_bytes = 0;
  r->answered = 0;
  r->timeline = (struct timeline){0};
  find_route(r);
  header_init(h);
  h->tags = r->server->page.tags;
  MHD_get_connection_values_n(r->mhd, MHD_HEADER_KIND, read_field, h);
  header_finish(h);
  check_head(r, version);
  if (h->request_id)
    snprintf(r->id, sizeof r->id, "%s", h->request_id);
  else
    request_id_make(r->id, r->server->id_prefix, r->connection.serial, r->served);
  r->connection.request_id = r->id;
  r->connection.errors = r->names.errors;
  r->connection.origin =
      r->server->cors && h->origin ? cors_allow(r->server->cors, h->origin) : NULL;
  r->preflight = r->connection.origin && h->asks_method && r->method == METHOD_OPTIONS &&
                 route_exists(r->route) && !header_has_body(h);
  if (connection_is_ended(connection_enter(&r->connection, CONNECTION_BODY))) return false;
  request_admit(r, version);
  /* An error is sent now, and the connection closed after it, or it is sent after the body. */
  const enum status status = r->error.status;
  if (!status || (status == STATUS_OVERLOADED && is_body_on_its_way(r))) return true;
  if (status != STATUS_BAD_FRAMING && status != STATUS_UNSUPPORTED_TRANSFER_ENCODING &&
      !header_has_body(h))
    return true;
  /* libmicrohttpd closes the connection after a response that is queued before the body. */
  r->connection.discard = true;
  return request_answer_error(r, &r->error);
}

/* --- the body --- */

/* Sends the error without libmicrohttpd, which accepts no response in the middle of a body. Bytes
 * that still arrive are discarded. */
static void refuse_in_body(struct request *r, const struct error *e) {
  if (connection_is_ended(connection_enter(&r->connection, CONNECTION_REFUSED))) return;
  r->code = reply_code(e->status);
  r->verdict = e->status;
  r->connection.discard = true;
  request_count_reject(r, e->status);
  connection_refuse(&r->connection, e, r->id);
}

/* If there is no place, a client that would still send much, or that waits to be asked for its
 * body, gets the error now. */
void request_end_wait(struct lobby_waiter *w) {
  struct request *r = (struct request *)((char *)w - offsetof(struct request, waiter));
  if (!w->enters && !is_body_on_its_way(r) && !request_has_place(r)) refuse_in_body(r, &r->error);
  resume_waiter(r);
}

/* No response can be queued in the middle of a body: an error is kept until the end of the body,
 * whose rest is read and dropped. */
bool request_body(struct request *r, const char *bytes, size_t size) {
  const unsigned long long limit = r->server->config->max_body_bytes;
  if (connection_is_ended(connection_phase(&r->connection))) return true;
  r->body_bytes += size;
  r->io->quiet_turns = 0;
  if (r->state == REQUEST_IN_LOBBY) {
    request_admit_computed(r);
    r->state = REQUEST_IN_BODY;
    if (r->error.status && !is_body_on_its_way(r)) refuse_in_body(r, &r->error);
  }
  if (r->body_bytes > 2 * limit) { /* it may have no end */
    struct error e = {0};
    error_limit(&e, "max_body_bytes", "the body exceeds the limit of %llu bytes by far", limit);
    refuse_in_body(r, &e);
  }
  if (r->has_exchange && !r->error.status) {
    exchange_feed(&r->exchange, bytes, size);
    if (r->exchange.error.status) r->error = r->exchange.error;
  }
  if (r->error.status) request_end_exchange(r);
  return true;
}

/* --- the work --- */

/* Whether the client has left while its request waited in the queue. */
static bool is_client_gone(struct exchange *x) {
  struct request *r = (struct request *)((char *)x - offsetof(struct request, exchange));
  if (clock_now() - r->submitted < GONE_AFTER_US * (uint64_t)1000) return false;
  struct tcp_info info = {0};
  socklen_t size = sizeof info;
  /* A read is not enough: bytes of the next request may precede the end of stream. A connection
   * that the client has closed or reset is in a state from TIME_WAIT on. */
  getsockopt(r->connection.fd, IPPROTO_TCP, TCP_INFO, &info, &size);
  return info.tcpi_state >= TCP_TIME_WAIT;
}

/* The last thing a worker does with a request. Once DONE is set the I/O thread may free it, so
 * `mhd` and `io` are read before. If the connection was closed first (LEFT), the worker frees it.
 */
static void hand_back(struct exchange *x) {
  struct request *r = (struct request *)((char *)x - offsetof(struct request, exchange));
  struct MHD_Connection *mhd = r->mhd;
  struct io *io = r->io;
  const int was = atomic_exchange(&r->handoff, HANDOFF_DONE);
  if (was == HANDOFF_SUSPENDED) io_resume(io, mhd);
  if (was == HANDOFF_LEFT) free_left(r);
}

/* The longest time of the request, unless its body asks for less. Generated tokens and ablated
 * heads are results one by one, which have a deadline of their own. */
static uint64_t allowed_ms(const struct request *r) {
  const struct config *c = r->server->config;
  const bool rounds = exchange_has_rounds(&r->exchange);
  const uint64_t ms = rounds ? c->generate_deadline_ms : c->deadline_ms;
  return r->header.timeout_ms ? size_min(ms, r->header.timeout_ms) : ms;
}

/* Gives the complete request to the pool. Suspends the connection unless the response is there. */
static bool submit(struct request *r) {
  struct exchange *x = &r->exchange;
  const uint64_t deadline = clock_now() + allowed_ms(r) * CLOCK_MS;
  x->gone = NULL;
  if (!exchange_finish(x, deadline)) return request_answer_error(r, &x->error);
  x->done = hand_back;
  x->gone = is_client_gone;
  x->news = request_news;
  x->paced = request_pace;
  x->pause_ns = r->server->config->deadline_ms * CLOCK_MS;
  /* The key identifies a client, or the connection if the server has no keys. */
  x->client = *r->server->config->api_key_file ? bearer_number(&r->header) : r->connection.serial;
  r->state = REQUEST_IN_POOL;
  r->submitted = clock_now();
  atomic_store(&r->handoff, HANDOFF_RUNNING);
  atomic_store(&r->news, 0);
  exchange_submit(x, r->submitted + allowed_ms(r) * CLOCK_MS);
  lobby_leave(&r->io->lobby, &r->waiter);
  if (atomic_load(&r->handoff) == HANDOFF_DONE) return request_answer_exchange(r);
  request_wait(r, 0);
  return true;
}

bool request_continue(struct request *r) {
  unsigned seen;
  switch (r->state) {
  case REQUEST_IN_LOBBY: /* the body comes next, unless the connection was ended meanwhile */
    if (!connection_is_ended(connection_phase(&r->connection))) return true;
    r->connection.discard = true;
    return false;
  case REQUEST_IN_BODY:
    if (connection_is_ended(connection_enter(&r->connection, CONNECTION_QUEUED))) return false;
    if (r->header.chunked && framing_has_trailer(r->mhd)) r->connection.discard = true;
    if (r->error.status) return request_answer_error(r, &r->error);
    if (r->preflight) return request_answer_preflight(r);
    if (r->asks_server) return request_answer_server(r);
    return route_is_computed(r->route) ? submit(r) : request_answer_route(r);
  case REQUEST_IN_POOL: /* the work is done, or a stream has news */
    seen = atomic_load(&r->news);
    if (atomic_load(&r->handoff) == HANDOFF_DONE) return request_answer_exchange(r);
    if (exchange_has_begun(&r->exchange)) return request_answer_stream(r);
    if (r->exchange.stream) request_wait(r, seen);
    return true;
  case REQUEST_NONE:
  case REQUEST_STREAMED:
  case REQUEST_ANSWERED:
    break; /* libmicrohttpd calls once more while it sends the response */
  }
  return true;
}
