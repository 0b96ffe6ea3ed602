/* search_finish: a search is over: what it found becomes the sequences of its text, the best first.
 *
 * What is shown of a pass lies with the way that made it, until it is known which ways lead to what
 * was found: then rows go where their tokens went. */
#include <string.h>

#include "core/base/size.h"
#include "core/generate/generate_parts.h"

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

/* From its last token to its first; the passes are of the sequence, too. */
static void put_way(const struct stack_generation *g, const struct stack_beams *b,
                    const struct stack_done *done, struct stack_sequence *q, uint32_t *pass) {
  const struct stack_beam *beam = &done->last;
  for (size_t t = done->count; t-- > 0;) {
    put_token(g, b, beam, t, q);
    if (pass) pass[t] = (uint32_t)beam->parent;
    if (t > 0) beam = stack_search_beam(&b->search, t - 1, (size_t)beam->parent);
  }
  q->score = done->score;
}

/* The listener hears nothing of a sequence without tokens: the search found fewer. */
static bool end_sequence(struct stack_generation *g, size_t item, size_t count,
                         enum stack_finish finish) {
  struct stack_sequence *q = &g->sequence[item];
  if (count > 0) finish = stack_tell(g, item, count, finish);
  if (finish == STACK_FINISH_FAILED) return false;
  atomic_store_explicit(&q->count, count, memory_order_release);
  atomic_store_explicit(&q->finish, finish, memory_order_release);
  return true;
}

bool search_finish(struct stack_run *r, size_t text) {
  struct stack_generation *g = r->generation;
  struct stack_beams *b = &g->rounds->beams[text];
  b->settled = g->rounds->number;
  ((struct stack_search *)g->search)[text].steps = b->search.steps;
  bool heard = true;
  for (size_t i = 0; i < g->each; i++) {
    const size_t item = text * g->each + i;
    struct stack_sequence *q = &g->sequence[item];
    const struct stack_done *done = i < b->search.dones ? &b->search.done[i] : NULL;
    if (done) put_way(g, b, done, q, b->pass ? b->pass + i * q->most : NULL);
    if (!end_sequence(g, item, done ? done->count : 0, done ? done->finish : STACK_FINISH_LENGTH))
      heard = false;
  }
  return heard;
}

/* --- what is shown --- */

enum { NUMBERS = 64 }; /* of a row that go to other sequences at a time */

static size_t settle_floats(const struct stack *s) {
  return s->output ? STACK_BEAMS_MAX * NUMBERS : 0;
}

/* Units: an attention of a text whose search is over since this round; behind the last one what
 * enters the first layer. */
static bool settle_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_run *r = stack_run_of(u->run);
  const struct stack_rounds *o = r->generation->rounds;
  const size_t numbers = stack_form_attentions(&stack_step_of(step)->stack->form);
  const size_t texts = r->geometry.items / stack_each(r->generation);
  const size_t first = o->revealed ? 0 : numbers, end = o->embedding ? numbers + 1 : numbers;
  if (!o->beams || !o->beams->pass) return false;
  for (; at->item < texts; at->item++, at->head = 0) {
    at->head = size_max(at->head, first);
    if (o->beams[at->item].settled != o->number || at->head >= end) continue;
    u->item = at->item;
    u->head = at->head++;
    u->heads = 1;
    return true;
  }
  return false;
}

/* Bound by memory. */
static double settle_work(const struct step *step, const struct unit *u) {
  const struct stack_generation *g = stack_run_of(u->run)->generation;
  const struct stack_sequence *q = &g->sequence[u->item * g->each];
  const double width = (double)stack_step_of(step)->stack->form.width;
  return 4.0 * (double)(g->each * q->most) * (width + (double)q->keys);
}

/* What a text's sequences show of one kind. */
struct settling {
  const struct stack_generation *g;
  size_t first; /* of its sequences */
  const uint32_t *pass;
  struct copied_rows shown[STACK_BEAMS_MAX];
};

/* Moves some numbers of row t of a list, for all sequences. */
static void move_numbers(const struct settling *p, size_t t, size_t at, size_t count,
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

static void move_rows(const struct settling *p, float *scratch) {
  const struct copied_rows *shown = p->shown;
  const size_t most = p->g->sequence[p->first].most;
  for (size_t list = 0; shown->row && list < shown->lists; list++)
    for (size_t t = 0; t < most; t++)
      for (size_t x = 0; x < shown->size; x += NUMBERS)
        move_numbers(p, t, list * shown->list_step + t * shown->size + x,
                     size_min(NUMBERS, shown->size - x), scratch);
}

static void settle_shown(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack *s = step->stack;
  const struct stack_run *r = stack_run_of(u->run);
  const struct stack_generation *g = r->generation;
  struct settling p = {.g = g, .first = u->item * g->each, .pass = g->rounds->beams[u->item].pass};
  for (enum copied_kind kind = 0; kind <= COPIED_WEIGHTS; kind++) {
    for (size_t i = 0; i < g->each; i++)
      p.shown[i] = copy_out_rows(s, r, u->head, kind, p.first + i);
    move_rows(&p, scratch);
  }
  if (u->head == stack_form_attentions(&s->form)) return;
  for (size_t i = 0; i < g->each; i++) {
    const size_t count = stack_sequence_count(&g->sequence[p.first + i]);
    if (count > 0) copy_out_thumbnails(s, r, u->head, p.first + i, count);
  }
}

const struct stack_step stack_step_search_finish = {
    .step = {.unit = settle_unit, .work = settle_work, .compute = stack_compute},
    .floats = settle_floats,
    .each = settle_shown};
