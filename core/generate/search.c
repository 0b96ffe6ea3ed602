/* search: the steps of a search. */
#include "core/generate/search.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/base/size.h"
#include "core/generate/choice.h"

/* --- making --- */

static size_t count_ends(const struct stack_choice *c) {
  size_t ends = 0;
  for (size_t i = 0; i < c->ends; i++) ends += !stack_choice_lists(c->end, i, c->end[i]);
  for (size_t i = 0; i < c->stops; i++)
    ends += !stack_choice_lists(c->stop, i, c->stop[i]) &&
            !stack_choice_lists(c->end, c->ends, c->stop[i]);
  return ends;
}

/* Of the candidates of one way the first `beams` that do not end a text may be followed, and all
 * that do may stand before them. Whether all candidates are ranked, or the best (1 + ends) beams,
 * is the same: among these `beams` do not end one, if so many there are. */
enum status stack_search_init(struct stack_searching *q, const struct stack_choice *c,
                              size_t tokens, size_t most, struct arena *a, struct error *e) {
  *q = (struct stack_searching){.choice = c, .most = most, .running = 1};
  size_t beams, candidates;
  must(c->beams > 1 && most > 0);
  q->width = size_min(c->beams + count_ends(c), tokens);
  if (!size_mul(most, c->beams, &beams) || !size_mul(q->width, c->beams, &candidates))
    return error_set(e, STATUS_TOO_LARGE, "the steps of a search exceed the address space");
  q->candidate = arena_alloc(a, candidates, sizeof *q->candidate, e);
  q->found = arena_alloc(a, c->beams, sizeof *q->found, e);
  q->count = arena_alloc(a, most, sizeof *q->count, e);
  q->beam = arena_alloc(a, beams, sizeof *q->beam, e);
  q->done = arena_alloc(a, c->beams, sizeof *q->done, e);
  return e->status;
}

/* --- a step --- */

/* The next best of the candidates that have not been ranked; of equals that of the lower way, whose
 * own are in order. Returns its way; `beams`: there is none. */
static size_t find_best(const struct stack_searching *q, const size_t *ranked) {
  const size_t beams = q->choice->beams;
  size_t best = beams;
  double most = 0;
  for (size_t i = 0; i < q->running; i++) {
    if (ranked[i] == q->found[i]) continue;
    const double sum = q->candidate[i * q->width + ranked[i]].sum;
    if (best < beams && sum <= most) continue;
    best = i;
    most = sum;
  }
  return best;
}

static double score_of(const struct stack_choice *c, double sum, size_t count) {
  return sum / pow((double)count, c->length_penalty);
}

static bool is_beyond(double number) { return !(fabs(number) <= FLT_MAX); }

/* Keeps the best, of equals those that were done before. */
static void add_done(struct stack_searching *q, const struct stack_done *done) {
  const size_t most = q->choice->beams;
  if (q->dones == most && !(done->score > q->done[most - 1].score)) return;
  size_t at = q->dones < most ? q->dones++ : most - 1;
  for (; at > 0 && done->score > q->done[at - 1].score; at--) q->done[at] = q->done[at - 1];
  q->done[at] = *done;
}

/* Nothing that goes on could become better than what is done, as far as `early` looks. */
static bool is_over(const struct stack_searching *q) {
  const struct stack_choice *c = q->choice;
  if (q->running == 0) return true;
  if (q->dones < c->beams) return false;
  if (c->early == STACK_EARLY_YES) return true;
  const bool far = c->early == STACK_EARLY_NEVER && c->length_penalty > 0;
  const double sum = stack_search_beam(q, q->steps - 1, 0)->sum;
  return !(score_of(c, sum, far ? q->most : q->steps) > q->done[c->beams - 1].score);
}

/* A candidate of a rank: done, or followed, or neither. */
static void take(struct stack_searching *q, size_t rank, size_t parent,
                 const struct stack_candidate *from, size_t *followed) {
  const struct stack_choice *c = q->choice;
  const size_t count = q->steps + 1;
  const enum stack_finish finish = stack_choice_finish(c, from->token, count, q->most);
  const struct stack_beam beam = {.parent = (int32_t)parent,
                                  .token = from->token,
                                  .log_probability = from->log_probability,
                                  .sum = from->sum};
  if (finish == STACK_FINISH_NOT) {
    if (*followed == c->beams) return;
    q->beyond |= is_beyond(from->sum);
    q->beam[q->steps * c->beams + (*followed)++] = beam;
  } else if (rank < c->beams) {
    add_done(q, &(struct stack_done){.score = score_of(c, from->sum, count),
                                     .count = count,
                                     .last = beam,
                                     .finish = finish});
  }
}

void stack_search_step(struct stack_searching *q) {
  size_t ranked[STACK_BEAMS_MAX] = {0}, followed = 0;
  must(q->steps < q->most && q->choice->beams <= STACK_BEAMS_MAX);
  const size_t beams = q->choice->beams;
  for (size_t rank = 0; rank < beams || followed < beams; rank++) {
    const size_t parent = find_best(q, ranked);
    if (parent == beams) break;
    take(q, rank, parent, &q->candidate[parent * q->width + ranked[parent]++], &followed);
  }
  q->count[q->steps++] = q->running = followed;
  q->over = is_over(q);
  for (size_t i = 0; i < q->dones && q->over; i++) q->beyond |= is_beyond(q->done[i].score);
}
