/* request_log: what the access log is told of a request. */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <stdio.h>

#include "server/http/request_parts.h"

_Static_assert(REQUEST_CLIENT_SIZE >= INET6_ADDRSTRLEN, "room for an address");

/* The address of the client as text, which is made once for a connection. */
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

/* Why the client has no answer but this, or not all of it; NULL: it has. */
static const char *error_of(struct request *r, bool sent) {
  if (r->verdict) return reply_slug(r->verdict);
  if (sent) return NULL;
  return connection_phase(&r->connection) == CONNECTION_SLOW_READER ? "slow-reader" : "cut-off";
}

void request_log(struct request *r, bool sent, uint64_t nanoseconds) {
  const bool probe = r->door->kind == DOOR_ADMIN;
  if (!log_wants_request(r->server->log, probe, r->code, sent, nanoseconds)) return;
  struct log_request line = {.id = r->id,
                             .listener = door_name(r->door),
                             .client = client_address(r),
                             .method = r->word,
                             .route = route_template(r->route),
                             .path = route_path(r->url),
                             .model = r->model,
                             .agent = r->header.agent,
                             .trace = r->header.trace,
                             .error = error_of(r, sent),
                             .code = r->code,
                             .bytes_in = r->body_bytes,
                             .bytes_out = r->method == METHOD_HEAD ? 0 : r->answer_bytes,
                             .nanoseconds = nanoseconds,
                             .timeline = &r->timeline};
  log_request(r->server->log, &line);
}
