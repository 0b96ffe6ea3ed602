/* exchange_work: what each kind of work of a model has that other kinds do not: rounds with their
 * deadlines, a stream, tokens to count. */
#include <stddef.h>

#include "core/base/clock.h"
#include "server/model/answer/stack_answer.h"
#include "server/service/exchange.h"

const struct exchange_work exchange_plain = {0};

/* --- texts that become tokens --- */

static const struct tokenize_texts *texts_of_tokenizer(const struct exchange *x) {
  return &x->request.tokenize.texts;
}

const struct exchange_work exchange_tokens = {.texts = texts_of_tokenizer};

/* --- models: one pass --- */

static const struct tokenize_texts *texts_of_stack(const struct exchange *x) {
  return x->request.stack.tokenized;
}

/* Cancels also the second run of a pair: which one is next may change at this moment. */
static void cancel_pair(struct exchange *x) {
  atomic_store(&x->request.stack.main.run->run.cancelled, true);
}

const struct exchange_work exchange_pass = {.texts = texts_of_stack, .cancel = cancel_pair};

/* --- rounds --- */

/* The deadline of the next round, which is not after that of the request. */
static uint64_t next_deadline(const struct exchange *x, uint64_t now) {
  const uint64_t left = x->deadline > now ? x->deadline - now : 0;
  return x->pause_ns && x->pause_ns < left ? now + x->pause_ns : x->deadline;
}

/* --- generation --- */

static void reserve_sequences(struct exchange *x) {
  const struct stack_run *r = x->request.stack.main.run;
  const struct sequences_share share = {r->geometry.items, r->generation->kept_bytes};
  if (sequences_begin(&x->service->sequences, share, &x->error) == STATUS_OK) x->sequences = share;
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

/* Called after a round that another one follows, when that one is laid out. The last round ends in
 * end_generation. */
static void next_round(struct stack_generation *g) {
  struct exchange *x =
      (struct exchange *)((char *)g - offsetof(struct exchange, request.stack.generation));
  if (g->chosen == x->counted) return;
  const uint64_t now = clock_now();
  count_tokens(x, g->chosen, now);
  x->job.deadline = next_deadline(x, now);
  if (x->stream && x->news) x->news(x);
}

static void begin_generation(struct exchange *x) {
  x->request.stack.generation.next_round = next_round;
  x->job.deadline = next_deadline(x, x->begun);
}

/* Counts the tokens of the last round: those of all sequences, or the steps of all beam searches,
 * as rounds count them. */
static void end_generation(struct exchange *x) {
  const struct stack_request *r = &x->request.stack;
  size_t chosen = 0;
  if (x->run && !r->generation.search) chosen = stack_answer_generated(r);
  for (size_t text = 0; x->run && r->generation.search && text < r->texts; text++)
    chosen += r->generation.search[text].steps;
  if (chosen > x->counted) count_tokens(x, chosen, clock_now());
  sequences_end(&x->service->sequences, &x->sequences);
}

static bool has_generation_begun(const struct exchange *x) {
  return stack_stream_has_begun(&x->streamed);
}

static size_t stream_generation(struct exchange *x, bool done, const char *problem, char *out,
                                size_t room) {
  return stack_stream_write(&x->streamed, done, problem, out, room);
}

static size_t generated_tokens(const struct exchange *x) {
  return stack_answer_generated(&x->request.stack);
}

static void leave_generation(struct exchange *x) {
  sequences_end(&x->service->sequences, &x->sequences);
  stack_answer_leave(&x->request.stack);
}

const struct exchange_work exchange_generation = {.reserve = reserve_sequences,
                                                  .begin_rounds = begin_generation,
                                                  .end_rounds = end_generation,
                                                  .has_begun = has_generation_begun,
                                                  .stream = stream_generation,
                                                  .texts = texts_of_stack,
                                                  .generated = generated_tokens,
                                                  .cancel = cancel_pair,
                                                  .end = leave_generation};

/* --- head importance --- */

/* A head was measured: called by a worker. */
static void next_head(struct stack_ablation *w) {
  struct exchange *x =
      (struct exchange *)((char *)w - offsetof(struct exchange, request.stack.ablation));
  x->job.deadline = next_deadline(x, clock_now());
  if (x->stream && x->news) x->news(x);
}

static void begin_ablation(struct exchange *x) {
  x->request.stack.ablation.next_round = next_head;
  x->job.deadline = next_deadline(x, x->begun);
}

static bool has_ablation_begun(const struct exchange *x) {
  return stack_ablation_stream_has_begun(&x->measured);
}

static size_t stream_ablation(struct exchange *x, bool done, const char *problem, char *out,
                              size_t room) {
  return stack_ablation_stream_write(&x->measured, done, problem, out, room);
}

const struct exchange_work exchange_ablation = {.begin_rounds = begin_ablation,
                                                .has_begun = has_ablation_begun,
                                                .stream = stream_ablation,
                                                .texts = texts_of_stack,
                                                .cancel = cancel_pair};
