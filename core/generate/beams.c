/* beams: a search as a step of each round: the ways of a text are its sequences, side by
 * side, and a way that follows upon another one takes over the names of that one's rows.
 *
 * The text goes through the layers once, as the first sequence's. Behind it each way makes the keys
 * and values of its own tokens, in a place of its own, and names those that it has of others
 * (struct kept_lineage). So nothing is copied but names: of whole blocks, and of the rows behind
 * them. Behind a block's last row stack_turn.c makes blocks of these rows. */
#include <string.h>

#include "core/base/size.h"
#include "core/generate/generate_parts.h"

/* What may go wrong with a text. */
enum search_fault { FAULT_SCORE, FAULT_BANNED, FAULT_HEARD, FAULTS };

/* --- preparing --- */

/* Places for a way's names of rows and for its tokens: two of each, in turn for a step and the next
 * one. */
static void place_way(const struct stack_preparing *p, struct stack_advance *at, size_t own,
                      size_t rows) {
  for (size_t i = 0; i < 2; i++) {
    at->way[i].block = stack_alloc(p, rows / KERNEL_KEYS + 1, sizeof *at->way[i].block);
    at->way[i].row = stack_alloc(p, KERNEL_KEYS, sizeof *at->way[i].row);
  }
  at->other = stack_alloc(p, rows + 1, sizeof *at->other);
  at->lineage = (struct kept_lineage){.own = own};
}

static void place_text(const struct stack_preparing *p, size_t text) {
  struct stack_generation *g = p->r->generation;
  const size_t each = stack_each(g), first = text * each, most = g->sequence[first].most;
  struct stack_beams *b = &g->rounds->beams[text];
  size_t listed;
  const size_t tokens = p->s->form.embedding.tokens;
  for (size_t i = 0; i < each; i++) must(g->sequence[first + i].most == most);
  if (stack_search_init(&b->search, &g->choice, tokens, most, p->a, p->e)) return;
  if (!size_mul(most, each, &listed) || !size_mul(listed, g->top_count, &listed)) {
    error_limit(p->e, "max_answer_bytes", "the most likely tokens exceed the address space");
    return;
  }
  b->top_token = stack_alloc(p, listed, sizeof *b->top_token);
  b->top_log = stack_alloc(p, listed, sizeof *b->top_log);
  b->token = stack_alloc(p, b->search.width * each, sizeof *b->token);
  b->log = stack_alloc(p, b->search.width * each, sizeof *b->log);
  b->settled = 0;
  b->pass = p->r->wish || p->r->embedded ? stack_alloc(p, most * each, sizeof *b->pass) : NULL;
  for (size_t i = 0; i < each; i++) {
    struct stack_advance *at = &g->rounds->advance[first + i];
    place_way(p, at, i, at->text + most);
    if (!p->e->status) memcpy(at->other, at->token, at->text * sizeof *at->other);
  }
}

enum status beams_prepare(const struct stack_preparing *p) {
  const struct stack_run *r = p->r;
  struct stack_generation *g = r->generation;
  if (g->choice.beams < 2) return STATUS_OK;
  must(g->choice.beams == g->each && g->choice.temperature == 0);
  const size_t texts = r->geometry.items / g->each;
  g->rounds->beams = stack_alloc(p, texts, sizeof *g->rounds->beams);
  struct stack_search *shown = stack_alloc(p, texts, sizeof *shown);
  for (size_t i = 0; !p->e->status && i < texts; i++) place_text(p, i);
  for (size_t i = 0; !p->e->status && i < texts; i++) {
    const struct stack_searching *q = &g->rounds->beams[i].search;
    shown[i] = (struct stack_search){.count = q->count, .beam = q->beam};
  }
  g->search = shown;
  return p->e->status;
}

/* --- from way to way --- */

/* What belongs to the sequences of a text. */
struct text {
  const struct stack *s;
  struct stack_run *r;
  struct stack_beams *beams;
  struct stack_advance *advance; /* [each] */
  size_t first, each;
};

static struct text text_of(const struct step *step, const struct unit *u) {
  struct stack_run *r = stack_run_of(u->run);
  const size_t each = stack_each(r->generation), first = u->item * each;
  return (struct text){.s = stack_step_of(step)->stack,
                       .r = r,
                       .beams = &r->generation->rounds->beams[u->item],
                       .advance = &r->generation->rounds->advance[first],
                       .first = first,
                       .each = each};
}

/* All sequences have as many rows, those that are not followed now, too. */
static void count_rows(const struct text *t) {
  const size_t rows = t->advance[0].kept;
  for (size_t i = 1; i < t->each; i++) t->advance[i].kept = rows;
  for (size_t l = 0; l < t->s->form.layers; l++)
    for (size_t i = 0; i < t->each; i++) {
      struct kept_pair *pair = &t->r->generation->rounds->kept[l][t->first + i];
      pair->key.count = pair->value.count = rows;
    }
}

/* The rows of the text are the first sequence's. Those behind its last whole block will have been
 * moved to where such rows are expected. */
static void begin_ways(const struct text *t) {
  const size_t whole = t->advance[0].kept / KERNEL_KEYS * KERNEL_KEYS;
  for (size_t i = 0; i < t->each; i++) {
    struct stack_advance *at = &t->advance[i];
    at->lineage.whole = whole;
    at->lineage.block = at->way[0].block;
    at->lineage.row = at->way[0].row;
    memset(at->lineage.block, 0, whole / KERNEL_KEYS * sizeof *at->lineage.block);
    memset(at->lineage.row, 0, KERNEL_KEYS * sizeof *at->lineage.row);
    for (size_t l = 0; l < t->s->form.layers; l++) {
      struct kept_pair *pair = &t->r->generation->rounds->kept[l][t->first + i];
      pair->key.lineage = pair->value.lineage = &at->lineage;
    }
  }
  t->advance[0].turns = whole;
  t->advance[0].opens = true;
}

/* A sequence becomes what followed upon its parent. */
static void follow(const struct text *t, size_t index, const struct stack_beam *beam, size_t step) {
  struct stack_advance *at = &t->advance[index];
  const struct stack_advance *parent = &t->advance[beam->parent];
  const size_t whole = parent->lineage.whole, side = (step + 1) % 2;
  memcpy(at->way[side].block, parent->way[!side].block,
         whole / KERNEL_KEYS * sizeof *at->lineage.block);
  memcpy(at->way[side].row, parent->way[!side].row, KERNEL_KEYS * sizeof *at->lineage.row);
  memcpy(at->other + at->text, parent->token + parent->text, step * sizeof *at->other);
  at->other[at->text + step] = beam->token;
  at->lineage.whole = whole; /* it may not have been followed when that grew */
}

static bool same_rows(const struct stack_advance *x, const struct stack_advance *y) {
  return !memcmp(x->lineage.row, y->lineage.row, KERNEL_KEYS * sizeof *x->lineage.row);
}

/* A block is whole: which way makes it of its rows? Ways with the same rows share it. */
static void weave(const struct text *t, size_t running) {
  const struct stack_advance *first = &t->advance[0];
  for (size_t i = 0; i < t->each; i++) {
    struct stack_advance *at = &t->advance[i];
    at->weaves = i < running && first->kept == first->lineage.whole + KERNEL_KEYS;
    at->woven = i;
    for (size_t j = 0; at->weaves && j < i; j++)
      if (same_rows(&t->advance[j], at)) {
        at->woven = t->advance[j].woven;
        break;
      }
  }
}

static void go_over(const struct text *t) {
  const struct stack_searching *q = &t->beams->search;
  const size_t step = q->steps - 1;
  for (size_t i = 0; i < q->running; i++) follow(t, i, stack_search_beam(q, step, i), step);
  for (size_t i = 0; i < t->each; i++) {
    struct stack_advance *at = &t->advance[i];
    int32_t *token = at->token;
    at->token = at->other, at->other = token;
    at->lineage.block = at->way[(step + 1) % 2].block;
    at->lineage.row = at->way[(step + 1) % 2].row;
  }
  weave(t, q->running);
}

/* --- the step --- */

/* Texts whose ways have candidates now. The first way is followed as long as any is. */
static bool search_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_run *r = stack_run_of(u->run);
  const struct stack_rounds *o = r->generation->rounds;
  const size_t each = stack_each(r->generation), texts = r->geometry.items / each;
  (void)step;
  if (!o->beams) return false;
  while (at->item < texts && o->advance[at->item * each].asks == STACK_ASKS_NOT) at->item++;
  if (at->item == texts) return false;
  u->item = at->item++;
  return true;
}

static double search_work(const struct step *step, const struct unit *u) {
  const struct stack_choice *c = &stack_run_of(u->run)->generation->choice;
  (void)step;
  return 40.0 * (double)(c->beams * c->beams);
}

static void search(const struct text *t, const struct unit *u) {
  struct stack_searching *q = &t->beams->search;
  if (q->steps == 0) begin_ways(t);
  stack_search_step(q);
  if (q->beyond) run_note_fault(u->run, u->step, t->first * FAULTS + FAULT_SCORE);
  if (q->over && q->dones == 0) run_note_fault(u->run, u->step, t->first * FAULTS + FAULT_BANNED);
  count_rows(t);
  if (!q->over)
    go_over(t);
  else if (!search_finish(t->r, u->item))
    run_note_fault(u->run, u->step, t->first * FAULTS + FAULT_HEARD);
}

static void search_each(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct text t = text_of(&step->step, u);
  (void)scratch;
  search(&t, u);
}

static enum status fault_of_search(const struct step *step, const struct run *run, uint64_t place,
                                   struct error *e) {
  const struct stack_run *r = stack_run_of((struct run *)run);
  const size_t item = (size_t)(place / FAULTS);
  (void)step;
  const struct stack_listener *l = r->generation->listener;
  if (place % FAULTS == FAULT_HEARD) return l->fault(l, e);
  if (place % FAULTS == FAULT_BANNED) return next_fault_of_bans(r, item, e);
  return error_set(e, STATUS_NOT_FINITE,
                   "the score of a sequence of item %zu exceeds the float32 range: its sum of log "
                   "probabilities, or that divided by the length penalty",
                   stack_named(r, item));
}

const struct stack_step stack_step_search = {.step = {.unit = search_unit,
                                                      .work = search_work,
                                                      .compute = stack_compute,
                                                      .fault = fault_of_search},
                                             .each = search_each};
