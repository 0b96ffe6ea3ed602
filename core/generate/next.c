/* next: the token that comes next in each sequence, or the candidates of each hypothesis.
 *
 * The log probabilities that are reported are the model's own; the choice works on what its
 * settings make of the logits (choice.h). A sequence whose prompt continues in the next round
 * chooses nothing, but has more rows now. */
#include <float.h>
#include <string.h>

#include "core/base/size.h"
#include "core/forward/output.h"
#include "core/generate/choice.h"
#include "core/generate/generate_parts.h"

/* Faults of an item. */
enum next_fault { FAULT_LOGITS, FAULT_BANNED, FAULT_HEARD, FAULTS };

static void record_fault(const struct unit *u, enum next_fault fault) {
  run_record_fault(u->run, u->step, u->item * FAULTS + fault);
}

/* Appends a token. It is counted when all that belongs to it is there. */
static void append_token(struct stack_generation *g, const struct unit *u, int32_t token,
                         float log) {
  struct stack_sequence *q = &g->sequence[u->item];
  const size_t count = stack_sequence_count(q) + 1;
  q->fed[q->text + count - 1] = token;
  q->log_probability[count - 1] = log;
  q->score += log;
  const enum stack_finish finish =
      stack_tell(g, u->item, count, stack_choice_finish(&g->choice, token, count, q->most));
  if (finish == STACK_FINISH_FAILED) {
    record_fault(u, FAULT_HEARD);
    return;
  }
  atomic_store_explicit(&q->count, count, memory_order_release);
  atomic_store_explicit(&q->finish, finish, memory_order_release);
}

/* Lists the candidates of a hypothesis. `log_sum` makes log probabilities of its logits. */
static void list_candidates(const struct stack *s, struct stack_beams *b,
                            const struct stack_choice *c, const struct stack_past *past,
                            size_t hypothesis, const float *logit, double log_sum, float *scratch) {
  struct stack_searching *q = &b->search;
  struct stack_candidate *to = q->candidate + hypothesis * q->width;
  int32_t *token = b->token + hypothesis * q->width;
  float *log = b->log + hypothesis * q->width;
  const double sum = q->steps ? stack_search_beam(q, q->steps - 1, hypothesis)->sum : 0;
  const size_t found = stack_choose_some(c, past, logit, log_sum, s->form.embedding.tokens,
                                         q->width, token, log, scratch);
  for (size_t i = 0; i < found; i++)
    to[i] = (struct stack_candidate){.sum = sum + log[i],
                                     .token = token[i],
                                     .log_probability = (float)(logit[token[i]] - log_sum)};
  q->found[hypothesis] = found;
}

/* The place of the most likely tokens: in the sequence, or in the step of a search. */
static struct stack_likely likely_of(const struct stack_run *r, size_t item, size_t chosen) {
  const struct stack_generation *g = r->generation;
  const struct stack_sequence *q = &g->sequence[item];
  const size_t top = g->top_count, each = stack_each(g);
  if (!g->rounds->beams)
    return (struct stack_likely){top, q->top_token + chosen * top,
                                 q->top_log_probability + chosen * top};
  const struct stack_beams *b = &g->rounds->beams[item / each];
  const size_t at = (chosen * each + item % each) * top;
  return (struct stack_likely){top, b->top_token + at, b->top_log + at};
}

/* Chooses the token of a sequence from its logits. */
static void find_next(const struct stack *s, const struct unit *u, float *scratch) {
  const struct stack_run *r = stack_run_of(u->run);
  struct stack_generation *g = r->generation;
  const struct stack_sequence *q = &g->sequence[u->item];
  const size_t tokens = s->form.embedding.tokens, chosen = stack_chosen(r, u->item);
  const float *logit = g->rounds->logits + q->asks * tokens;
  const struct stack_likely likely = likely_of(r, u->item, chosen);
  const struct stack_past past = {.token = q->fed,
                                  .count = q->text + chosen,
                                  .chosen = chosen,
                                  .most = q->most,
                                  .item = q->item,
                                  .sample = q->sample};
  struct stack_outcome o;
  if (s->kernel->peak(tokens, logit) >= KERNEL_NOT_FINITE) {
    record_fault(u, FAULT_LOGITS);
    return;
  }
  stack_outcome_begin(&o);
  for (size_t first = 0, count; first < tokens; first += count) {
    count = size_min(STACK_BLOCK_TOKENS, tokens - first);
    stack_outcome_add(s->kernel, &o, logit + first, first, count, &likely, scratch);
  }
  const double log_sum = stack_outcome_end(&o, &likely);
  if (!stack_outcome_is_finite(&o, &likely, 0)) {
    record_fault(u, FAULT_LOGITS);
    return;
  }
  if (g->rounds->beams) {
    list_candidates(s, &g->rounds->beams[u->item / g->each], &g->choice, &past, q->lineage.own,
                    logit, log_sum, scratch);
    return;
  }
  const int32_t token = stack_choose(s->kernel, &g->choice, &past, logit, tokens, scratch);
  if (token < 0)
    record_fault(u, FAULT_BANNED);
  else if (logit[token] - log_sum < -FLT_MAX)
    record_fault(u, FAULT_LOGITS);
  else
    append_token(g, u, token, (float)(logit[token] - log_sum));
}

/* --- the step: units are items --- */

static bool next_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct geometry *g = &stack_run_of(u->run)->geometry;
  (void)step;
  while (at->item < g->items && g->item[at->item].q == 0) at->item++;
  if (at->item == g->items) return false;
  u->item = at->item++;
  return true;
}

static bool asks(const struct unit *u) {
  return stack_run_of(u->run)->generation->sequence[u->item].asks != STACK_ASKS_NOT;
}

static double next_work(const struct step *step, const struct unit *u) {
  return asks(u) ? stack_step_of(step)->row_work : 0;
}

static void next_item(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack *s = step->stack;
  if (asks(u)) find_next(s, u, scratch);
  /* From now on the keys and values of the round's rows are there. */
  const struct stack_run *r = stack_run_of(u->run);
  struct stack_rounds *o = r->generation->rounds;
  const size_t rows = r->geometry.item[u->item].q;
  struct stack_sequence *at = &r->generation->sequence[u->item];
  at->kept += rows;
  if (!at->lineage.row) at->turns = (at->kept - 1) / KERNEL_KEYS * KERNEL_KEYS;
  for (size_t l = 0; l < s->form.layers; l++) {
    o->kept[l][u->item].key.count += rows;
    o->kept[l][u->item].value.count += rows;
  }
}

enum status next_fault_of_bans(const struct stack_run *r, size_t item, struct error *e) {
  return error_at(e, "",
                  "every token is banned after position %zu of item %zu: nothing can be generated",
                  r->geometry.item[item].k - 1, stack_named(r, item));
}

static enum status fault_of_next(const struct step *step, const struct run *run, uint64_t place,
                                 struct error *e) {
  const struct stack_run *r = stack_run_of((struct run *)run);
  const size_t item = (size_t)(place / FAULTS);
  const struct item *text = &r->geometry.item[item];
  const struct stack_listener *l = r->generation->listener;
  if (place % FAULTS == FAULT_HEARD) return l->fault(l, e);
  if (place % FAULTS == FAULT_LOGITS)
    return stack_fault(stack_step_of(step), run, "a logit of", text->q_row + text->q - 1, e);
  return next_fault_of_bans(r, item, e);
}

static size_t next_floats(const struct stack *s) {
  const size_t choice = size_round_up(stack_choice_scratch(s->form.embedding.tokens), 64);
  return size_max(choice / sizeof(float), STACK_BLOCK_TOKENS);
}

const struct stack_step stack_step_next = {.step = {.unit = next_unit,
                                                    .work = next_work,
                                                    .compute = stack_compute_kernels,
                                                    .fault = fault_of_next},
                                           .floats = next_floats,
                                           .each = next_item};
