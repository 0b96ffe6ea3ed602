/* request_answer: what a request is answered with, queued. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/registry.h"
#include "server/endpoint_models.h"
#include "server/request_parts.h"

void request_count_reject(struct request *r, enum status status) {
  static const int reasons[STATUS_COUNT] = {
      [STATUS_OVERLOADED] = 1 + REJECT_OVERLOADED,
      [STATUS_DRAINING] = 1 + REJECT_DRAINING,
      [STATUS_DEADLINE] = 1 + REJECT_DEADLINE,
      [STATUS_OUT_OF_MEMORY] = 1 + REJECT_MEMORY,
      [STATUS_GONE] = 1 + REJECT_GONE,
  };
  if (reasons[status])
    metrics_reject(r->server->metrics, request_shard(r), (enum reject)(reasons[status] - 1));
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

bool request_answer_error(struct request *r, const struct error *e) {
  request_count_reject(r, e->status);
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
  return request_answer_error(r, &e);
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
    metrics_stage(r->server->metrics, request_shard(r), (enum stage)i, ns[i]);
    us[i] = (unsigned)(ns[i] / 1000);
  }
  snprintf(r->timing, sizeof r->timing,
           "decode;dur=%u.%03u, queue;dur=%u.%03u, compute;dur=%u.%03u, encode;dur=%u.%03u",
           us[0] / 1000, us[0] % 1000, us[1] / 1000, us[1] % 1000, us[2] / 1000, us[2] % 1000,
           us[3] / 1000, us[3] % 1000);
}

bool request_answer_exchange(struct request *r) {
  struct exchange *x = &r->exchange;
  if (x->error.status) return request_answer_error(r, &x->error);
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
void request_refuse_model(struct request *r, const struct registry *all) {
  char names[200] = "";
  size_t used = 0;
  for (size_t i = 0; i < registry_count(all) && used < sizeof names; i++)
    used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                             registry_at(all, i)->name);
  error_set(&r->error, STATUS_UNKNOWN_MODEL, "no model has this name; there are: %s", names);
}

static bool answer_model(struct request *r) {
  size_t length = 0;
  struct models_hold hold = models_hold(r->server->service.models, request_shard(r));
  const struct model *m = registry_find(hold.registry, r->model);
  if (!m) request_refuse_model(r, hold.registry);
  char *text = m ? endpoint_model_text(m, &length) : NULL;
  models_release(&hold);
  return r->error.status ? request_answer_error(r, &r->error)
                         : answer_text(r, "application/json", text, length);
}

static bool answer_models(struct request *r) {
  size_t length = 0;
  struct models_hold hold = models_hold(r->server->service.models, request_shard(r));
  char *text = endpoint_models_text(hold.registry, &length);
  models_release(&hold);
  return answer_text(r, "application/json", text, length);
}

bool request_answer_route(struct request *r) {
  switch (r->route) {
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
  case ROUTE_ATTENTION:
  case ROUTE_MODEL_ATTENTION:
  case ROUTE_MODEL_HEADS:
  case ROUTE_NONE:
  case ROUTE_COUNT:
    break;
  }
  must(!"a route that answers without work");
  return false;
}
