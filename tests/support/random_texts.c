/* random_texts: see the header. */
#include "tests/support/random_texts.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/size.h"
#include "tests/support/compare_stack.h"

void random_decoder(struct random_stack *s, uint64_t *state, struct random_stack_kind kind,
                    size_t tokens) {
  random_stack_init(s, state, kind);
  s->form.causal = true;
  for (unsigned i = 0; i < STACK_KINDS; i++)
    s->form.kind[i].self.rope_stretch.trained = 0; /* not with a KV cache */
  random_stack_draw_output(s, *state, tokens ? tokens : 1 + random_below(state, 40));
  random_stack_remake(s);
  must(stack_can_generate(s->stack));
}

struct stack_run *random_texts(const struct random_stack *s, uint64_t *state, size_t items,
                               size_t longest, size_t most, struct arena *a) {
  struct error e = {0};
  struct stack_run *r = stack_run_new(s->stack, a, &e);
  struct stack_generation *g = random_room(a, 1, sizeof *g);
  struct geometry *to = &r->geometry;
  *g = (struct stack_generation){.choice = {.top_p = 1,
                                            .repetition_penalty = 1,
                                            .forced_begin = -1,
                                            .forced_end = -1,
                                            .length_penalty = 1},
                                 .sequence = random_room(a, items, sizeof *g->sequence),
                                 .top = random_below(state, RANDOM_TEXTS_TOP + 1)};
  to->items = items;
  to->item = random_room(a, items, sizeof *to->item);
  for (size_t i = 0; i < items; i++) {
    const size_t n = 1 + random_below(state, longest);
    to->item[i] = (struct item){.q = n, .k = n, .q_row = to->q_rows, .k_row = to->k_rows};
    to->q_rows += n, to->k_rows += n;
    g->sequence[i] = (struct stack_sequence){.item = (uint32_t)i};
    g->sequence[i].most = 1 + random_below(state, size_min(most, s->longest - n + 1));
  }
  int32_t *tokens = random_room(a, to->q_rows, sizeof *tokens);
  for (size_t i = 0; i < to->q_rows; i++)
    tokens[i] = (int32_t)random_below(state, s->form.embedding.tokens);
  r->tokens = tokens;
  r->generation = g;
  r->source = random_source(s, *state, items, a);
  return r;
}

struct stack_run *texts_of(const struct random_stack *s, const struct stack_run *r, size_t first,
                           size_t items, struct arena *a) {
  struct error e = {0};
  struct stack_run *part = stack_run_new(s->stack, a, &e);
  struct stack_generation *g = random_room(a, 1, sizeof *g);
  *g = *r->generation;
  g->sequence = random_room(a, items, sizeof *g->sequence);
  part->geometry.items = items;
  part->geometry.item = random_room(a, items, sizeof(struct item));
  part->embedded = r->embedded;
  part->wish = r->wish;
  part->tokens = r->tokens + r->geometry.item[first].q_row;
  for (size_t i = 0; i < items; i++) {
    struct item *item = &part->geometry.item[i];
    *item = r->geometry.item[first + i];
    item->q_row = item->k_row = part->geometry.q_rows;
    part->geometry.q_rows += item->q, part->geometry.k_rows += item->q;
    g->sequence[i] = (struct stack_sequence){.item = r->generation->sequence[first + i].item,
                                             .most = r->generation->sequence[first + i].most};
  }
  part->generation = g;
  size_t *item = random_room(a, items, sizeof *item);
  for (size_t i = 0; i < items; i++) item[i] = first + i;
  part->source = random_source_of(s, r->source, item, items, a);
  return part;
}

size_t compute_rounds(const struct random_stack *s, struct stack_run **run, size_t runs,
                      double work) {
  void *scratch = aligned_alloc(64, size_round_up(stack_scratch_bytes(s->stack) + 1, 64));
  struct run *first = NULL;
  size_t rounds = 0;
  for (size_t i = runs; i > 0; i--) run[i - 1]->run.next = first, first = &run[i - 1]->run;
  while (first) {
    struct run *again = NULL, **end = &again;
    run_compute(first, work, scratch);
    for (struct run *r = first, *next; r; r = next) {
      next = r->next;
      r->next = NULL;
      struct run *on = atomic_load(&r->fault) ? NULL : run_next_round(r);
      if (on) *end = on, end = &on->next;
    }
    first = again;
    rounds++;
  }
  free(scratch);
  return rounds;
}

void generate(const struct random_stack *s, struct stack_run *r, double work, struct arena *a) {
  prepare_run(s, r, a);
  compute_rounds(s, &r, 1, work);
  /* Further kinds of layers had the rows of each round, and not those of the largest one. */
  must(!r->further || r->further->q_rows == r->geometry.q_rows);
}

struct stack_run *texts_again(const struct random_stack *s, const struct stack_run *r,
                              struct arena *a) {
  return texts_of(s, r, 0, r->geometry.items, a);
}

struct stack_run *whole_text_of(const struct random_stack *s, const struct stack_run *r,
                                size_t item, const int32_t *token, size_t count, struct arena *a) {
  const struct item *text = &r->geometry.item[item];
  const size_t of = item / size_max(r->generation->each, 1);
  struct stack_run *whole = random_run_of_rows(s, text->q + count, a);
  int32_t *all = random_room(a, text->q + count, sizeof *all);
  memcpy(all, r->tokens + text->q_row, text->q * sizeof *all);
  memcpy(all + text->q, token, count * sizeof *all);
  whole->tokens = all;
  whole->source = random_source_of(s, r->source, &of, 1, a);
  return whole;
}

/* --- searches --- */

static int32_t *draw_tokens(const struct random_stack *s, uint64_t *state, size_t count,
                            struct arena *a) {
  int32_t *token = random_room(a, count, sizeof *token);
  for (size_t i = 0; i < count; i++)
    token[i] = (int32_t)random_below(state, s->form.embedding.tokens);
  return token;
}

static void draw_choice(const struct random_stack *s, struct stack_choice *c, uint64_t *state,
                        struct arena *a) {
  static const double penalty[] = {1, 0, -0.7, 0.6, 2};
  c->beams = 2 + random_below(state, RANDOM_BEAMS - 1);
  c->length_penalty = penalty[random_below(state, 5)];
  c->early_stopping = (enum stack_early)random_below(state, 3);
  c->end = draw_tokens(s, state, 3, a);
  c->ends = random_below(state, 4);
  c->stop = draw_tokens(s, state, 2, a);
  c->stops = random_often(state, 30) ? 2 : 0;
  c->banned = draw_tokens(s, state, 2, a);
  c->banned_count = random_often(state, 20) ? 2 : 0;
  if (random_often(state, 20)) c->min_tokens = random_below(state, 6);
  if (random_often(state, 20)) c->repetition_penalty = 1.4;
  if (random_often(state, 20)) c->no_repeat_ngram = 2;
  if (random_often(state, 20)) c->presence_penalty = 0.7;
  if (random_often(state, 20)) c->frequency_penalty = -0.4;
  if (random_often(state, 20)) {
    struct stack_bias *bias = random_room(a, 1, sizeof *bias);
    *bias = (struct stack_bias){draw_tokens(s, state, 1, a)[0], 1.5};
    c->bias = bias, c->biases = 1;
  }
  if (random_often(state, 15)) c->forced_begin = draw_tokens(s, state, 1, a)[0];
  if (random_often(state, 15)) c->forced_end = draw_tokens(s, state, 1, a)[0];
}

struct stack_run *random_search(const struct random_stack *s, uint64_t *state, size_t beams,
                                size_t texts, size_t longest, size_t most, struct arena *a) {
  const struct stack_run *one = random_texts(s, state, texts, longest, most, a);
  struct error e = {0};
  struct stack_run *r = stack_run_new(s->stack, a, &e);
  struct stack_generation *g = random_room(a, 1, sizeof *g);
  *g = *one->generation;
  draw_choice(s, &g->choice, state, a);
  if (beams) g->choice.beams = beams;
  const size_t each = g->each = g->choice.beams, items = texts * each;
  g->sequence = random_room(a, items, sizeof *g->sequence);
  r->geometry.items = items;
  r->geometry.item = random_room(a, items, sizeof(struct item));
  int32_t *token = random_room(a, one->geometry.q_rows * each, sizeof *token);
  for (size_t i = 0; i < items; i++) {
    const struct item *text = &one->geometry.item[i / each];
    struct item *item = &r->geometry.item[i];
    *item = (struct item){
        .q = text->q, .k = text->k, .q_row = r->geometry.q_rows, .k_row = r->geometry.q_rows};
    memcpy(token + item->q_row, one->tokens + text->q_row, text->q * sizeof *token);
    r->geometry.q_rows += text->q;
    g->sequence[i] = (struct stack_sequence){.item = (uint32_t)(i / each),
                                             .sample = (uint32_t)(i % each),
                                             .most = one->generation->sequence[i / each].most};
  }
  r->geometry.k_rows = r->geometry.q_rows;
  r->tokens = token;
  r->generation = g;
  r->source = one->source;
  return r;
}

struct stack_run *search_of(const struct random_stack *s, const struct stack_run *r, size_t first,
                            size_t texts, struct arena *a) {
  struct error e = {0};
  const size_t each = r->generation->each;
  struct stack_run *part = stack_run_new(s->stack, a, &e);
  struct stack_generation *g = random_room(a, 1, sizeof *g);
  size_t *text = random_room(a, texts, sizeof *text);
  *g = *r->generation;
  g->sequence = random_room(a, texts * each, sizeof *g->sequence);
  part->geometry.items = texts * each;
  part->geometry.item = random_room(a, texts * each, sizeof(struct item));
  part->tokens = r->tokens + r->geometry.item[first * each].q_row;
  for (size_t i = 0; i < texts * each; i++) {
    struct item *item = &part->geometry.item[i];
    *item = r->geometry.item[first * each + i];
    item->q_row = item->k_row = part->geometry.q_rows;
    part->geometry.q_rows += item->q, part->geometry.k_rows += item->q;
    const struct stack_sequence *q = &r->generation->sequence[first * each + i];
    g->sequence[i] = (struct stack_sequence){.item = q->item, .sample = q->sample, .most = q->most};
  }
  for (size_t i = 0; i < texts; i++) text[i] = first + i;
  part->generation = g;
  part->wish = r->wish;
  part->embedded = r->embedded;
  part->source = random_source_of(s, r->source, text, texts, a);
  return part;
}
