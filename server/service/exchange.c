/* exchange: read, prepare, pool, write: the way of one request. */
#include "server/service/exchange.h"

#include <stddef.h>
#include <string.h>

#include "core/run/clock.h"
#include "server/attention/attention_answer.h"

void exchange_begin(struct exchange *x, struct service *s, struct models_hold *hold,
                    const struct model *m, const struct body_terms *terms) {
  x->service = s;
  x->hold = *hold;
  *hold = (struct models_hold){0};
  x->model = m;
  x->terms = *terms;
  x->body_ns = 0;
  x->body_bytes = 0;
  memset(&x->error, 0, sizeof x->error);
  memset(&x->request, 0, sizeof x->request);
  memset(&x->answer, 0, sizeof x->answer);
  memset(&x->job, 0, sizeof x->job);
  arena_init(&x->arena, &s->budget);
  x->body = attention_body_new(m, terms, &s->limits, &x->arena, &x->error);
}

void exchange_feed(struct exchange *x, const char *text, size_t length) {
  uint64_t limit = x->service->config->max_body_bytes;
  bool fits = length <= limit && x->body_bytes <= limit - length;
  x->body_bytes += length;
  if (x->error.status) return;
  if (!fits) {
    error_limit(&x->error, "max_body_bytes", "the body is larger than %llu bytes",
                (unsigned long long)limit);
    return;
  }
  uint64_t start = clock_now();
  attention_body_feed(x->body, text, length);
  x->body_ns += clock_now() - start;
}

static struct exchange *exchange_of(struct job *job) {
  return (struct exchange *)((char *)job - offsetof(struct exchange, job));
}

static void write_piece(struct job *job, size_t piece) {
  answer_write_piece(&exchange_of(job)->answer, piece);
}

static bool has_reader_left(struct job *job) {
  struct exchange *x = exchange_of(job);
  return x->gone(x);
}

static void end_job(struct job *job) {
  struct exchange *x = exchange_of(job);
  x->error = job->error;
  x->done(x);
}

/* Only a request that was read says whether its answer has the form that is asked for. */
static enum status choose_form(struct exchange *x, enum answer_form *form) {
  *form = x->terms.form == BODY_V2 ? ANSWER_V2 : ANSWER_JSON;
  if (x->terms.wants_binary && attention_request_has_binary(&x->request))
    *form = ANSWER_SAFETENSORS;
  else if (x->terms.refuses_json)
    return error_set(&x->error, STATUS_NOT_ACCEPTABLE,
                     "the items of the batch differ in shape, and such an answer is JSON only: "
                     "accept application/json, or send items of one shape, with valid_lens, and "
                     "with as many segments each");
  return STATUS_OK;
}

bool exchange_finish(struct exchange *x) {
  if (x->error.status) return false;
  uint64_t start = clock_now();
  enum answer_form form;
  bool ready = !attention_body_finish(x->body, &x->request) && !choose_form(x, &form) &&
               !layer_prepare(x->model->layer, &x->request.asked, &x->arena, &x->error) &&
               !attention_answer_plan(&x->answer, form, x->model, &x->request, &x->service->limits,
                                      &x->arena, &x->error);
  x->body_ns += clock_now() - start;
  return ready;
}

void exchange_submit(struct exchange *x, uint64_t deadline) {
  must(!x->error.status);
  x->job.run = &x->request.asked.run;
  x->job.pieces = x->answer.pieces;
  x->job.write = write_piece;
  x->job.gone = x->gone ? has_reader_left : NULL;
  x->job.done = end_job;
  x->job.deadline = deadline;
  pool_submit(x->service->pool, &x->job);
}

void exchange_end(struct exchange *x) {
  arena_free(&x->arena);
  models_release(&x->hold);
  x->body = NULL;
}
