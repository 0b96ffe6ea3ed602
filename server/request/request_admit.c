/* request_admit: the checks of a request before its body, and its place in the queue. */
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>

#include "config/build/whole.h"
#include "config/model/registry.h"
#include "core/base/size.h"
#include "server/http/bearer.h"
#include "server/request/request_parts.h"
#include "server/route/find_model.h"

enum {
  /* A smaller body may be a tiny request, which takes no place in the queue; and reading it costs
   * no more than rejecting it. */
  QUEUE_BODY = 16 * 1024,
  LOBBY_MS = 500, /* the wait for a place in the queue, while the body is unread */
};

/* The form that Accept asks for. Generated texts and the importance of heads are a stream or JSON:
 * only the body says which. */
static enum header_wish find_wish(const struct request *r, bool binary) {
  const enum header_wish wish = header_wish(&r->header, binary);
  const bool other = wish == WISH_NEITHER || wish == WISH_BINARY_ALONE;
  if (other && route_row(r->route)->streams && header_takes_events(&r->header)) return WISH_JSON;
  return wish;
}

/* Finds the forms of a request's body and response, by its header, or sets r->error. */
static void read_forms(struct request *r, struct body_terms *terms) {
  struct error *e = &r->error;
  if (route_is_v2(r->route)) {
    /* Clients of the Open Inference Protocol send any Content-Type and Accept, or none: the body
     * itself names the forms. */
    if (r->header.bad_json_bytes)
      error_set(e, STATUS_INVALID_REQUEST, "Inference-Header-Content-Length is not an integer");
    terms->form = BODY_V2;
    terms->json_bytes = r->header.json_bytes;
    return;
  }
  terms->ask = route_row(r->route)->ask;
  terms->dialect = route_row(r->route)->dialect;
  if (terms->dialect) {
    const enum header_wish wish = find_wish(r, false);
    if (r->header.content != MEDIA_JSON && r->header.content != MEDIA_NONE)
      error_set(e, STATUS_UNSUPPORTED_MEDIA_TYPE,
                "unsupported Content-Type: this path supports application/json only");
    else if (wish == WISH_NEITHER || wish == WISH_BINARY_ALONE)
      error_set(e, STATUS_NOT_ACCEPTABLE,
                "Accept excludes application/json, the only format of this response");
    terms->form = BODY_JSON;
    return;
  }
  const bool heads = terms->ask == ASK_HEADS;
  const enum header_media content = r->header.content;
  const bool binary = content == MEDIA_SAFETENSORS || content == MEDIA_OCTETS;
  const enum header_wish wish = find_wish(r, binary);
  if (content == MEDIA_OTHER)
    error_set(e, STATUS_UNSUPPORTED_MEDIA_TYPE,
              "unsupported Content-Type: send application/json, application/x-safetensors or "
              "application/octet-stream");
  else if (wish == WISH_NEITHER)
    error_set(e, STATUS_NOT_ACCEPTABLE,
              "Accept excludes both application/json and application/x-safetensors");
  else if (wish == WISH_BINARY_ALONE && heads)
    error_set(e, STATUS_NOT_ACCEPTABLE,
              "Accept excludes application/json, the only format of head measures");
  terms->form = binary ? BODY_SAFETENSORS : BODY_JSON;
  terms->wants_binary = !heads && wish != WISH_JSON;
  terms->refuses_json = wish == WISH_BINARY_ALONE;
}

const struct model *request_find_model(struct request *r, const struct registry *all) {
  const char *name = route_has_model(r->route) ? r->names.model : NULL;
  return find_model(r->route, name, all, &r->error);
}

/* The model that the request asks, or the attention of it that the path names. NULL with r->error
 * set, which may also be set with a model. */
static const struct model *find_asked(struct request *r, const struct registry *all) {
  const struct model *m = request_find_model(r, all);
  if (!m) return NULL;
  memcpy(r->names.model, m->name, strlen(m->name) + 1);
  /* Heads of a single layer have no stream, which only the model says. */
  if (route_row(r->route)->streams && !m->whole &&
      header_wish(&r->header, r->header.content != MEDIA_JSON) == WISH_NEITHER)
    error_set(&r->error, STATUS_NOT_ACCEPTABLE,
              "Accept excludes application/json, the only format of head measures");
  if (!route_has_layer(r->route)) return m;
  const struct whole_part *part = whole_find_part(m->whole, r->names.layer);
  if (part) {
    r->part = part->model;
    r->part.name = r->names.model; /* the requested name, which may be an alias */
    return &r->part;
  }
  char names[300] = ""; /* as many as fit */
  size_t used = 0;
  for (size_t i = 0; i < m->whole->parts && used < sizeof names; i++)
    used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                             m->whole->part[i].name);
  error_set(&r->error, STATUS_NOT_FOUND, "the model %s has no attention%s%s", m->name,
            *names ? " of this name. Available: " : "", names);
  return NULL;
}

bool request_has_place(struct request *r) {
  struct lobby *lobby = &r->io->lobby;
  const bool waited = r->state == REQUEST_IN_LOBBY;
  if (r->header.body_bytes <= QUEUE_BODY) return true;
  if (waited ? pool_room(lobby->pool) > 0 : !lobby_is_needed(lobby)) return true;
  if (waited) {
    error_set(&r->error, STATUS_QUEUE_FULL, "the queue is full");
    return false;
  }
  r->state = REQUEST_IN_LOBBY;
  connection_enter(&r->connection, CONNECTION_LOBBY);
  const uint64_t asked = r->header.timeout_ms;
  lobby_join(lobby, &r->waiter, r->started, asked ? size_min(asked, LOBBY_MS) : LOBBY_MS);
  MHD_suspend_connection(r->mhd);
  return false;
}

void request_admit_computed(struct request *r) {
  struct server *s = r->server;
  struct error *e = &r->error;
  struct body_terms terms = {
      .body_bytes = r->header.chunked ? BODY_UNKNOWN : r->header.body_bytes,
      .json_bytes = BODY_UNKNOWN,
  };
  /* A draining door serves each connection's first request, and those that waited in the lobby. */
  const bool late = r->served && r->state != REQUEST_IN_LOBBY;
  if (late && atomic_load_explicit(&r->door->draining, memory_order_relaxed))
    error_set(e, STATUS_DRAINING, "the server is stopping");
  else if (r->header.coded)
    error_set(e, STATUS_UNSUPPORTED_MEDIA_TYPE,
              "compressed bodies are not supported: remove Content-Encoding");
  else
    read_forms(r, &terms);
  if (e->status) return;
  struct models_hold hold = models_hold(s->service.models, request_shard(r));
  const struct model *m = terms.dialect ? NULL : find_asked(r, hold.registry);
  if (e->status || !request_has_place(r)) {
    models_release(&hold);
    return;
  }
  if (terms.form == BODY_V2 && m->whole) terms.ask = ASK_ENCODE;
  exchange_begin(&r->exchange, &s->service, &hold, m, &terms);
  r->has_exchange = true;
  *e = r->exchange.error;
}

/* Sets the error for a path that does not exist. */
static enum status refuse_path(struct request *r) {
  if (r->door->kind == DOOR_ADMIN) {
    char list[ROUTE_LIST_SIZE];
    route_list_admin(list, sizeof list);
    return error_set(&r->error, STATUS_NOT_FOUND, "unknown path: the admin address has %s", list);
  }
  if (r->names.elsewhere)
    return error_set(&r->error, STATUS_NOT_FOUND, "%s", r->names.elsewhere->instead);
  if (*r->names.model) { /* if there is such a model, the error lists its paths */
    struct models_hold hold = models_hold(r->server->service.models, request_shard(r));
    const struct model *m = registry_find(hold.registry, r->names.model);
    if (m) find_model_refuse(r->route, m, &r->error);
    models_release(&hold);
    if (m) return r->error.status;
  }
  if (r->names.errors == ERROR_TEI)
    return error_set(&r->error, STATUS_NOT_FOUND,
                     "the paths of text-embeddings-inference are disabled: enable the setting "
                     "text_embeddings_inference");
  return error_set(&r->error, STATUS_NOT_FOUND, "%s", route_row(r->route)->unknown);
}

/* Sets the error for a wrong method. For a POST to a model's own path it lists the paths below. */
static enum status refuse_method(struct request *r) {
  char list[ROUTE_LIST_SIZE] = "";
  struct models_hold hold = models_hold(r->server->service.models, request_shard(r));
  const struct model *m =
      route_row(r->route)->lists_paths ? registry_find(hold.registry, r->names.model) : NULL;
  if (m) route_list(m, list, sizeof list);
  models_release(&hold);
  return error_set(&r->error, STATUS_METHOD_NOT_ALLOWED, "this path supports %s%s%s",
                   route_allow(r->route), m ? "; for the model, use POST " : "", list);
}

/* Checks the API key first, so that clients without one learn nothing else. */
static enum status check_api_key(struct request *r) {
  const struct config *c = r->server->config;
  if (!*c->api_key_file || r->door->kind == DOOR_ADMIN) return STATUS_OK;
  if (!bearer_is_needed(r->route, c)) return STATUS_OK;
  struct models_hold hold = models_hold(r->server->service.models, request_shard(r));
  bearer_check(&r->header, hold.api_keys, &r->error);
  models_release(&hold);
  return r->error.status;
}

void request_admit(struct request *r, const char *version) {
  struct error *e = &r->error;
  const struct config *c = r->server->config;
  *e = r->header.error;
  if (r->header.chunked && strcmp(version, "HTTP/1.0") == 0)
    error_set(e, STATUS_BAD_FRAMING, "Transfer-Encoding in a message of HTTP/1.0");
  if (e->status || r->preflight || check_api_key(r)) return;
  if (!route_exists(r->route) && !r->asks_server)
    refuse_path(r);
  else if (!route_allows(r->route, r->method) && !r->asks_server)
    refuse_method(r);
  else if (r->header.body_bytes > c->max_body_bytes)
    error_limit(e, "max_body_bytes", "the body exceeds the limit of %llu bytes",
                (unsigned long long)c->max_body_bytes);
  else if (route_is_computed(r->route))
    request_admit_computed(r);
}
