/* exchange: read, prepare, pool, write: the way of one request. */
#include "server/service/exchange.h"

#include <stddef.h>
#include <string.h>

#include "core/base/clock.h"
#include "server/model/answer/stack_answer.h"

void exchange_begin(struct exchange *x, struct service *s, struct models_hold *hold,
                    const struct model *m, const struct body_terms *terms) {
  const size_t makers = offsetof(struct exchange, service); /* the maker's members come first */
  memset((char *)x + makers, 0, sizeof *x - makers);
  x->service = s;
  x->hold = *hold;
  *hold = (struct models_hold){0};
  x->model = m;
  x->terms = *terms;
  if (terms->ask == ASK_HEADS && m && m->whole) {
    /* The importance of a model's heads is measured on the log probabilities of targets, or on the
     * outputs if there are no logits. */
    x->terms.ask = whole_has_output(m->whole) ? ASK_SCORE : ASK_ENCODE;
    x->terms.ablation = true;
  }
  arena_init(&x->arena, &s->budget);
  x->contract = exchange_contract(&x->terms);
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

/* Reports the time of tokens that are there since the last call; `chosen`: how many in all. */
static void count_tokens(struct exchange *x, size_t chosen, uint64_t now) {
  const bool first = x->counted == 0;
  const uint64_t took = now - (first ? x->begun : x->counted_at);
  if (first) x->first_ns = took;
  x->counted = chosen;
  x->counted_at = now;
  if (x->paced) x->paced(x, first, took);
}

/* The deadline of the next token, which is not after that of the request. */
static uint64_t next_deadline(const struct exchange *x, uint64_t now) {
  const uint64_t left = x->deadline > now ? x->deadline - now : 0;
  return x->pause_ns && x->pause_ns < left ? now + x->pause_ns : x->deadline;
}

/* Called after a round that another one follows, when that one is laid out. The last round ends in
 * end_job. */
static void end_round(struct stack_generation *g) {
  struct exchange *x =
      (struct exchange *)((char *)g - offsetof(struct exchange, request.stack.generation));
  if (g->chosen == x->counted) return;
  const uint64_t now = clock_now();
  count_tokens(x, g->chosen, now);
  x->job.deadline = next_deadline(x, now);
  if (x->stream && x->news) x->news(x);
}

/* A head was measured: called by a worker. */
static void end_head(struct stack_ablation *w) {
  struct exchange *x =
      (struct exchange *)((char *)w - offsetof(struct exchange, request.stack.ablation));
  x->job.deadline = next_deadline(x, clock_now());
  if (x->stream && x->news) x->news(x);
}

static void end_job(struct job *job) {
  struct exchange *x = exchange_of(job);
  const struct stack_request *r = &x->request.stack;
  x->error = job->error;
  if (x->terms.ask == ASK_GENERATE) {
    /* The tokens of the last round: of all sequences, or the steps of all beam searches, as rounds
     * count them. */
    size_t chosen = 0;
    if (x->run && !r->generation.search) chosen = stack_answer_generated(r);
    for (size_t text = 0; x->run && r->generation.search && text < r->texts; text++)
      chosen += r->generation.search[text].steps;
    if (chosen > x->counted) count_tokens(x, chosen, clock_now());
    sequences_end(&x->service->sequences, &x->sequences);
  }
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
  if (x->terms.ask != ASK_GENERATE && !x->terms.ablation) return;
  x->request.stack.generation.moved = end_round;
  x->request.stack.ablation.moved = end_head;
  x->job.deadline = next_deadline(x, x->begun);
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
  if (x->contract->finish(x) == STATUS_OK && x->terms.ask == ASK_GENERATE) {
    const struct stack_run *r = x->request.stack.main.run;
    const struct sequences_share share = {r->geometry.items, r->generation->kept_bytes};
    if (sequences_begin(&x->service->sequences, share, &x->error) == STATUS_OK)
      x->sequences = share;
  }
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

/* Whether `request` is a stack_request. */
static bool is_of_stacks(const struct exchange *x) {
  return x->terms.ask >= ASK_ENCODE && x->terms.ask <= ASK_GENERATE;
}

const struct tokenize_texts *exchange_texts(const struct exchange *x) {
  if (x->terms.ask == ASK_TOKENIZE) return &x->request.tokenize.texts;
  return is_of_stacks(x) ? x->request.stack.tokenized : NULL;
}

double exchange_expected(const struct exchange *x) {
  return x->job.cost / x->service->pace.second_work;
}

size_t exchange_chosen(const struct exchange *x) {
  if (x->terms.ask != ASK_GENERATE || !x->run) return 0;
  return stack_answer_generated(&x->request.stack);
}

bool exchange_has_begun(const struct exchange *x) {
  if (!x->stream) return false;
  return x->terms.ablation ? stack_ablation_stream_has_begun(&x->measured)
                           : stack_stream_has_begun(&x->streamed);
}

size_t exchange_stream(struct exchange *x, bool done, const char *problem, char *out, size_t room) {
  if (x->terms.ablation) return stack_ablation_stream_write(&x->measured, done, problem, out, room);
  return stack_stream_write(&x->streamed, done, problem, out, room);
}

/* Cancels both runs of a pair: the one that is next may change at this moment. */
void exchange_cancel(struct exchange *x) {
  if (!x->run) return;
  atomic_store(&x->run->cancelled, true);
  if (is_of_stacks(x)) atomic_store(&x->request.stack.main.run->run.cancelled, true);
}

void exchange_end(struct exchange *x) {
  sequences_end(&x->service->sequences, &x->sequences);
  if (x->terms.ask == ASK_GENERATE) stack_answer_leave(&x->request.stack);
  arena_free(&x->arena);
  models_release(&x->hold);
  x->fields = NULL;
  x->body = NULL;
}
