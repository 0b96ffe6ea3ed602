/* exchange: read, prepare, pool, write: the way of one request. */
#include "server/service/exchange.h"

#include <stddef.h>
#include <string.h>

#include "core/base/clock.h"
#include "server/model/answer/stack_answer.h"

/* What a whole model is asked for its heads: what they are worth to the log probabilities of
 * targets, or to the outputs where there are no such. */
static void settle_heads(struct body_terms *terms, const struct model *m) {
  if (terms->ask != ASK_HEADS || !m || !m->whole) return;
  terms->ask = whole_has_output(m->whole) ? ASK_SCORE : ASK_ENCODE;
  terms->ablation = true;
}

void exchange_begin(struct exchange *x, struct service *s, struct models_hold *hold,
                    const struct model *m, const struct body_terms *terms) {
  x->service = s;
  x->hold = *hold;
  *hold = (struct models_hold){0};
  x->model = m;
  x->terms = *terms;
  settle_heads(&x->terms, m);
  x->body_ns = 0;
  x->body_bytes = 0;
  memset(&x->error, 0, sizeof x->error);
  x->fields = NULL;
  x->body = NULL;
  x->run = NULL;
  x->timeout_us = 0;
  x->tokens = x->recalled = 0;
  x->stream = false;
  x->pause_ns = 0;
  x->client = 0;
  x->first_ns = 0;
  x->sequences = (struct sequences_share){0};
  memset(&x->request, 0, sizeof x->request);
  memset(&x->answer, 0, sizeof x->answer);
  memset(&x->job, 0, sizeof x->job);
  x->checked = false;
  x->begun = x->deadline = x->waited_ns = 0;
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

static struct exchange *exchange_of(struct job *job) {
  return (struct exchange *)((char *)job - offsetof(struct exchange, job));
}

static void write_piece(struct job *job, size_t piece) {
  answer_write_piece(&exchange_of(job)->answer, piece);
}

/* --- tokens that come one after the other --- */

static void begin_rounds(struct exchange *x) {
  const struct stack_run *r = x->request.stack.main.run;
  const struct sequences_share share = {r->geometry.items, r->generation->kept_bytes};
  if (sequences_begin(&x->service->sequences, share, &x->error) == STATUS_OK) x->sequences = share;
}

/* Tokens have come. */
static void note_tokens(struct exchange *x, size_t chosen, uint64_t now) {
  const bool first = x->told == 0;
  const uint64_t took = now - (first ? x->begun : x->told_at);
  if (first) x->first_ns = took;
  x->told = chosen;
  x->told_at = now;
  if (x->paced) x->paced(x, first, took);
}

/* The tokens of all sequences, or the steps of all searches, as the rounds count them. */
static size_t count_moves(const struct stack_request *r) {
  if (!r->generation.search) return stack_answer_generated(r);
  size_t steps = 0;
  for (size_t text = 0; text < r->texts; text++) steps += r->generation.search[text].steps;
  return steps;
}

/* Those of the last round are looked at when all is over. */
static void end_rounds(struct exchange *x) {
  const size_t chosen = x->run ? count_moves(&x->request.stack) : 0;
  if (chosen > x->told) note_tokens(x, chosen, clock_now());
  sequences_end(&x->service->sequences, &x->sequences);
}

static bool has_reader_left(struct job *job) {
  struct exchange *x = exchange_of(job);
  return x->gone(x);
}

static void end_job(struct job *job) {
  struct exchange *x = exchange_of(job);
  x->error = job->error;
  if (x->terms.ask == ASK_GENERATE) end_rounds(x);
  x->done(x);
}

/* Makes the request of the body, and a plan of its answer. */
static void check_body(struct exchange *x) {
  uint64_t start = clock_now();
  if (x->contract->finish(x) == STATUS_OK && x->terms.ask == ASK_GENERATE) begin_rounds(x);
  x->body_ns += clock_now() - start;
}

/* The deadline of the next token, but not behind that of all. */
static uint64_t next_deadline(const struct exchange *x, uint64_t now) {
  const uint64_t left = x->deadline > now ? x->deadline - now : 0;
  return x->pause_ns && x->pause_ns < left ? now + x->pause_ns : x->deadline;
}

/* By a worker, between two rounds. */
static void note_round(struct stack_generation *g) {
  struct exchange *x =
      (struct exchange *)((char *)g - offsetof(struct exchange, request.stack.generation));
  if (g->chosen == x->told) return;
  const uint64_t now = clock_now();
  note_tokens(x, g->chosen, now);
  x->job.deadline = next_deadline(x, now);
  if (x->stream && x->news) x->news(x);
}

/* Likewise: a head was measured. */
static void note_head(struct stack_ablation *w) {
  struct exchange *x =
      (struct exchange *)((char *)w - offsetof(struct exchange, request.stack.ablation));
  x->job.deadline = next_deadline(x, clock_now());
  if (x->stream && x->news) x->news(x);
}

static void plan_rounds(struct exchange *x) {
  if (x->terms.ask != ASK_GENERATE && !x->terms.ablation) return;
  x->told = 0;
  x->request.stack.generation.moved = note_round;
  x->request.stack.ablation.moved = note_head;
  x->job.deadline = next_deadline(x, x->begun);
}

/* Prepares the job for what the request computes. */
static void plan_job(struct exchange *x) {
  const uint64_t said_us = x->timeout_us;
  if (said_us && said_us < (x->deadline - x->begun) / 1000) x->deadline = x->begun + said_us * 1000;
  x->job.run = x->run;
  x->job.pieces = x->answer.pieces;
  x->job.write = write_piece;
  x->job.gone = x->gone ? has_reader_left : NULL;
  x->job.done = end_job;
  x->job.client = x->client;
  x->job.deadline = x->deadline;
  plan_rounds(x);
}

/* --- a check that takes long: a program of one step, which has one unit --- */

/* How long the submitting thread may check a body. Fifty clients may be served in one turn of it.
 */
enum { AT_ONCE_NS = 200 * 1000 };

static const double check_work = 32; /* operations that a worker does in a nanosecond, about */

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

/* Of a body that is being checked, which can take long. */
static enum status ask_reader(struct patience *p) {
  struct exchange *x = (struct exchange *)((char *)p - offsetof(struct exchange, patience));
  if (p->asked >= x->deadline) return STATUS_DEADLINE;
  if (pool_is_closed(x->service->pool)) return STATUS_DRAINING;
  return x->gone && x->gone(x) ? STATUS_GONE : STATUS_OK;
}

static void give_patience(struct exchange *x) {
  x->patience = (struct patience){.ask = ask_reader};
  x->body->reading.patience = &x->patience;
}

static void plan_check(struct exchange *x) {
  x->check =
      (struct run){.program = &check_program, .work = check_work * (double)body_cost(x->body)};
  x->job.run = &x->check;
  x->job.pieces = 0;
  x->job.gone = x->gone ? has_reader_left : NULL;
  x->job.done = end_check;
  x->job.client = x->client;
  x->job.deadline = x->deadline;
}

/* --- the way of a body that has ended --- */

bool exchange_finish(struct exchange *x, uint64_t deadline) {
  if (x->error.status) return false;
  x->deadline = deadline ? deadline : UINT64_MAX;
  x->checked = x->alone || body_cost(x->body) <= AT_ONCE_NS;
  give_patience(x);
  if (x->checked) check_body(x);
  return !x->error.status;
}

void exchange_submit(struct exchange *x, uint64_t deadline) {
  must(!x->error.status);
  x->begun = clock_now();
  x->deadline = deadline ? deadline : UINT64_MAX;
  if (x->checked)
    plan_job(x);
  else
    plan_check(x);
  pool_submit(x->service->pool, &x->job);
}

/* Does it go through a whole model? */
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

/* Which of both runs of a pair comes next may change just now. */
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
