/* beams: the step of each beam search in a round. The hypotheses of a prompt are its sequences,
 * which are adjacent.
 *
 * The prompt goes through the layers once, as the first sequence's. After it each hypothesis makes
 * the keys and values of its own tokens, in memory of its own, and refers to those that it has from
 * others (struct kept_lineage). So only references are copied: to whole blocks, and to the rows
 * after them. When these rows are as many as a block, turn_keys.c makes a block of them. */
#include <string.h>

#include "core/base/size.h"
#include "core/generate/generate_parts.h"

/* Faults of a prompt. */
enum search_fault { FAULT_SCORE, FAULT_BANNED, FAULT_HEARD, FAULTS };

/* --- preparing --- */

static void place_prompt(const struct stack_preparing *p, size_t prompt) {
  struct stack_generation *g = p->r->generation;
  const size_t each = stack_each(g), first = prompt * each, most = g->sequence[first].most;
  struct stack_beams *b = &g->rounds->beams[prompt];
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
  b->finished = 0;
  b->pass = p->r->wish || p->r->embedded ? stack_alloc(p, most * each, sizeof *b->pass) : NULL;
  /* A hypothesis has two sets of references and of tokens: of this step and of the next one. */
  for (size_t i = 0; i < each; i++) {
    struct stack_sequence *at = &g->sequence[first + i];
    const size_t rows = at->text + most;
    for (size_t j = 0; j < 2; j++) {
      at->refers[j].block = stack_alloc(p, rows / KERNEL_KEYS + 1, sizeof *at->refers[j].block);
      at->refers[j].row = stack_alloc(p, KERNEL_KEYS, sizeof *at->refers[j].row);
    }
    at->other = stack_alloc(p, rows + 1, sizeof *at->other);
    at->lineage = (struct kept_lineage){.own = i};
    if (!p->e->status) memcpy(at->other, at->fed, at->text * sizeof *at->other);
  }
}

enum status beams_prepare(const struct stack_preparing *p) {
  const struct stack_run *r = p->r;
  struct stack_generation *g = r->generation;
  if (g->choice.beams < 2) return STATUS_OK;
  must(g->choice.beams == g->each && g->choice.temperature == 0);
  const size_t prompts = r->geometry.items / g->each;
  g->rounds->beams = stack_alloc(p, prompts, sizeof *g->rounds->beams);
  struct stack_search *shown = stack_alloc(p, prompts, sizeof *shown);
  for (size_t i = 0; !p->e->status && i < prompts; i++) {
    place_prompt(p, i);
    const struct stack_searching *q = &g->rounds->beams[i].search;
    shown[i] = (struct stack_search){.count = q->count, .beam = q->beam};
  }
  g->search = shown;
  return p->e->status;
}

/* --- the step of a search --- */

/* The sequences of a prompt. */
struct prompt {
  const struct stack *s;
  struct stack_run *r;
  struct stack_beams *beams;
  struct stack_sequence *sequence; /* [each] */
  size_t first, each;
};

/* The first step: the rows of the prompt are the first sequence's. Those after its last whole block
 * will have been moved to the place where such rows are expected. */
static void begin_hypotheses(const struct prompt *t) {
  const size_t whole = t->sequence[0].kept / KERNEL_KEYS * KERNEL_KEYS;
  for (size_t i = 0; i < t->each; i++) {
    struct stack_sequence *at = &t->sequence[i];
    at->lineage.whole = whole;
    at->lineage.block = at->refers[0].block;
    at->lineage.row = at->refers[0].row;
    memset(at->lineage.block, 0, whole / KERNEL_KEYS * sizeof *at->lineage.block);
    memset(at->lineage.row, 0, KERNEL_KEYS * sizeof *at->lineage.row);
    for (size_t l = 0; l < t->s->form.layers; l++) {
      struct kept_pair *pair = &t->r->generation->rounds->kept[l][t->first + i];
      pair->key.lineage = pair->value.lineage = &at->lineage;
    }
  }
  t->sequence[0].turns = whole;
  t->sequence[0].opens = true;
}

/* All sequences have the same number of rows, those that are not selected now, too. */
static void count_rows(const struct prompt *t) {
  const size_t rows = t->sequence[0].kept;
  for (size_t i = 1; i < t->each; i++) t->sequence[i].kept = rows;
  for (size_t l = 0; l < t->s->form.layers; l++)
    for (size_t i = 0; i < t->each; i++) {
      struct kept_pair *pair = &t->r->generation->rounds->kept[l][t->first + i];
      pair->key.count = pair->value.count = rows;
    }
}

/* The sequences become the hypotheses that the step has selected: each copies the references and
 * the tokens of its parent to its other set. Then all sets change places. */
static void follow_parents(const struct prompt *t) {
  const struct stack_searching *q = &t->beams->search;
  const size_t step = q->steps - 1, side = (step + 1) % 2;
  for (size_t i = 0; i < q->running; i++) {
    const struct stack_beam *beam = stack_search_beam(q, step, i);
    const struct stack_sequence *parent = &t->sequence[beam->parent];
    struct stack_sequence *at = &t->sequence[i];
    const size_t whole = parent->lineage.whole;
    memcpy(at->refers[side].block, parent->refers[!side].block,
           whole / KERNEL_KEYS * sizeof *at->lineage.block);
    memcpy(at->refers[side].row, parent->refers[!side].row, KERNEL_KEYS * sizeof *at->lineage.row);
    memcpy(at->other + at->text, parent->fed + parent->text, step * sizeof *at->other);
    at->other[at->text + step] = beam->token;
    at->lineage.whole = whole; /* it may not have been selected when that grew */
  }
  for (size_t i = 0; i < t->each; i++) {
    struct stack_sequence *at = &t->sequence[i];
    int32_t *token = at->fed;
    at->fed = at->other, at->other = token;
    at->lineage.block = at->refers[side].block;
    at->lineage.row = at->refers[side].row;
  }
}

/* If the rows after the last block are a block now, decides which hypothesis makes it. Hypotheses
 * with the same rows share it. */
static void weave_rows(const struct prompt *t) {
  const struct stack_sequence *first = &t->sequence[0];
  const bool whole = first->kept == first->lineage.whole + KERNEL_KEYS;
  for (size_t i = 0; i < t->each; i++) {
    struct stack_sequence *at = &t->sequence[i];
    at->weaves = i < t->beams->search.running && whole;
    at->woven = i;
    for (size_t j = i; at->weaves && j-- > 0;) {
      const struct stack_sequence *other = &t->sequence[j];
      if (!memcmp(other->lineage.row, at->lineage.row, KERNEL_KEYS * sizeof *at->lineage.row))
        at->woven = other->woven;
    }
  }
}

/* --- the end of a search --- */

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

/* The search of a prompt is over: its sequences become its results, the best first. False: the
 * listener failed. */
static bool write_results(struct stack_run *r, size_t text) {
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

/* --- the step: units are prompts --- */

static void search_prompt(const struct stack_step *step, const struct unit *u, void *scratch) {
  struct stack_run *r = stack_run_of(u->run);
  struct stack_rounds *o = r->generation->rounds;
  const size_t each = stack_each(r->generation), first = u->item * each;
  const struct prompt t = {.s = step->stack,
                           .r = r,
                           .beams = &o->beams[u->item],
                           .sequence = &r->generation->sequence[first],
                           .first = first,
                           .each = each};
  struct stack_searching *q = &t.beams->search;
  (void)scratch;
  if (q->steps == 0) begin_hypotheses(&t);
  stack_search_step(q);
  if (q->beyond) run_record_fault(u->run, u->step, first * FAULTS + FAULT_SCORE);
  if (q->over && q->dones == 0) run_record_fault(u->run, u->step, first * FAULTS + FAULT_BANNED);
  count_rows(&t);
  if (!q->over) {
    follow_parents(&t);
    weave_rows(&t);
  } else if (!write_results(r, u->item)) {
    run_record_fault(u->run, u->step, first * FAULTS + FAULT_HEARD);
  }
}

/* Units are prompts whose hypotheses have candidates now. The first hypothesis continues as long as
 * any does. */
static bool search_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_run *r = stack_run_of(u->run);
  const struct stack_rounds *o = r->generation->rounds;
  const size_t each = stack_each(r->generation), prompts = r->geometry.items / each;
  (void)step;
  if (!o->beams) return false;
  const struct stack_sequence *q = r->generation->sequence;
  while (at->item < prompts && q[at->item * each].asks == STACK_ASKS_NOT) at->item++;
  if (at->item == prompts) return false;
  u->item = at->item++;
  return true;
}

static double search_work(const struct step *step, const struct unit *u) {
  const struct stack_choice *c = &stack_run_of(u->run)->generation->choice;
  (void)step;
  return 40.0 * (double)(c->beams * c->beams);
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
                                             .each = search_prompt};
