/* stack_settle: a search is over: what it found becomes the sequences of its text, the best first.
 */
#include <string.h>

#include "core/run/size.h"
#include "core/stack/stack_parts.h"

/* Token t of a way, and what was likely in its place: the pass of its parent chose it. */
static void put_token(const struct stack_generation *g, const struct stack_beams *b,
                      const struct stack_beam *beam, size_t t, struct stack_sequence *q) {
  const size_t top = g->top_count;
  const size_t from = (t * g->choice.beams + (size_t)beam->parent) * top;
  q->token[t] = beam->token;
  q->log_probability[t] = beam->log_probability;
  memcpy(q->top_token + t * top, b->top_token + from, top * sizeof *q->top_token);
  memcpy(q->top_log_probability + t * top, b->top_log + from, top * sizeof(float));
}

/* From its last token to its first. */
static void put_way(const struct stack_generation *g, const struct stack_beams *b,
                    const struct stack_done *done, struct stack_sequence *q) {
  const struct stack_beam *beam = &done->last;
  for (size_t t = done->count; t-- > 0;) {
    put_token(g, b, beam, t, q);
    if (t > 0) beam = stack_search_beam(&b->search, t - 1, (size_t)beam->parent);
  }
  q->score = done->score;
}

void stack_settle(struct stack_run *r, size_t text) {
  struct stack_generation *g = r->generation;
  const struct stack_beams *b = &g->rounds->beams[text];
  ((struct stack_search *)g->search)[text].steps = b->search.steps;
  for (size_t i = 0; i < g->each; i++) {
    struct stack_sequence *q = &g->sequence[text * g->each + i];
    const struct stack_done *done = i < b->search.dones ? &b->search.done[i] : NULL;
    if (done) put_way(g, b, done, q);
    atomic_store_explicit(&q->count, done ? done->count : 0, memory_order_release);
    atomic_store_explicit(&q->finish, done ? done->finish : STACK_FINISH_LENGTH,
                          memory_order_release);
  }
}
