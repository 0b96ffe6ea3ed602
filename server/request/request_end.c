/* request_end: the end of a request: it is counted and logged, and all that it holds is released.
 */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <stdio.h>

#include "core/base/clock.h"
#include "server/request/request_parts.h"

enum {
  AT_ONCE = 1 << 20, /* bytes that are freed at once */
  LEAVING_PART = 4   /* memory that is freed later is at most this part of the budget: it is charged
                        until then, and must not block the client's next request */
};

_Static_assert(REQUEST_CLIENT_SIZE >= INET6_ADDRSTRLEN, "room for an address");

void request_count_tokens(struct request *r) {
  const struct exchange *x = &r->exchange;
  struct metrics *m = r->server->metrics;
  const size_t shard = request_shard(r), chosen = exchange_generated(x);
  const struct tokenize_texts *t = exchange_texts(x);
  if (t) {
    metrics_add(m, shard, METRICS_TEXTS, t->texts->items);
    metrics_add(m, shard, METRICS_TEXT_BYTES, t->texts->length);
    metrics_add(m, shard, METRICS_TEXT_TOKENS, t->tokens.count);
    metrics_add(m, shard, METRICS_TEXT_NS, t->ns);
  }
  if (x->tokens) /* of a model */
    metrics_add(m, shard,
                x->terms.ask == ASK_GENERATE ? WORK_GENERATE
                : x->terms.ask == ASK_SCORE  ? WORK_SCORE
                                             : WORK_ENCODE,
                x->tokens);
  if (chosen) metrics_add(m, shard, WORK_CHOOSE, chosen);
  if (x->recalled) metrics_add(m, shard, WORK_RECALL, x->recalled);
}

void request_set_stages(struct request *r) {
  if (r->has_exchange) timeline_exchange(&r->timeline, &r->exchange);
}

void request_end_exchange(struct request *r) {
  request_set_stages(r);
  if (!r->has_exchange) return;
  const size_t bytes = r->exchange.arena.bytes, leaving = r->io->leaving.bytes;
  const size_t most = r->server->service.budget.limit / LEAVING_PART;
  if (bytes > AT_ONCE && leaving <= most && bytes <= most - leaving)
    arena_give(&r->exchange.arena, &r->io->leaving); /* is freed bit by bit */
  exchange_end(&r->exchange);
  r->has_exchange = false;
}

/* --- counting --- */

void request_count_reject(struct request *r, enum status status) {
  static const int reasons[STATUS_COUNT] = {
      [STATUS_QUEUE_FULL] = 1 + REJECT_QUEUE,          [STATUS_OVERLOADED] = 1 + REJECT_BUDGET,
      [STATUS_DRAINING] = 1 + REJECT_DRAINING,         [STATUS_DEADLINE] = 1 + REJECT_DEADLINE,
      [STATUS_OUT_OF_MEMORY] = 1 + REJECT_MEMORY,      [STATUS_TOO_LARGE] = 1 + REJECT_TOO_LARGE,
      [STATUS_UNAUTHORIZED] = 1 + REJECT_UNAUTHORIZED,
  };
  struct metrics *m = r->server->metrics;
  if (reasons[status])
    metrics_add(m, request_shard(r), (enum metrics_counter)(reasons[status] - 1), 1);
  if (status == STATUS_GONE) metrics_add(m, request_shard(r), ABORT_QUEUE, 1);
}

/* The code to count for a request without a response; sets r->verdict. */
static unsigned code_unanswered(struct request *r) {
  enum connection_phase phase = connection_phase(&r->connection);
  if (phase == CONNECTION_SLOW_BODY || phase == CONNECTION_SLOW_HEADER) {
    r->verdict = STATUS_TOO_SLOW;
    return reply_code(STATUS_TOO_SLOW);
  }
  if (phase == CONNECTION_DRAINED) {
    r->verdict = STATUS_DRAINING;
    return reply_code(STATUS_DRAINING);
  }
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_HTTP_STATUS);
  r->verdict = info && info->http_status ? STATUS_BAD_FRAMING : STATUS_GONE;
  if (info && info->http_status) return info->http_status; /* libmicrohttpd's own refusal */
  metrics_add(r->server->metrics, request_shard(r),
              r->state == REQUEST_IN_POOL ? ABORT_QUEUE : ABORT_BODY, 1);
  return reply_code(STATUS_GONE);
}

/* --- the line in the access log --- */

/* The address of the client as text, made once for a connection. */
static const char *client_address(struct request *r) {
  if (r->client[0]) return r->client;
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  const struct sockaddr *a = info ? info->client_addr : NULL;
  const void *from = NULL;
  if (a && a->sa_family == AF_INET) from = &((const struct sockaddr_in *)a)->sin_addr;
  if (a && a->sa_family == AF_INET6) from = &((const struct sockaddr_in6 *)a)->sin6_addr;
  if (!from || !inet_ntop(a->sa_family, from, r->client, sizeof r->client))
    snprintf(r->client, sizeof r->client, "-");
  return r->client;
}

static void log_end(struct request *r, bool sent, uint64_t nanoseconds) {
  const bool probe = r->door->kind == DOOR_ADMIN;
  const struct exchange *x = r->has_exchange ? &r->exchange : NULL;
  if (!log_wants_request(r->server->log, probe, r->code, sent, nanoseconds)) return;
  /* The reason of an error, or of a response that is cut off. */
  const char *error = r->verdict ? reply_slug(r->verdict)
                      : sent     ? NULL
                      : connection_phase(&r->connection) == CONNECTION_SLOW_READER ? "slow-reader"
                                                                                   : "cut-off";
  /* The model that the body names, or the path. */
  const char *model = x && x->model ? x->model->name : route_exists(r->route) ? r->names.model : "";
  struct log_request line = {.id = r->id,
                             .listener = door_name(r->door),
                             .client = client_address(r),
                             .method = r->method_word,
                             .route = route_template(r->route),
                             .path = route_path(r->url),
                             .model = model,
                             .agent = r->header.agent,
                             .traceparent = r->header.traceparent,
                             .error = error,
                             .code = r->code,
                             .bytes_in = r->body_bytes,
                             .bytes_out = r->method == METHOD_HEAD ? 0 : r->answer_bytes,
                             .nanoseconds = nanoseconds,
                             .tokens = x ? x->tokens : 0,
                             .generated = x ? exchange_generated(x) : 0,
                             .first_token = x ? x->first_ns : 0,
                             .timeline = &r->timeline};
  log_request(r->server->log, &line);
}

void request_end(struct request *r, bool sent) {
  struct metrics *m = r->server->metrics;
  const size_t shard = request_shard(r);
  if (r->streams) request_count_tokens(r);
  /* The pool may still have the request: a stream's connection is not suspended all the time, and
   * its client may leave before its news are read. */
  if ((r->state == REQUEST_IN_POOL || r->state == REQUEST_STREAMED) &&
      atomic_load(&r->handoff) != HANDOFF_DONE) {
    r->left = true;
    exchange_cancel(&r->exchange);
    r->has_exchange = false; /* the exchange ends when the pool returns it */
  }
  const uint64_t now = clock_now(), nanoseconds = now - r->started;
  if (!r->code) r->code = code_unanswered(r);
  request_set_stages(r);
  if (r->answered) {
    timeline_write(&r->timeline, now - r->answered);
    r->io->answers--;
  }
  /* The time of sending, or that the client has left, unless the server ended the connection. */
  const struct timeline *t = &r->timeline;
  if (sent && t->reached[STAGE_ENCODE] && t->reached[STAGE_WRITE])
    metrics_time(m, shard, METRICS_STAGE_WRITE, t->ns[STAGE_WRITE]);
  else if (!sent && r->state >= REQUEST_STREAMED &&
           connection_phase(&r->connection) == CONNECTION_ANSWER)
    metrics_add(m, shard, ABORT_ANSWER, 1);
  metrics_request(m, shard, r->route, r->method, r->code, nanoseconds);
  log_end(r, sent, nanoseconds);
  request_end_exchange(r);
  lobby_leave(&r->io->lobby, &r->waiter);
  silence_end(&r->io->silence, &r->silent);
  r->error.status = STATUS_OK;
  r->streams = false;
  r->served++;
  r->state = REQUEST_NONE;
  connection_enter(&r->connection, CONNECTION_IDLE);
  if (r->connection.half_closed) io_watch_again(r->io, r->connection.fd, r);
}
