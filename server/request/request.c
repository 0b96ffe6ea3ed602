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
#include "server/watch/request_id.h"
#include "server/request/request_parts.h"
#include "server/route/find_model.h"

enum {
  /* Only after this time in the queue is the socket asked whether the client is still there. That
   * saves a system call, and answers a client that closes its sending half after its request. */
  GONE_AFTER_US = 2000,
  /* A refused body of at most so many bytes is read and its connection kept: most of the body is on
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

/* Notes the origin of the page that sends the request, if its answer may be read there, and whether
 * the request is a preflight. */
static void note_page(struct request *r) {
  const struct cors *cors = r->server->cors;
  const struct header *h = &r->header;
  r->connection.origin = cors && h->origin ? cors_allow(cors, h->origin) : NULL;
  r->preflight = r->connection.origin && h->asks_method && r->method == METHOD_OPTIONS &&
                 route_exists(r->route) && !header_has_body(h);
}

/* Sets the identifier: the client's own if it is valid, else a new one. */
static void set_id(struct request *r) {
  if (r->header.request_id)
    snprintf(r->id, sizeof r->id, "%s", r->header.request_id);
  else
    request_id_make(r->id, r->server->id_prefix, r->connection.serial, r->served);
}

/* Is the body of a refused request likely to be on its way already, and small enough to be read? */
static bool is_body_on_its_way(const struct request *r) {
  return r->header.body_bytes <= REFUSED_BODY && !r->header.chunked &&
         !MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_EXPECT);
}

/* Is the route one that a setting has turned off? */
static bool is_off(const struct config *c, enum route route) {
  if (route_is_tei(route)) return !c->text_embeddings_inference;
  return route == ROUTE_PAGE && !c->page;
}

/* A second segment that belongs to no model's name is a path below the model of the first one. */
static void settle_name(struct request *r) {
  if (!r->names.joined || r->door->kind == DOOR_ADMIN) return;
  struct models_hold hold = models_hold(r->server->service.models, request_shard(r));
  if (!registry_find(hold.registry, r->names.model)) r->route = route_separate(r->route, &r->names);
  models_release(&hold);
}

/* Clients of text-embeddings-inference may post to its root, which does what its model is for. */
static void settle_root(struct request *r) {
  if (r->route != ROUTE_PAGE || r->method != METHOD_POST || r->door->kind == DOOR_ADMIN ||
      !r->server->config->text_embeddings_inference)
    return;
  struct models_hold hold = models_hold(r->server->service.models, request_shard(r));
  const struct model *m = find_model_of_texts(hold.registry);
  r->route = m && m->whole->classes > 0 ? ROUTE_TEI_PREDICT : ROUTE_TEI_EMBED;
  r->names.errors = ERROR_TEI;
  models_release(&hold);
}

/* Hides a route that does not exist here: on the admin door all but its own, elsewhere what is off.
 */
static void hide_route(struct request *r) {
  const bool admin = r->door->kind == DOOR_ADMIN;
  if (admin ? route_is_admin(r->route) : !is_off(r->server->config, r->route)) return;
  r->route = route_is_v2(r->route) ? ROUTE_V2_NONE : ROUTE_NONE;
}

/* Is the error sent now, and the connection closed after it, instead of after the body? */
static bool is_refused_at_once(const struct request *r) {
  enum status status = r->error.status;
  if (status == STATUS_OVERLOADED && is_body_on_its_way(r)) return false;
  return status == STATUS_BAD_FRAMING || status == STATUS_UNSUPPORTED_TRANSFER_ENCODING ||
         (status && header_has_body(&r->header));
}

void request_note_target(struct request *r, const char *target) {
  r->target = framing_target(target);
}

/* Finds what is wrong with the header as a whole, and with its target. */
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
  r->started = clock_now();
  r->state = REQUEST_IN_BODY;
  r->url = url;
  r->method_word = method;
  r->code = 0;
  r->verdict = STATUS_OK;
  r->body_bytes = r->answer_bytes = 0;
  r->answered = 0;
  r->timeline = (struct timeline){0};
  r->route = route_find(url, &r->names);
  settle_name(r);
  r->method = method_find(method);
  settle_root(r);
  hide_route(r);
  header_init(&r->header);
  r->header.tags = r->server->page.tags;
  MHD_get_connection_values_n(r->mhd, MHD_HEADER_KIND, read_field, &r->header);
  header_finish(&r->header);
  check_head(r, version);
  set_id(r);
  r->connection.request_id = r->id;
  r->connection.errors = r->names.errors;
  note_page(r);
  if (connection_is_ended(connection_enter(&r->connection, CONNECTION_BODY))) return false;
  request_admit(r, version);
  if (!is_refused_at_once(r)) return true;
  /* libmicrohttpd closes the connection after an answer that is queued before the body. */
  r->connection.discard = true;
  return request_answer_error(r, &r->error);
}

/* --- the body --- */

/* Sends the error past libmicrohttpd, which takes no answer in the middle of a body. Bytes that
 * still arrive are discarded. */
static void refuse_in_body(struct request *r, const struct error *e) {
  if (connection_is_ended(connection_enter(&r->connection, CONNECTION_REFUSED))) return;
  r->code = reply_code(e->status);
  r->verdict = e->status;
  r->connection.discard = true;
  request_count_reject(r, e->status);
  connection_refuse(&r->connection, e, r->id);
}

/* Such a body may have no end: the error is not kept until then. */
static void refuse_endless_body(struct request *r) {
  struct error e = {0};
  error_limit(&e, "max_body_bytes", "the body exceeds the limit of %llu bytes by far",
              (unsigned long long)r->server->config->max_body_bytes);
  refuse_in_body(r, &e);
}

/* If there is no place, a client that would still send much, or waits to be asked for its body,
 * gets the refusal now. */
void request_end_wait(struct lobby_waiter *w) {
  struct request *r = (struct request *)((char *)w - offsetof(struct request, waiter));
  if (!w->enters && !is_body_on_its_way(r) && !request_has_place(r)) refuse_in_body(r, &r->error);
  resume_waiter(r);
}

/* The body of a request that was in the lobby begins to arrive: finishes its admission. */
static void leave_lobby(struct request *r) {
  request_admit_computed(r);
  r->state = REQUEST_IN_BODY;
  if (r->error.status && !is_body_on_its_way(r)) refuse_in_body(r, &r->error);
}

/* No answer can be queued in the middle of a body: an error is kept until the end of the body,
 * whose rest is read and dropped. */
bool request_body(struct request *r, const char *bytes, size_t size) {
  if (connection_is_ended(connection_phase(&r->connection))) return true;
  r->body_bytes += size;
  r->io->quiet_turns = 0;
  if (r->state == REQUEST_IN_LOBBY) leave_lobby(r);
  if (r->body_bytes > 2 * r->server->config->max_body_bytes) refuse_endless_body(r);
  if (r->has_exchange && !r->error.status) {
    exchange_feed(&r->exchange, bytes, size);
    if (r->exchange.error.status) r->error = r->exchange.error;
  }
  if (r->error.status) request_end_exchange(r);
  return true;
}

/* --- the work --- */

/* Has the client left while its request waited in the queue? */
static bool is_client_gone(struct exchange *x) {
  struct request *r = (struct request *)((char *)x - offsetof(struct request, exchange));
  if (clock_now() - r->submitted < GONE_AFTER_US * (uint64_t)1000) return false;
  struct tcp_info info = {0};
  socklen_t size = sizeof info;
  /* A read would not do: bytes of the next request may precede the end of stream. The states from
   * TIME_WAIT on are those of a connection that the client has closed or reset. */
  getsockopt(r->connection.fd, IPPROTO_TCP, TCP_INFO, &info, &size);
  return info.tcpi_state >= TCP_TIME_WAIT;
}

/* The last thing a worker does with a request, which may be gone once HANDOFF_DONE is set, unless
 * its connection is gone already. */
static void hand_back(struct exchange *x) {
  struct request *r = (struct request *)((char *)x - offsetof(struct request, exchange));
  struct MHD_Connection *mhd = r->mhd;
  struct io *io = r->io;
  const int was = atomic_exchange(&r->handoff, HANDOFF_DONE);
  if (was == HANDOFF_SUSPENDED) io_resume(io, mhd);
  if (was == HANDOFF_LEFT) free_left(r);
}

/* How long the request may take, unless its body asks for less. */
static uint64_t allowed_ms(const struct request *r) {
  const struct config *c = r->server->config;
  const struct body_terms *terms = &r->exchange.terms;
  const bool generates = terms->ask == ASK_GENERATE || terms->ablation; /* it comes bit by bit */
  const uint64_t ms = generates ? c->generate_deadline_ms : c->deadline_ms;
  return r->header.timeout_ms ? size_min(ms, r->header.timeout_ms) : ms;
}

/* Clients are told apart by their key, or, where there are no keys, by their connection. */
static uint64_t client_of(const struct request *r) {
  return *r->server->config->api_key_file ? bearer_number(&r->header) : r->connection.serial;
}

/* Gives the complete request to the pool. Suspends the connection unless the answer is there. */
static bool submit(struct request *r) {
  struct exchange *x = &r->exchange;
  const uint64_t deadline = clock_now() + allowed_ms(r) * CLOCK_MS;
  x->gone = NULL;
  if (!exchange_finish(x, deadline)) return request_answer_error(r, &x->error);
  x->done = hand_back;
  x->gone = is_client_gone;
  x->news = request_note_news;
  x->paced = request_note_pace;
  x->pause_ns = r->server->config->deadline_ms * CLOCK_MS;
  x->client = client_of(r);
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

/* The connection was resumed: the work is done, or a stream has news. */
static bool go_on(struct request *r) {
  const unsigned seen = atomic_load(&r->news);
  if (atomic_load(&r->handoff) == HANDOFF_DONE) return request_answer_exchange(r);
  if (exchange_has_begun(&r->exchange)) return request_answer_stream(r);
  if (r->exchange.stream) request_wait(r, seen);
  return true;
}

bool request_continue(struct request *r) {
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
  case REQUEST_IN_POOL:
    return go_on(r);
  case REQUEST_NONE:
  case REQUEST_STREAMED:
  case REQUEST_ANSWERED:
    break; /* libmicrohttpd calls once more while it sends the answer */
  }
  return true;
}
