/* exchange: read, prepare, pool, write: the way of one request. */
#include "server/service/exchange.h"

#include <stddef.h>
#include <string.h>

#include "core/base/clock.h"

void exchange_begin(struct exchange *x, struct service *s, struct models_hold *hold,
                    const struct model *m, const struct body_terms *terms) {
  const size_t makers = offsetof(struct exchange, service); /* the maker's members come first */
  memset((char *)x + makers, 0, sizeof *x - makers);
  x->service = s;
  x->hold = *hold;
  *hold = (struct models_hold){0};
  x->model = m;
  x->terms = *terms;
  exchange_choose(x);
  arena_init(&x->arena, &s->budget);
  x->contract->begin(x);
}

void exchange_feed(struct exchange *x, const char *text, size_t length) {
  uint64_t limit = x->service->config->max_body_bytes;
  bool fits = length <= limit && x->body_bytes <= limit - length;
  x->body_bytes += length;
  if (x->error.status) return;
  if (!fits) {
    error_limit(&x->error, "max_body_bytes", "the body exceeds the limit of %llu bytes",
                (unsigned long long)limit);
    return;
  }
  uint64_t start = clock_now();
  body_feed(x->body, text, length);
  x->body_ns += clock_now() - start;
}

/* --- the job: the work of the request --- */

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
  if (x->work->end_rounds) x->work->end_rounds(x);
  x->done(x);
}

/* Prepares the job for the run of the request. */
static void plan_job(struct exchange *x) {
  const uint64_t timeout_us = x->timeout_us;
  if (timeout_us && timeout_us < (x->deadline - x->begun) / 1000)
    x->deadline = x->begun + timeout_us * 1000;
  x->job.run = x->run;
  x->job.pieces = x->answer.pieces;
  x->job.write = write_piece;
  x->job.gone = x->gone ? has_reader_left : NULL;
  x->job.done = end_job;
  x->job.client = x->client;
  x->job.deadline = x->deadline;
  if (x->work->begin_rounds) x->work->begin_rounds(x);
}

/* --- the check of the body ---
 *
 * One that takes long is the first run of the job: a program of one step, which has one unit. */

/* The longest check of a submitting thread, which may serve fifty clients in one turn. */
enum { AT_ONCE_NS = 200 * 1000 };

static const double check_work = 32; /* operations of a worker in a nanosecond, about */

/* Makes the request of the body, and a plan of its response. */
static void check_body(struct exchange *x) {
  const uint64_t start = clock_now();
  if (x->contract->finish(x) == STATUS_OK && x->work->reserve) x->work->reserve(x);
  x->body_ns += clock_now() - start;
}

static bool next_check(const struct step *s, struct cursor *at, struct unit *u) {
  (void)s, (void)u;
  return at->row++ == 0;
}

static double work_of_check(const struct step *s, const struct unit *u) {
  (void)s;
  return u->run->work;
}

static void compute_checks(const struct step *s, const struct span *span, void *scratch) {
  struct span left = *span;
  struct unit u;
  (void)s, (void)scratch;
  while (run_next_unit(&left, &u))
    check_body((struct exchange *)((char *)u.run - offsetof(struct exchange, check)));
}

static const struct step check_step = {.unit = next_check,
                                       .work = work_of_check,
                                       .compute = compute_checks};
static const struct step *const check_steps[] = {&check_step};
static const struct program check_program = {.step = check_steps, .steps = 1, .aside = true};

static void end_check(struct job *job) {
  struct exchange *x = exchange_of(job);
  if (job->error.status) {
    x->error = job->error;
    x->done(x);
    return;
  }
  x->waited_ns = job->started - job->submitted;
  if (x->error.status) {
    memset(job, 0, sizeof *job); /* nothing was computed */
    x->done(x);
    return;
  }
  plan_job(x);
  pool_submit_next(x->service->pool, job);
}

/* Whether the check of a body has to stop: an error, or STATUS_OK. */
static enum status ask_reader(struct patience *p) {
  struct exchange *x = (struct exchange *)((char *)p - offsetof(struct exchange, patience));
  if (p->asked >= x->deadline) return STATUS_DEADLINE;
  if (pool_is_closed(x->service->pool)) return STATUS_DRAINING;
  return x->gone && x->gone(x) ? STATUS_GONE : STATUS_OK;
}

/* --- a body that has ended --- */

bool exchange_finish(struct exchange *x, uint64_t deadline) {
  if (x->error.status) return false;
  x->deadline = deadline ? deadline : UINT64_MAX;
  x->checked = x->alone || body_cost(x->body) <= AT_ONCE_NS;
  x->patience = (struct patience){.ask = ask_reader};
  x->body->reading.patience = &x->patience;
  if (x->checked) check_body(x);
  return !x->error.status;
}

void exchange_submit(struct exchange *x, uint64_t deadline) {
  must(!x->error.status);
  x->begun = clock_now();
  x->deadline = deadline ? deadline : UINT64_MAX;
  if (x->checked) {
    plan_job(x);
  } else {
    x->check =
        (struct run){.program = &check_program, .work = check_work * (double)body_cost(x->body)};
    x->job.run = &x->check;
    x->job.pieces = 0;
    x->job.gone = x->gone ? has_reader_left : NULL;
    x->job.done = end_check;
    x->job.client = x->client;
    x->job.deadline = x->deadline;
  }
  pool_submit(x->service->pool, &x->job);
}

/* --- results --- */

const struct tokenize_texts *exchange_texts(const struct exchange *x) {
  return x->work->texts ? x->work->texts(x) : NULL;
}

double exchange_expected(const struct exchange *x) {
  return x->job.cost / x->service->pace.second_work;
}

size_t exchange_generated(const struct exchange *x) {
  return x->work->generated && x->run ? x->work->generated(x) : 0;
}

bool exchange_has_rounds(const struct exchange *x) { return x->work->begin_rounds != NULL; }

bool exchange_has_begun(const struct exchange *x) { return x->stream && x->work->has_begun(x); }

size_t exchange_stream(struct exchange *x, bool done, const char *problem, char *out, size_t room) {
  return x->work->stream(x, done, problem, out, room);
}

void exchange_cancel(struct exchange *x) {
  if (!x->run) return;
  atomic_store(&x->run->cancelled, true);
  if (x->work->cancel) x->work->cancel(x);
}

void exchange_end(struct exchange *x) {
  if (x->work->end) x->work->end(x);
  if (x->contract->end && x->fields) x->contract->end(x);
  arena_free(&x->arena);
  models_release(&x->hold);
  x->fields = NULL;
  x->body = NULL;
}
