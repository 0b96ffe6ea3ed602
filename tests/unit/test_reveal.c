/* test_reveal: what runs that generate show of their sequences: the hidden states and attention
 * weights of the passes that chose the tokens have the bits of a run over the whole text. Runs at
 * the level that ATTEND_CPU allows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/size.h"
#include "core/generate/prefix.h"
#include "core/reference/stack_ref.h"
#include "tests/support/compare_stack.h"
#include "tests/support/random_case.h"
#include "tests/support/rounds.h"
#include "tests/support/short_memory.h"

enum { ROUNDS = 30 };

static const struct random_stack_kind some = {
    .layers_most = 3, .longest = 80, .tokens = true, .bytes = true};
static const struct random_stack_kind far = {
    .layers_least = 1, .layers_most = 2, .longest = 700, .tokens = true, .bytes = true};

/* --- beside a run over the whole text --- */

struct beside {
  const struct random_stack *s;
  const struct stack_run *r;     /* that generated */
  const struct stack_run *whole; /* over one of its sequences, with the same wishes */
  size_t item, text;             /* which one; its text's tokens */
};

static const struct stack_sequence *sequence_of(const struct beside *b) {
  return &b->r->generation->sequence[b->item];
}

/* Zeros are expected behind `count` of them. */
static void are_zeros(const float *x, size_t count, size_t all) {
  for (size_t i = count; i < all; i++) assert_true(x[i] == 0);
}

static void rows_are_those(const struct beside *b, const float *rows, const float *whole) {
  const struct stack_sequence *q = sequence_of(b);
  const size_t d = b->s->form.width, count = stack_sequence_count(q);
  assert_true(!rows == !whole);
  if (!rows) return;
  rows += q->row * d;
  assert_memory_equal(rows, whole + (b->text - 1) * d, count * d * sizeof *rows);
  are_zeros(rows, count * d, q->most * d);
}

/* Of an attention: its heads, the keys that a run over the whole has, and those that a row has room
 * for. */
struct shape {
  size_t heads, keys, room;
};

static struct shape shape_of(const struct beside *b, size_t number) {
  const struct stack_form *f = &b->s->form;
  const struct stack_sequence *q = sequence_of(b);
  if (number < f->layers)
    return (struct shape){f->kind->self.heads, b->text + stack_sequence_count(q) - 1, q->keys};
  const size_t keys = b->whole->source->geometry.item[0].q;
  return (struct shape){f->cross.heads, keys, keys};
}

static void weights_are_those(const struct beside *b, size_t number) {
  const struct stack_sequence *q = sequence_of(b);
  const struct stack_shown *shown = &b->r->shown[number], *right = &b->whole->shown[number];
  const size_t count = stack_sequence_count(q), n = b->text + count - 1;
  const struct shape s = shape_of(b, number);
  const bool average = b->r->wish[number].weights == STACK_WEIGHTS_AVERAGE;
  for (size_t h = 0; h < (average ? 1 : s.heads); h++) {
    const float *got = shown->weights + shown->weights_at[b->item] + h * q->most * s.room;
    const float *of = right->weights + (h * n + b->text - 1) * s.keys;
    for (size_t t = 0; t < count; t++) {
      assert_memory_equal(got + t * s.room, of + t * s.keys, s.keys * sizeof *got);
      are_zeros(got + t * s.room, s.keys, s.room);
    }
    are_zeros(got, count * s.room, q->most * s.room);
  }
}

static void thumbnails_are_those(const struct beside *b, size_t layer, struct arena *a) {
  const struct stack_sequence *q = sequence_of(b);
  const struct stack_shown *shown = &b->r->shown[layer], *right = &b->whole->shown[layer];
  const size_t count = stack_sequence_count(q), n = b->text + count - 1;
  const size_t most = b->r->wish[layer].thumbnail;
  const struct shape s = shape_of(b, layer);
  const size_t bytes = size_min(count, most) * size_min(s.keys, most);
  double *weights = random_room(a, count * s.keys, sizeof *weights);
  uint8_t picture[64 * 64];
  for (size_t h = 0; h < s.heads; h++) {
    const float *of = right->weights + (h * n + b->text - 1) * s.keys;
    for (size_t i = 0; i < count * s.keys; i++) weights[i] = of[i];
    stack_ref_thumbnail(weights, count, s.keys, most, picture);
    assert_memory_equal(shown->thumbnails + shown->thumbnails_at[b->item] + h * bytes, picture,
                        bytes);
  }
}

/* The same wishes, but thumbnails are of weights that are to be seen. */
static const struct stack_wish *wishes_of_whole(const struct random_stack *s,
                                                const struct stack_run *r, struct arena *a) {
  const size_t numbers = stack_form_attentions(&s->form);
  struct stack_wish *wish = random_room(a, numbers, sizeof *wish);
  if (!r->wish) return NULL;
  for (size_t l = 0; l < numbers; l++) {
    wish[l] = r->wish[l];
    if (wish[l].weights == STACK_WEIGHTS_THUMBNAILS) wish[l].weights = STACK_WEIGHTS_PER_HEAD;
  }
  return wish;
}

static struct stack_run *run_over_whole(const struct random_stack *s, const struct stack_run *r,
                                        const struct stack_run *as, size_t i, struct arena *a) {
  const struct stack_sequence *q = &r->generation->sequence[i];
  struct stack_run *whole = whole_text_of(s, as, i, q->token, stack_sequence_count(q) - 1, a);
  whole->embedded = r->embedded;
  whole->wish = wishes_of_whole(s, r, a);
  prepare_run(s, whole, a);
  compute_runs(s, whole, 1e7);
  return whole;
}

/* Is all shown that was asked for, and right? `as` is the request as it was. */
static void is_shown(const struct random_stack *s, const struct stack_run *r,
                     const struct stack_run *as, struct arena *a) {
  for (size_t i = 0; i < r->geometry.items; i++) {
    if (stack_sequence_count(&r->generation->sequence[i]) == 0) continue; /* it was not found */
    const struct beside b = {s, r, run_over_whole(s, r, as, i, a), i, as->geometry.item[i].q};
    rows_are_those(&b, r->embedding, b.whole->embedding);
    assert_true(!r->shown == !r->wish);
    for (size_t l = 0; r->wish && l < stack_form_attentions(&s->form); l++) {
      const struct stack_shown *shown = &r->shown[l], *right = &b.whole->shown[l];
      rows_are_those(&b, shown->hidden, right->hidden);
      rows_are_those(&b, shown->input, right->input);
      assert_true(!shown->weights == !right->weights);
      assert_true(!shown->thumbnails == (r->wish[l].weights != STACK_WEIGHTS_THUMBNAILS));
      if (shown->weights) weights_are_those(&b, l);
      if (shown->thumbnails) thumbnails_are_those(&b, l, a);
    }
  }
}

static struct stack_run *draw_texts(const struct random_stack *s, uint64_t *state, size_t items,
                                    size_t longest, size_t most, struct arena *a) {
  struct stack_run *r = random_texts(s, state, items, longest, most, a);
  r->embedded = random_often(state, 50);
  if (random_often(state, 85)) random_run_draw_wishes(s, r, state, a);
  return r;
}

/* --- tests --- */

static void what_is_shown_has_the_bits_of_the_whole(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(ROUNDS); round++) {
    struct random_case c;
    random_case_decoder(&c, 100 + round, some, 1 + round);
    struct stack_run *r = draw_texts(&c.s, &c.state, 1 + random_below(&c.state, 5), 40, 30, &c.a);
    struct stack_run *as = texts_again(&c.s, r, &c.a);
    generate(&c.s, r, pow(10, (double)(round % 9)), &c.a);
    is_shown(&c.s, r, as, &c.a);
    random_case_done(&c);
  }
}

/* Texts of several pieces, of which the last row alone is shown, and several sequences of one. */
static void texts_in_pieces_are_shown_by_their_last_row(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(4); round++) {
    struct random_case c;
    random_case_decoder(&c, 200 + round, far, 30);
    struct stack_run *r = draw_texts(&c.s, &c.state, 3, 600, 12, &c.a);
    if (!r->wish) random_run_draw_wishes(&c.s, r, &c.state, &c.a);
    struct item *item = r->geometry.item;
    item[1] = item[0]; /* two sequences of the same text */
    int32_t *token = random_room(&c.a, 2 * item[0].q + item[2].q, sizeof *token);
    memcpy(token, r->tokens, item[0].q * sizeof *token);
    memcpy(token + item[0].q, r->tokens, item[0].q * sizeof *token);
    memcpy(token + 2 * item[0].q, r->tokens + item[2].q_row, item[2].q * sizeof *token);
    item[1].q_row = item[1].k_row = item[0].q;
    item[2].q_row = item[2].k_row = 2 * item[0].q;
    r->geometry.q_rows = r->geometry.k_rows = 2 * item[0].q + item[2].q;
    r->tokens = token;
    for (size_t i = 0; i < 3; i++)
      r->generation->sequence[i].most = size_min(r->generation->sequence[i].most, 700 - item[i].q);
    struct stack_run *as = texts_again(&c.s, r, &c.a);
    generate(&c.s, r, 1e6, &c.a);
    is_shown(&c.s, r, as, &c.a);
    random_case_done(&c);
  }
}

/* Some end long before they may: behind that are zeros. */
static void behind_the_end_are_zeros(void **unused) {
  (void)unused;
  size_t early = 0;
  for (uint64_t round = 0; round < rounds(8); round++) {
    struct random_case c;
    random_case_decoder(&c, 300 + round, some, 4);
    struct stack_run *r = draw_texts(&c.s, &c.state, 4, 20, 30, &c.a);
    static const int32_t end[] = {2};
    r->generation->choice.end = end, r->generation->choice.ends = 1;
    r->generation->choice.temperature = 2;
    struct stack_run *as = texts_again(&c.s, r, &c.a);
    generate(&c.s, r, 1e6, &c.a);
    is_shown(&c.s, r, as, &c.a);
    for (size_t i = 0; i < 4; i++)
      early += stack_sequence_count(&r->generation->sequence[i]) < r->generation->sequence[i].most;
    random_case_done(&c);
  }
  assert_true(early > rounds(8) / 2);
}

/* Runs that show, and runs that do not, are computed together; what is known of texts is used. */
static void company_and_what_is_known_change_nothing(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < 6; round++) {
    struct random_case c;
    struct budget budget;
    struct error e = {0};
    struct stack_run *run[4], *as[4];
    budget_init(&budget, SIZE_MAX / 2);
    random_case_decoder(&c, 400 + round, far, 30);
    struct prefixes *known = prefixes_new(100 << 20, &budget, &e);
    for (size_t i = 0; i < 4; i++) {
      run[i] = draw_texts(&c.s, &c.state, 2, 200, 9, &c.a);
      run[i]->wish = i == 1 ? NULL : run[i]->wish;
      as[i] = texts_again(&c.s, run[i], &c.a);
    }
    for (int turn = 0; turn < 2; turn++) { /* the second one finds all texts */
      struct stack_run *these[4];
      for (size_t i = 0; i < 4; i++) {
        these[i] = texts_again(&c.s, as[i], &c.a);
        these[i]->generation->prefixes = known;
        prepare_run(&c.s, these[i], &c.a);
        run[i] = these[i];
      }
      compute_rounds(&c.s, these, 4, 1e5);
      for (size_t i = 0; i < 4; i++) {
        is_shown(&c.s, run[i], as[i], &c.a);
        stack_generation_end(run[i]->generation, 2);
      }
    }
    prefixes_free(known);
    random_case_done(&c);
  }
}

/* Of a search each sequence shows the passes of the ways that led to it. */
static void what_was_found_is_shown(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(ROUNDS); round++) {
    struct random_case c;
    random_case_decoder(&c, 600 + round, round % 8 ? some : far, 0);
    struct stack_run *as = random_search(&c.s, &c.state, 0, 2, 20, round % 8 ? 12 : 90, &c.a);
    as->embedded = random_often(&c.state, 50);
    if (random_often(&c.state, 85)) random_run_draw_wishes(&c.s, as, &c.state, &c.a);
    as->generation->choice.banned_count = as->generation->choice.no_repeat_ngram = 0;
    struct stack_run *r = search_of(&c.s, as, 0, 2, &c.a);
    generate(&c.s, r, random_work(&c.state), &c.a);
    if (!atomic_load(&r->run.fault)) is_shown(&c.s, r, as, &c.a);
    random_case_done(&c);
  }
}

/* Nothing of a round needs memory that preparing did not reserve, whatever budget there is. */
static void any_budget_may_be_too_small(void **unused) {
  (void)unused;
  struct random_case c;
  random_case_decoder(&c, 500, far, 30);
  struct stack_run *as = random_texts(&c.s, &c.state, 2, 20, 9, &c.a);
  struct stack_wish *wish = random_run_wishes(&c.s, as, &c.a);
  as->embedded = true;
  for (size_t l = 0; l < c.s.form.layers; l++)
    wish[l] = (struct stack_wish){.weights = l ? STACK_WEIGHTS_PER_HEAD : STACK_WEIGHTS_THUMBNAILS,
                                  .thumbnail = 8,
                                  .hidden = true,
                                  .input = true};
  struct arena a;
  struct short_memory m = {.arena = &a};
  while (short_memory_next(&m, 700)) {
    struct error e = {0};
    struct stack_run *r = texts_again(&c.s, as, &c.a);
    prepare_source(&c.s, r, &c.a);
    const enum status status = stack_prepare(c.s.stack, r, &a, &e);
    if (!short_memory_is_enough(&m, status, &e)) continue;
    const size_t bytes = a.bytes;
    compute_rounds(&c.s, &r, 1, 1e6);
    is_shown(&c.s, r, as, &c.a);
    assert_true(a.bytes <= bytes); /* what is over is given back */
  }
  random_case_done(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_shown_has_the_bits_of_the_whole),
      cmocka_unit_test(texts_in_pieces_are_shown_by_their_last_row),
      cmocka_unit_test(behind_the_end_are_zeros),
      cmocka_unit_test(company_and_what_is_known_change_nothing),
      cmocka_unit_test(what_was_found_is_shown),
      cmocka_unit_test(any_budget_may_be_too_small),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
