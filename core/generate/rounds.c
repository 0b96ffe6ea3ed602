/* rounds: which tokens each round of a generating run takes.
 *
 * A sequence is its prompt, followed by the generated tokens. Every token except the last is fed
 * once: its keys and values are kept. A round takes one token of each sequence that has only one to
 * feed, and chunks of longer prompts, as far as the round's work allows: a long prompt does not
 * hold up the other sequences. If an item repeats the previous item's prompt, it waits for those
 * rows and copies them.
 *
 * Of many prompts not all continue at the same time: no more than a round has rows for, and than
 * there is memory for keys and values. The others begin in their order, each where another one has
 * ended. */
#include <math.h>
#include <string.h>

#include "core/base/size.h"
#include "core/forward/output.h"
#include "core/generate/generate_parts.h"

enum { TOUCH_PAIR = 40 }; /* operations for a query and a key in a head besides products, about */

/* --- preparing --- */

/* Operations for a key and a value in all layers. */
static double key_work(const struct stack *s, const struct layer_shape *a) {
  const double keys = (double)(a->kv_heads * (a->head_size + a->value_head_size));
  return 2.0 * (double)s->form.width * keys * (double)s->form.layers;
}

/* Operations for a query and its contexts in all layers. */
static double query_work(const struct stack *s, const struct layer_shape *a) {
  const double contexts = (double)(a->heads * (a->head_size + a->value_head_size));
  return 2.0 * (double)s->form.width * contexts * (double)s->form.layers;
}

static double pair_work(const struct stack *s, const struct layer_shape *a) {
  const double head = 2.0 * (double)(a->head_size + a->value_head_size) + TOUCH_PAIR;
  return head * (double)(a->heads * s->form.layers);
}

/* The first of the neighboring items with the same prompt. Several sequences of one prompt are
 * neighbors. Those of different prompts may be equal, too, but not where each has a source of its
 * own. The hypotheses of a beam search share the rows of their prompt another way. */
static size_t find_first(const struct stack_preparing *p, size_t item) {
  const struct stack_generation *g = p->r->generation;
  const struct item *text = &p->r->geometry.item[item], *other = text - 1;
  const size_t bytes = text->q * sizeof *p->r->tokens;
  if (g->choice.beams > 1) return STACK_NO_TWIN;
  if (p->r->source && item % stack_each(g) == 0) return STACK_NO_TWIN;
  if (item == 0 || text->q < 2 || other->q != text->q ||
      memcmp(p->r->tokens + text->q_row, p->r->tokens + other->q_row, bytes) != 0)
    return STACK_NO_TWIN;
  const size_t first = g->sequence[item - 1].first;
  return first == STACK_NO_TWIN ? item - 1 : first;
}

/* Reserves memory for the tokens of a sequence, and for their probabilities. */
static enum status place_sequence(const struct stack_preparing *p, size_t item) {
  struct stack_generation *g = p->r->generation;
  struct stack_sequence *q = &g->sequence[item];
  const struct item *text = &p->r->geometry.item[item];
  size_t count, listed;
  must(text->q > 0 && q->most > 0);
  if (!size_add(text->q, q->most, &count) || !size_mul(q->most, g->top_count, &listed))
    return error_limit(p->e, "max_answer_bytes", "the tokens exceed the address space");
  q->text = text->q;
  q->twin = q->first = find_first(p, item);
  q->fed = stack_alloc(p, count, sizeof *q->fed);
  q->log_probability = stack_alloc(p, q->most, sizeof *q->log_probability);
  q->top_token = stack_alloc(p, listed, sizeof *q->top_token);
  q->top_log_probability = stack_alloc(p, listed, sizeof *q->top_log_probability);
  if (p->e->status) return p->e->status;
  memcpy(q->fed, p->r->tokens + text->q_row, text->q * sizeof *q->fed);
  const bool searches = g->choice.beams > 1; /* then tokens move between sequences */
  q->token = searches ? stack_alloc(p, q->most, sizeof *q->token) : q->fed + text->q;
  if (p->e->status || (searches && item % stack_each(g) > 0)) return p->e->status;
  return prefix_copy_prepare(p, item);
}

static enum status place_sequences(const struct stack_preparing *p) {
  const size_t items = p->r->geometry.items;
  struct stack_generation *g = p->r->generation;
  struct stack_rounds *o = g->rounds;
  g->top_count = size_min(g->top, p->s->form.embedding.tokens);
  for (size_t i = 0; i < items; i++) {
    struct stack_sequence *q = &g->sequence[i];
    *q = (struct stack_sequence){.item = q->item, .sample = q->sample, .most = q->most};
  }
  o->asking = stack_alloc(p, items, sizeof *o->asking);
  for (size_t i = 0; !p->e->status && i < items; i++) place_sequence(p, i);
  return p->e->status ? p->e->status : beams_prepare(p);
}

/* The sequences of a prompt are one item of the geometry across. */
static enum status widen_across(const struct stack_preparing *p) {
  struct stack_run *r = p->r;
  const size_t each = stack_each(r->generation), layers = p->s->form.layers;
  struct geometry *g = &r->across;
  const struct geometry *source = &r->source->geometry;
  bool shows = false;
  must(source->items * each == r->geometry.items);
  g->items = source->items;
  g->moves = true;
  g->q_rows = r->geometry.q_rows;
  g->k_rows = source->q_rows;
  g->item = stack_alloc(p, g->items, sizeof *g->item);
  for (size_t i = 0; g->item && i < g->items; i++) {
    g->item[i] = (struct item){.k = source->item[i].q, .k_row = source->item[i].q_row};
    for (size_t j = 0; j < each; j++) g->item[i].q += r->geometry.item[i * each + j].q;
  }
  for (size_t l = 0; r->wish && l < layers; l++)
    shows |= r->wish[layers + l].weights != STACK_WEIGHTS_NONE;
  if (shows) r->generation->rounds->shows_across = stack_alloc(p, g->items, sizeof(bool));
  return p->e->status;
}

enum status rounds_prepare(const struct stack_preparing *p) {
  const struct stack *s = p->s;
  const struct stack_form *f = &s->form;
  struct stack_run *r = p->r;
  struct geometry *g = &r->geometry;
  must(s->rounds.steps > 0 && r->tokens);
  /* Keys and values of masked heads, and of sequences with a source, are never cached. */
  bool cached = !r->source;
  for (size_t i = 0; r->wish && i < stack_form_attentions(f); i++) cached &= !r->wish[i].head_mask;
  if (!cached) r->generation->prefixes = NULL;
  struct stack_rounds *o = r->generation->rounds = stack_alloc(p, 1, sizeof *o);
  if (!o) return p->e->status;
  const double key = key_work(s, &f->kind->self);
  *o = (struct stack_rounds){.arena = p->a,
                             .row_work = s->row_work + query_work(s, &f->kind->self) + key +
                                         query_work(s, &f->cross),
                             .pair_work = pair_work(s, &f->kind->self),
                             .cross_work = pair_work(s, &f->cross),
                             .source_work = key_work(s, &f->cross)};
  if (place_sequences(p) || room_prepare_sources(p) || copy_out_prepare(p) || room_prepare(p))
    return p->e->status;
  size_t logits, rows = 0;
  if (!size_mul(o->at_once, f->embedding.tokens, &logits))
    return error_set(p->e, STATUS_TOO_LARGE, "the logits exceed the address space");
  o->logits = stack_alloc(p, logits, sizeof *o->logits);
  if (p->e->status) return p->e->status;
  /* The geometry of the largest round: of all rows of a round, and of those of an item. */
  const size_t most = rounds_rows(r->generation);
  for (size_t i = 0; i < g->items; i++) {
    rows += g->item[i].q; /* they lie in memory: no sum overflows */
    g->item[i].q = size_min(g->item[i].q, most);
    g->item[i].k = stack_kept_rows(r->generation, i);
  }
  g->moves = true;
  g->q_rows = g->k_rows = size_min(rows, most + o->at_once);
  if (r->source && widen_across(p)) return p->e->status;
  r->tokens = o->token = stack_alloc(p, g->q_rows, sizeof *o->token);
  return p->e->status;
}

/* --- from round to round --- */

/* The work that a round may still take of prompts. */
struct round_left {
  double work;
  size_t rows, least; /* at most, at least */
};

/* How many of the `left` rows of a sequence the round takes. A row whose weights are shown is fed
 * alone, and so are all rows of a prompt whose sequences are one item across. */
static size_t rows_of(const struct stack_rounds *o, const struct stack_sequence *at, size_t left,
                      struct round_left *round) {
  if (left == 1 || o->shows_across) return 1;
  const double work = o->row_work + (double)at->kept * o->pair_work, fit = round->work / work;
  size_t rows = fit > (double)round->rows ? round->rows : fit > 0 ? (size_t)fit : 0;
  rows = size_min(size_min(size_max(rows, round->least), round->rows), left - (o->shows != NULL));
  round->work -= (double)rows * work;
  round->rows -= rows;
  round->least -= size_min(rows, round->least);
  return rows;
}

/* Returns true if the sequence has to wait, because its twin has not computed the prompt yet. Else
 * this round begins with a copy (`at` is set): of the prompt's rows but the last, or of whole
 * blocks only, if the twin has turned keys beyond its prompt. */
static bool waits_for_twin(struct stack_generation *g, struct stack_sequence *at) {
  struct stack_rounds *o = g->rounds;
  if (at->twin == STACK_NO_TWIN || at->copies) return false;
  const struct stack_sequence *twin = &g->sequence[at->twin];
  if (twin->kept + 1 < at->text || twin->copies == o->number) return true;
  const size_t rows = at->text - 1;
  at->kept = twin->turned > rows ? rows / KERNEL_KEYS * KERNEL_KEYS : rows;
  at->copies = o->copied = o->number;
  return false;
}

static void lay_item(struct stack_run *r, size_t index, struct round_left *round) {
  struct stack_generation *generation = r->generation;
  struct stack_sequence *at = &generation->sequence[index];
  const size_t each = stack_each(generation);
  struct stack_rounds *o = generation->rounds;
  struct kept_lineage *lineage = &at->lineage;
  struct geometry *g = &r->geometry;
  at->turned = at->turns;
  at->leaves = at->finish && at->room;
  o->leaving += at->leaves;
  const bool waits = index >= o->begun || at->finish || waits_for_twin(generation, at);
  const size_t chosen = stack_chosen(r, index), left = at->text + chosen - at->kept;
  if (lineage->row && at->weaves) { /* the rows that the last round has woven are a block now */
    lineage->block[lineage->whole / KERNEL_KEYS] = (uint32_t)at->woven;
    lineage->whole += KERNEL_KEYS;
  }
  if (at->opens) at->known = 0; /* the rows after the prompt are not its alone */
  at->weaves = at->opens = false;
  /* A hypothesis continues if it was selected; the first one computes the prompt of all. */
  const bool runs = !o->beams || index % each < o->beams[index / each].search.running;
  const size_t rows = waits || !runs ? 0 : rows_of(o, at, left, round);
  if (!at->finish) r->run.rounds = size_max(r->run.rounds, at->most - chosen);
  if (rows > 0 && lineage->row) { /* its next row is its own */
    must(at->kept - lineage->whole < KERNEL_KEYS);
    lineage->row[at->kept - lineage->whole] = (uint32_t)lineage->own;
  }
  if (!o->beams || index % each == 0) generation->chosen += chosen;
  g->item[index] = (struct item){.q = rows,
                                 .k = index < o->begun ? at->kept + rows : 0,
                                 .q_row = g->q_rows,
                                 .k_row = g->q_rows,
                                 .offset = (int64_t)at->kept};
  memcpy(o->token + g->q_rows, at->fed + at->kept, rows * sizeof *o->token);
  at->asks = rows > 0 && rows == left ? o->asks : STACK_ASKS_NOT;
  if (at->asks != STACK_ASKS_NOT) o->asking[o->asks++] = index;
  if (o->shows) o->shows[index] = at->asks != STACK_ASKS_NOT;
  g->q_rows += rows;
  r->run.work += (double)rows * (o->row_work + (double)(at->kept + rows) * o->pair_work);
}

/* The geometry across: the rows of a prompt's sequences, which are adjacent. Keys are made in the
 * first round alone. */
static void lay_across(struct stack_run *r) {
  const struct stack_rounds *o = r->generation->rounds;
  const size_t each = stack_each(r->generation);
  struct geometry *g = &r->across;
  g->q_rows = r->geometry.q_rows;
  g->k_rows = o->number == 1 ? r->source->geometry.q_rows : 0;
  for (size_t i = 0; i < g->items; i++) {
    const struct item *own = &r->geometry.item[i * each];
    g->item[i].q_row = own->q_row;
    g->item[i].q = 0;
    if (o->shows_across) o->shows_across[i] = false;
    for (size_t j = 0; j < each; j++) {
      g->item[i].q += own[j].q;
      if (o->shows_across) o->shows_across[i] |= o->shows[i * each + j];
    }
    r->run.work += (double)(g->item[i].q * g->item[i].k) * o->cross_work;
  }
}

/* Lays out the next round; false: no sequence continues. */
static bool lay_round(const struct stack *s, struct stack_run *r) {
  struct stack_rounds *o = r->generation->rounds;
  struct geometry *g = &r->geometry;
  const double each = o->row_work + output_work(s); /* of a sequence that continues */
  struct round_left round = {.work = r->generation->round_work > 0
                                         ? r->generation->round_work - each * (double)o->asks
                                         : INFINITY,
                             .rows = rounds_rows(r->generation),
                             .least = ROUND_ROWS_LEAST};
  g->q_rows = o->asks = o->leaving = r->generation->chosen = 0;
  o->number++;
  r->run.work = 0;
  r->run.rounds = 0;
  room_begin(s, r);
  for (size_t i = 0; i < g->items; i++) lay_item(r, i, &round);
  if (o->begun == g->items) o->leaving += o->rooms_left;
  g->k_rows = r->run.rows = g->q_rows;
  if (o->begun < g->items) /* others follow in turn */
    r->run.rounds *= 1 + (g->items - o->begun + o->at_once - 1) / o->at_once;
  r->run.work += (double)o->asks * output_work(s);
  stack_share_rows(s, r);
  if (r->source) lay_across(r);
  if (o->number == 1 && r->source) r->run.work += (double)r->across.k_rows * o->source_work;
  return g->q_rows > 0;
}

void rounds_begin(const struct stack *s, struct stack_run *r) {
  const struct stack_rounds *o = r->generation->rounds;
  const size_t each = stack_each(r->generation);
  r->run.whole = 0;
  for (size_t i = 0; i < r->geometry.items; i++) {
    const struct stack_sequence *at = &r->generation->sequence[i];
    const double most = (double)at->most;
    const bool shares = o->beams && i % each > 0; /* the rows of the first one's prompt */
    const double rows = (shares ? 0 : (double)(at->text - at->kept)) + most;
    const double across = o->source ? (double)o->source[i / each].rows : 0;
    r->run.whole += rows * (o->row_work + across * o->cross_work) + rows * rows / 2 * o->pair_work +
                    most * output_work(s);
  }
  lay_round(s, r);
}

bool rounds_next_round(const struct program *p, struct run *run) {
  const struct stack *s = stack_step_of(p->step[0])->stack;
  struct stack_run *r = stack_run_of(run);
  if (!lay_round(s, r)) return false;
  if (r->generation->next_round) r->generation->next_round(r->generation);
  return true;
}
