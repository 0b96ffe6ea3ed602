/* search_finish: a beam search is over: its results become the sequences of its prompt, the best
 * first.
 *
 * The rows that are shown of a pass lie with the hypothesis that computed it, until it is known
 * which hypotheses led to the results: then rows follow their tokens. */
#include <string.h>

#include "core/base/size.h"
#include "core/generate/generate_parts.h"

/* Writes the tokens of a result to a sequence, the last one first. The pass of a token's parent
 * chose it, and found the most likely tokens in its place; `pass` may be NULL. */
static void write_sequence(const struct stack_generation *g, const struct stack_beams *b,
                           const struct stack_done *done, struct stack_sequence *q,
                           uint32_t *pass) {
  const struct stack_beam *beam = &done->last;
  const size_t top = g->top_count;
  for (size_t t = done->count; t-- > 0;) {
    const size_t from = (t * g->choice.beams + (size_t)beam->parent) * top;
    q->token[t] = beam->token;
    q->log_probability[t] = beam->log_probability;
    memcpy(q->top_token + t * top, b->top_token + from, top * sizeof *q->top_token);
    memcpy(q->top_log_probability + t * top, b->top_log + from, top * sizeof(float));
    if (pass) pass[t] = (uint32_t)beam->parent;
    if (t > 0) beam = stack_search_beam(&b->search, t - 1, (size_t)beam->parent);
  }
  q->score = done->score;
}

bool search_finish(struct stack_run *r, size_t text) {
  struct stack_generation *g = r->generation;
  struct stack_beams *b = &g->rounds->beams[text];
  b->finished = g->rounds->number;
  ((struct stack_search *)g->search)[text].steps = b->search.steps;
  bool heard = true;
  for (size_t i = 0; i < g->each; i++) {
    const size_t item = text * g->each + i;
    struct stack_sequence *q = &g->sequence[item];
    const struct stack_done *done = i < b->search.dones ? &b->search.done[i] : NULL;
    enum stack_finish finish = STACK_FINISH_LENGTH; /* of a sequence without a result */
    if (done) {
      write_sequence(g, b, done, q, b->pass ? b->pass + i * q->most : NULL);
      finish = stack_tell(g, item, done->count, done->finish);
    }
    if (finish == STACK_FINISH_FAILED) {
      heard = false;
      continue;
    }
    atomic_store_explicit(&q->count, done ? done->count : 0, memory_order_release);
    atomic_store_explicit(&q->finish, finish, memory_order_release);
  }
  return heard;
}

/* --- the step: moves the rows that are shown --- */

enum { NUMBERS = 64 }; /* of a row that move at a time */

/* Units: an attention of a prompt whose search is over since this round; after the last attention,
 * hidden state 0. */
static bool finish_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_run *r = stack_run_of(u->run);
  const struct stack_rounds *o = r->generation->rounds;
  const size_t numbers = stack_form_attentions(&stack_step_of(step)->stack->form);
  const size_t texts = r->geometry.items / stack_each(r->generation);
  const size_t first = r->shown ? 0 : numbers, end = r->embedding ? numbers + 1 : numbers;
  if (!o->beams || !o->beams->pass) return false;
  for (; at->item < texts; at->item++, at->head = 0) {
    at->head = size_max(at->head, first);
    if (o->beams[at->item].finished != o->number || at->head >= end) continue;
    u->item = at->item;
    u->head = at->head++;
    u->heads = 1;
    return true;
  }
  return false;
}

/* Bound by memory. */
static double finish_work(const struct step *step, const struct unit *u) {
  const struct stack_generation *g = stack_run_of(u->run)->generation;
  const struct stack_sequence *q = &g->sequence[u->item * g->each];
  const double width = (double)stack_step_of(step)->stack->form.width;
  return 4.0 * (double)(g->each * q->most) * (width + (double)q->keys);
}

static size_t finish_floats(const struct stack *s) {
  (void)s;
  return STACK_BEAMS_MAX * NUMBERS;
}

/* The rows that the sequences of a prompt show, of one kind. */
struct moving {
  const struct stack_generation *g;
  size_t first; /* the first of the sequences */
  const uint32_t *pass;
  struct copied_rows shown[STACK_BEAMS_MAX];
};

/* Moves some numbers of row t of a list, for all sequences. */
static void move_numbers(const struct moving *p, size_t t, size_t at, size_t count,
                         float *scratch) {
  const size_t most = p->g->sequence[p->first].most;
  for (size_t i = 0; i < p->g->each; i++)
    memcpy(scratch + i * NUMBERS, p->shown[i].row + at, count * sizeof *scratch);
  for (size_t i = 0; i < p->g->each; i++) {
    float *to = p->shown[i].row + at;
    if (t < stack_sequence_count(&p->g->sequence[p->first + i]))
      memcpy(to, scratch + p->pass[i * most + t] * NUMBERS, count * sizeof *to);
    else
      memset(to, 0, count * sizeof *to);
  }
}

static void move_shown(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack *s = step->stack;
  const struct stack_run *r = stack_run_of(u->run);
  const struct stack_generation *g = r->generation;
  struct moving p = {.g = g, .first = u->item * g->each, .pass = g->rounds->beams[u->item].pass};
  for (enum copied_kind kind = 0; kind <= COPIED_WEIGHTS; kind++) {
    for (size_t i = 0; i < g->each; i++)
      p.shown[i] = copy_out_rows(s, r, u->head, kind, p.first + i);
    const struct copied_rows *shown = p.shown;
    for (size_t list = 0; shown->row && list < shown->lists; list++)
      for (size_t t = 0; t < g->sequence[p.first].most; t++)
        for (size_t x = 0; x < shown->size; x += NUMBERS)
          move_numbers(&p, t, list * shown->list_step + t * shown->size + x,
                       size_min(NUMBERS, shown->size - x), scratch);
  }
  if (u->head == stack_form_attentions(&s->form)) return;
  for (size_t i = 0; i < g->each; i++) {
    const size_t count = stack_sequence_count(&g->sequence[p.first + i]);
    if (count > 0) copy_out_thumbnails(s, r, u->head, p.first + i, count);
  }
}

const struct stack_step stack_step_search_finish = {
    .step = {.unit = finish_unit, .work = finish_work, .compute = stack_compute},
    .floats = finish_floats,
    .each = move_shown};
