/* search: the steps of a beam search. */
#include "core/generate/search.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/base/size.h"
#include "core/generate/choice.h"

/* A hypothesis needs `width` candidates: the first `beams` that do not end a sequence may be
 * selected, and each token that does may precede them. */
enum status stack_search_init(struct stack_searching *q, const struct stack_choice *c,
                              size_t tokens, size_t most, struct arena *a, struct error *e) {
  *q = (struct stack_searching){.choice = c, .most = most, .running = 1};
  size_t beams, candidates, ends = 0; /* different tokens that end a sequence */
  must(c->beams > 1 && most > 0);
  for (size_t i = 0; i < c->ends; i++) ends += !stack_choice_lists(c->end, i, c->end[i]);
  for (size_t i = 0; i < c->stops; i++)
    ends += !stack_choice_lists(c->stop, i, c->stop[i]) &&
            !stack_choice_lists(c->end, c->ends, c->stop[i]);
  q->width = size_min(c->beams + ends, tokens);
  if (!size_mul(most, c->beams, &beams) || !size_mul(q->width, c->beams, &candidates))
    return error_set(e, STATUS_TOO_LARGE, "the steps of a search exceed the address space");
  q->candidate = arena_alloc(a, candidates, sizeof *q->candidate, e);
  q->found = arena_alloc(a, c->beams, sizeof *q->found, e);
  q->count = arena_alloc(a, most, sizeof *q->count, e);
  q->beam = arena_alloc(a, beams, sizeof *q->beam, e);
  q->done = arena_alloc(a, c->beams, sizeof *q->done, e);
  return e->status;
}

/* Finds the hypothesis with the best candidate that is not ranked yet; of equals the lower one,
 * whose own candidates are in order. `beams`: there is none. */
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

/* Keeps the best results, of equals the earlier ones. */
static void add_done(struct stack_searching *q, const struct stack_done *done) {
  const size_t most = q->choice->beams;
  if (q->dones == most && !(done->score > q->done[most - 1].score)) return;
  size_t at = q->dones < most ? q->dones++ : most - 1;
  for (; at > 0 && done->score > q->done[at - 1].score; at--) q->done[at] = q->done[at - 1];
  q->done[at] = *done;
}

/* Can no hypothesis become better than the results, as far as `early` looks? */
static bool is_over(const struct stack_searching *q) {
  const struct stack_choice *c = q->choice;
  if (q->running == 0) return true;
  if (q->dones < c->beams) return false;
  if (c->early_stopping == STACK_EARLY_YES) return true;
  const bool far = c->early_stopping == STACK_EARLY_NEVER && c->length_penalty > 0;
  const double sum = stack_search_beam(q, q->steps - 1, 0)->sum;
  return !(score_of(c, sum, far ? q->most : q->steps) > q->done[c->beams - 1].score);
}

void stack_search_step(struct stack_searching *q) {
  const struct stack_choice *c = q->choice;
  const size_t beams = c->beams, count = q->steps + 1;
  size_t ranked[STACK_BEAMS_MAX] = {0}, selected = 0;
  must(q->steps < q->most && beams <= STACK_BEAMS_MAX);
  for (size_t rank = 0; rank < beams || selected < beams; rank++) {
    const size_t parent = find_best(q, ranked);
    if (parent == beams) break;
    const struct stack_candidate *from = &q->candidate[parent * q->width + ranked[parent]++];
    const enum stack_finish finish = stack_choice_finish(c, from->token, count, q->most);
    const struct stack_beam beam = {.parent = (int32_t)parent,
                                    .token = from->token,
                                    .log_probability = from->log_probability,
                                    .sum = from->sum};
    if (finish != STACK_FINISH_NOT) {
      const struct stack_done done = {
          .score = score_of(c, from->sum, count), .count = count, .last = beam, .finish = finish};
      if (rank < beams) add_done(q, &done);
    } else if (selected < beams) {
      q->beyond |= is_beyond(from->sum);
      q->beam[q->steps * beams + selected++] = beam;
    }
  }
  q->count[q->steps++] = q->running = selected;
  q->over = is_over(q);
  for (size_t i = 0; i < q->dones && q->over; i++) q->beyond |= is_beyond(q->done[i].score);
}
