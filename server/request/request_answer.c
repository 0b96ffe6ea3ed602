/* request_answer: the response to each kind of request, given to libmicrohttpd. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/model/registry.h"
#include "core/base/clock.h"
#include "server/describe/description.h"
#include "server/http/bearer.h"
#include "server/request/request_parts.h"
#include "server/route/problems.h"
#include "server/watch/metrics_text.h"

#define JSON_TYPE "application/json"

/* The code and common header fields of a response that is about to be queued. `type` is NULL if the
 * response has no body. */
static struct reply begin_reply(struct request *r, unsigned code, const char *type) {
  r->state = REQUEST_ANSWERED;
  r->code = code;
  r->answered = clock_now();
  r->io->answers++;
  struct reply reply = {.to = r->mhd, .code = code, .errors = r->connection.errors};
  reply_add(&reply, "X-Request-Id", r->id);
  /* A browser decides by these whether a page may read the response. */
  if (r->server->cors) reply_add(&reply, "Vary", "Origin");
  if (r->connection.origin) {
    reply_add(&reply, "Access-Control-Allow-Origin", r->connection.origin);
    reply_add_all(&reply, cors_every);
  }
  if (type) reply_add(&reply, "Content-Type", type);
  if (r->connection.discard || atomic_load_explicit(&r->server->stopping, memory_order_relaxed))
    reply_add(&reply, "Connection", "close");
  return reply;
}

/* False: the reaper has ended the connection. */
static bool enter_answer_phase(struct request *r) {
  return !connection_is_ended(connection_enter(&r->connection, CONNECTION_ANSWER));
}

bool request_answer_error(struct request *r, const struct error *e) {
  /* "Not ready" is the expected response of a probe of readiness, not a rejection. */
  if (!route_row(r->route)->readiness) request_count_reject(r, e->status);
  r->state = REQUEST_ANSWERED;
  if (e->status == STATUS_GONE) {
    r->verdict = STATUS_GONE;
    r->code = reply_code(STATUS_GONE);
    return false;
  }
  if (!enter_answer_phase(r)) return false;
  r->verdict = e->status;
  struct reply reply = begin_reply(r, reply_code(e->status), NULL);
  if (e->status == STATUS_METHOD_NOT_ALLOWED) reply_add(&reply, "Allow", route_allow(r->route));
  if (e->status == STATUS_UNAUTHORIZED)
    reply_add(&reply, "WWW-Authenticate", bearer_challenge(&r->header));
  return reply_error(&reply, e, r->problem, &r->answer_bytes);
}

bool request_answer_preflight(struct request *r) {
  if (!enter_answer_phase(r)) return false;
  struct reply reply = begin_reply(r, 204, NULL);
  reply_add(&reply, "Allow", route_allow(r->route));
  reply_add(&reply, "Access-Control-Allow-Methods", route_allow(r->route));
  reply_add_all(&reply, cors_preflight);
  return reply_bytes(&reply, "", 0);
}

bool request_answer_server(struct request *r) {
  if (!enter_answer_phase(r)) return false;
  const bool admin = r->door->kind == DOOR_ADMIN;
  struct reply reply = begin_reply(r, 204, NULL);
  reply_add(&reply, "Allow", admin ? "GET, HEAD, OPTIONS" : "GET, HEAD, OPTIONS, POST");
  return reply_bytes(&reply, "", 0);
}

static bool answer_status(struct request *r, enum status status, const char *detail) {
  struct error e = {0};
  error_set(&e, status, "%s", detail);
  return request_answer_error(r, &e);
}

/* Sends a text made with malloc, and frees it in any case; NULL was a failed malloc. */
static bool answer_text(struct request *r, const char *type, char *text, size_t length) {
  if (!text) return answer_status(r, STATUS_OUT_OF_MEMORY, "no memory for the answer");
  if (!enter_answer_phase(r)) {
    free(text);
    return false;
  }
  r->answer_bytes = length;
  struct reply reply = begin_reply(r, 200, type);
  return reply_and_free(&reply, text, length);
}

/* Adds the durations of the stages so far to the metrics, and writes them for Server-Timing. */
static void report_stages(struct request *r) {
  unsigned us[STAGE_WRITE];
  request_set_stages(r);
  for (unsigned i = 0; i < STAGE_WRITE; i++) {
    metrics_time(r->server->metrics, request_shard(r), METRICS_STAGE + i, r->timeline.ns[i]);
    us[i] = (unsigned)(r->timeline.ns[i] / 1000);
  }
  const double expected = exchange_expected(&r->exchange);
  if (expected > 0)
    metrics_time(r->server->metrics, request_shard(r),
                 expected < 0.1 ? WAIT_SHORT
                 : expected < 1 ? WAIT_MEDIUM
                                : WAIT_LONG,
                 r->timeline.ns[STAGE_QUEUE]);
  snprintf(r->timing, sizeof r->timing,
           "decode;dur=%u.%03u, queue;dur=%u.%03u, compute;dur=%u.%03u, encode;dur=%u.%03u",
           us[0] / 1000, us[0] % 1000, us[1] / 1000, us[1] % 1000, us[2] / 1000, us[2] % 1000,
           us[3] / 1000, us[3] % 1000);
}

bool request_answer_stream(struct request *r) {
  if (!enter_answer_phase(r)) return false;
  struct reply reply = begin_reply(r, 200, "text/event-stream");
  reply_add(&reply, "Cache-Control", "no-cache");
  reply_add(&reply, "X-Accel-Buffering", "no"); /* nginx would buffer the events */
  r->streams = true;
  if (atomic_load(&r->handoff) != HANDOFF_DONE) r->state = REQUEST_STREAMED;
  return reply_stream(&reply, request_read_stream, r);
}

bool request_answer_exchange(struct request *r) {
  const struct exchange *x = &r->exchange;
  const struct answer *a = &x->answer;
  if (x->error.status) return request_answer_error(r, &x->error);
  if (x->stream) return request_answer_stream(r);
  report_stages(r);
  if (!enter_answer_phase(r)) return false;
  request_count_tokens(r);
  r->answer_bytes = answer_bytes(a);
  const enum header_media type = a->form == ANSWER_SAFETENSORS ? header_binary_type(&r->header)
                                 : a->json_bytes               ? MEDIA_OCTETS
                                                               : MEDIA_JSON;
  struct reply reply = begin_reply(r, 200, header_media_type(type));
  char json_bytes[32];
  reply_add(&reply, "Server-Timing", r->timing);
  if (a->json_bytes) {
    snprintf(json_bytes, sizeof json_bytes, "%zu", a->json_bytes);
    reply_add(&reply, "Inference-Header-Content-Length", json_bytes);
  }
  return reply_pieces(&reply, a->piece, a->pieces);
}

/* --- routes that are not computed --- */

/* A browser that has the same form of the page already gets a 304, for which libmicrohttpd sends
 * the length of the page without the page. */
static bool answer_page(struct request *r) {
  if (!enter_answer_phase(r)) return false;
  const struct header *h = &r->header;
  const enum page_coding coding = header_takes_gzip(h) ? PAGE_GZIP : PAGE_PLAIN;
  const struct page_form *page = &r->server->page.form[coding];
  const bool known = h->known >> coding & 1;
  struct reply reply = begin_reply(r, known ? 304 : 200, known ? NULL : PAGE_TYPE);
  reply_add_all(&reply, page->fields);
  if (!known && page->coding) reply_add(&reply, "Content-Encoding", page->coding);
  r->answer_bytes = known ? 0 : page->size;
  return reply_bytes(&reply, page->bytes, page->size);
}

static bool answer_metrics(struct request *r) {
  struct server *s = r->server;
  struct metrics_listener listener[DOOR_COUNT];
  struct metrics_now now = {.listener = listener,
                            .loaded = atomic_load(&s->loaded),
                            .io_threads = s->door[DOOR_MAIN].io_threads,
                            .longest_turn_ns = atomic_load(&s->longest_turn),
                            .log_dropped = log_dropped(s->log),
                            .log_suppressed = log_suppressed(s->log)};
  for (size_t i = 0; i < DOOR_COUNT; i++) {
    const struct door *d = &s->door[i];
    if (!d->connections) continue;
    listener[now.listeners++] =
        (struct metrics_listener){.name = door_name(d),
                                  .open = connections_count(d->connections),
                                  .limit = d->max_connections,
                                  .opened = connections_opened(d->connections)};
  }
  size_t length = 0;
  char *text = metrics_text(s->metrics, &s->service, &now, &length);
  return answer_text(r, "text/plain; version=0.0.4; charset=utf-8", text, length);
}

static bool answer_problems(struct request *r) {
  size_t length = 0;
  char *text = problems_list(&length);
  return answer_text(r, PROBLEMS_TYPE, text, length);
}

static bool answer_problem(struct request *r) {
  size_t length = 0;
  bool found;
  char *text = problems_page(r->names.slug, &length, &found);
  if (found) return answer_text(r, PROBLEMS_TYPE, text, length);
  return answer_status(r, STATUS_NOT_FOUND,
                       "no error type has this name: GET /problems lists all of them");
}

static bool answer_tei(struct request *r) {
  struct server *s = r->server;
  size_t length = 0;
  bool found;
  struct models_hold hold = models_hold(s->service.models, request_shard(r));
  char *text = description_tei(hold.registry, s->config, s->service.workers, &length, &found);
  models_release(&hold);
  if (!found) return answer_status(r, STATUS_UNKNOWN_MODEL, "no loaded model takes texts");
  return answer_text(r, JSON_TYPE, text, length);
}

static bool answer_v2(struct request *r) {
  size_t length = 0;
  char *text = description_v2_server(&length);
  return answer_text(r, JSON_TYPE, text, length);
}

/* Sends a text that outlives the request. */
static bool answer_static(struct request *r, const char *text, size_t length) {
  if (!enter_answer_phase(r)) return false;
  r->answer_bytes = length;
  struct reply reply = begin_reply(r, 200, JSON_TYPE);
  return reply_bytes(&reply, text, length);
}

static bool answer_openapi(struct request *r) {
  size_t length;
  const char *text = openapi_text(&r->server->openapi, &length);
  return text ? answer_static(r, text, length) : answer_text(r, JSON_TYPE, NULL, 0);
}

/* The response to each route that is not computed: one of these. */
static const struct {
  const char *text;                                               /* JSON that never changes */
  char *(*of_model)(const struct model *m, size_t *length);       /* JSON about the path's model */
  char *(*of_models)(const struct registry *all, size_t *length); /* JSON about all models */
  bool (*answer)(struct request *r);
} answers[ROUTE_COUNT] = {
    [ROUTE_TEI_INFO] = {.answer = answer_tei},
    [ROUTE_MODELS] = {.of_models = description_models},
    [ROUTE_MODEL] = {.of_model = description_model},
    [ROUTE_HEALTH] = {.text = "{\"status\":\"ok\"}\n"},
    [ROUTE_READY] = {.text = "{\"status\":\"ready\"}\n"},
    [ROUTE_METRICS] = {.answer = answer_metrics},
    [ROUTE_OPENAPI] = {.answer = answer_openapi},
    [ROUTE_PROBLEMS] = {.answer = answer_problems},
    [ROUTE_PROBLEM] = {.answer = answer_problem},
    [ROUTE_PAGE] = {.answer = answer_page},
    [ROUTE_V2] = {.answer = answer_v2},
    [ROUTE_V2_LIVE] = {.text = "{\"live\":true}\n"},
    [ROUTE_V2_READY] = {.text = "{\"live\":true,\"ready\":true}\n"},
    [ROUTE_V2_MODELS] = {.of_models = description_v2_models},
    [ROUTE_V2_MODEL] = {.of_model = description_v2_model},
    [ROUTE_V2_MODEL_READY] = {.of_model = description_v2_ready},
};

/* Sends the JSON about the models, or about the model in the path. */
static bool answer_description(struct request *r) {
  size_t length = 0;
  char *text = NULL;
  struct models_hold hold = models_hold(r->server->service.models, request_shard(r));
  if (answers[r->route].of_models) {
    text = answers[r->route].of_models(hold.registry, &length);
  } else {
    const struct model *m = request_find_model(r, hold.registry);
    must(answers[r->route].of_model);
    if (m) text = answers[r->route].of_model(m, &length);
  }
  models_release(&hold);
  return r->error.status ? request_answer_error(r, &r->error)
                         : answer_text(r, JSON_TYPE, text, length);
}

/* Sends the error of a probe of readiness while the models are loaded for the first time. */
static bool answer_loading(struct request *r) {
  struct progress *p = &r->server->service.progress;
  const size_t models = atomic_load(&p->models); /* 0: they are being counted */
  struct error e = {0};
  if (models == 0) return answer_status(r, STATUS_NOT_READY, "the models are being loaded");
  error_set(&e, STATUS_NOT_READY, "%zu of %zu models are loaded", atomic_load(&p->loaded), models);
  return request_answer_error(r, &e);
}

bool request_answer_route(struct request *r) {
  if (route_row(r->route)->readiness && atomic_load(&r->server->stopping))
    return answer_status(r, STATUS_DRAINING, "the server is stopping");
  if (route_row(r->route)->readiness && !atomic_load(&r->server->loaded)) return answer_loading(r);
  if (answers[r->route].answer) return answers[r->route].answer(r);
  const char *text = answers[r->route].text;
  return text ? answer_static(r, text, strlen(text)) : answer_description(r);
}
