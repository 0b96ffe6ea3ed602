/* test_generate: sequences that go on from texts, token by token: each has the bits of a run over
 * its whole text, whatever is computed beside it, however the rounds are cut, and by how many
 * threads. Runs at the level that ATTEND_CPU allows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/size.h"
#include "core/generate/generate_parts.h"
#include "core/generate/prefix.h"
#include "tests/support/compare_stack.h"
#include "tests/support/poisoned_run.h"
#include "tests/support/pooled.h"
#include "tests/support/random_case.h"
#include "tests/support/rounds.h"
#include "tests/support/same_sequence.h"
#include "tests/support/short_memory.h"

enum { RUNS = 5, TOP = RANDOM_TEXTS_TOP };

static const struct random_stack_kind some = {
    .layers_most = 3, .longest = 80, .tokens = true, .bytes = true};
static const struct random_stack_kind wide = {.layers_least = 1,
                                              .layers_most = 2,
                                              .longest = 150,
                                              .wide = true,
                                              .tokens = true,
                                              .bytes = true};
static const struct random_stack_kind far = {
    .layers_most = 2, .longest = 900, .tokens = true, .bytes = true};
static const struct random_stack_kind lone = {
    .layers_most = 2, .longest = 900, .tokens = true, .alone = true, .bytes = true};

/* --- what is right --- */

/* A run over the whole of one sequence: its targets are what was chosen. */
static struct stack_run *scored(const struct random_stack *s, const struct stack_run *r,
                                const struct stack_run *as, size_t item, struct arena *a) {
  const struct stack_sequence *q = &r->generation->sequence[item];
  const size_t n = as->geometry.item[item].q, rows = n + atomic_load(&q->count) - 1;
  struct stack_run *whole = whole_text_of(s, as, item, q->token, rows - n, a);
  int32_t *targets = random_room(a, rows, sizeof *targets);
  for (size_t i = 0; i < rows; i++) targets[i] = i + 1 < n ? -1 : q->token[i + 1 - n];
  whole->targets = targets;
  whole->top = size_max(r->generation->top, 1);
  prepare_run(s, whole, a);
  compute_runs(s, whole, 1e7);
  return whole;
}

/* Greedily: each token is the likeliest, and its numbers are those of a run over the whole. */
static void is_as_scored(const struct random_stack *s, const struct stack_run *r,
                         const struct stack_run *as, size_t item, struct arena *a) {
  const struct stack_generation *g = r->generation;
  const struct stack_sequence *q = &g->sequence[item];
  const struct stack_run *whole = scored(s, r, as, item, a);
  const size_t n = as->geometry.item[item].q, chosen = atomic_load(&q->count);
  double score = 0;
  for (size_t t = 0; t < chosen; t++) {
    const size_t row = n - 1 + t;
    assert_int_equal(q->token[t], whole->top_tokens[row * whole->top_count]);
    assert_memory_equal(&q->log_probability[t], &whole->log_probabilities[row], sizeof(float));
    assert_memory_equal(q->top_token + t * g->top_count, whole->top_tokens + row * whole->top_count,
                        g->top_count * sizeof(int32_t));
    assert_memory_equal(q->top_log_probability + t * g->top_count,
                        whole->top_log_probabilities + row * whole->top_count,
                        g->top_count * sizeof(float));
    score += q->log_probability[t];
  }
  assert_true(q->score == score);
}

static void sequences_are_as_scored(const struct random_stack *s, const struct stack_run *r,
                                    const struct stack_run *as, struct arena *a) {
  for (size_t i = 0; i < r->geometry.items; i++) {
    const struct stack_sequence *q = &r->generation->sequence[i];
    assert_int_equal(q->finish, STACK_FINISH_LENGTH);
    assert_int_equal(atomic_load(&q->count), q->most);
    is_as_scored(s, r, as, i, a);
  }
}

/* --- the same bits --- */

static void as_scored(uint64_t seed, struct random_stack_kind kind, size_t tokens, size_t items,
                      size_t longest, size_t most) {
  struct random_case c;
  random_case_decoder(&c, seed, kind, tokens);
  struct stack_run *r =
      random_texts(&c.s, &c.state, 1 + random_below(&c.state, items), longest, most, &c.a);
  struct stack_run *as = texts_again(&c.s, r, &c.a);
  generate(&c.s, r, random_work(&c.state), &c.a);
  sequences_are_as_scored(&c.s, r, as, &c.a);
  random_case_done(&c);
}

static void sequences_have_the_bits_of_the_whole(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(40); round++)
    as_scored(100 + round, some, 1 + round % 50, 6, 40, 30);
}

static void wide_models_share_out_columns(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(4); round++)
    as_scored(200 + round, wide, round % 2 ? 1500 : 6000, 3, 20, 6);
}

/* Texts of several pieces, beside short ones. */
static void long_texts_come_in_pieces(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(4); round++) as_scored(300 + round, far, 30, 4, 800, 20);
}

/* A short text's tokens do not wait for the end of a long one. */
static void a_long_text_does_not_hold_up_others(void **unused) {
  (void)unused;
  struct random_case c;
  random_case_decoder(&c, 400, far, 30);
  struct stack_run *r = random_texts(&c.s, &c.state, 2, 1, 1, &c.a);
  static int32_t tokens[801];
  const struct item item[2] = {{.q = 1, .k = 1}, {.q = 800, .k = 800, .q_row = 1, .k_row = 1}};
  memcpy(r->geometry.item, item, sizeof item);
  r->geometry.q_rows = r->geometry.k_rows = 801;
  r->tokens = tokens;
  r->generation->sequence[0].most = 2;
  r->generation->sequence[1].most = 1;
  prepare_run(&c.s, r, &c.a);
  assert_int_equal(compute_rounds(&c.s, &r, 1, 1e6), 2);
  random_case_done(&c);
}

static void company_changes_no_bit(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(20); round++) {
    struct random_case c;
    random_case_decoder(&c, 500 + round, some, 0);
    struct stack_run *r = random_texts(&c.s, &c.state, 6, 20, 20, &c.a);
    struct stack_run *as = texts_again(&c.s, r, &c.a);
    generate(&c.s, r, random_work(&c.state), &c.a);
    for (size_t i = 0; i < 6; i++) {
      struct stack_run *alone = texts_of(&c.s, as, i, 1, &c.a);
      generate(&c.s, alone, random_work(&c.state), &c.a);
      same_sequence(r, i, alone, 0);
    }
    random_case_done(&c);
  }
}

/* What is known of a text's beginning changes no bit: nothing, some blocks of it, all of them, and
 * of texts in the same run the one what the other has made. */
static void what_is_known_changes_no_bit(void **unused) {
  (void)unused;
  size_t recalled = 0;
  for (uint64_t seed = 0; seed < rounds(12); seed++) {
    struct random_case c;
    struct budget budget;
    struct error e = {0};
    budget_init(&budget, SIZE_MAX / 2);
    random_case_decoder(&c, 900 + seed, far, 0);
    struct prefixes *known = prefixes_new(100 << 20, &budget, &e);
    for (size_t turn = 0; turn < 4; turn++) {
      struct stack_run *r = random_texts(&c.s, &c.state, 5, 500, 80, &c.a);
      int32_t *token = (int32_t *)r->tokens;
      for (size_t i = 0; i < r->geometry.items; i++) { /* most texts begin alike */
        const struct item *item = &r->geometry.item[i];
        const size_t same = random_often(&c.state, 80) ? random_below(&c.state, item->q + 1) : 0;
        for (size_t t = 0; t < same; t++)
          token[item->q_row + t] = (int32_t)(t * 7 % c.s.form.embedding.tokens);
      }
      struct stack_run *as = texts_again(&c.s, r, &c.a), *plain = texts_again(&c.s, r, &c.a);
      r->generation->prefixes = known;
      generate(&c.s, r, random_work(&c.state), &c.a);
      generate(&c.s, plain, random_work(&c.state), &c.a);
      same_sequences(plain, r);
      if (r->generation->choice.temperature == 0) sequences_are_as_scored(&c.s, r, as, &c.a);
      for (size_t i = 0; i < r->geometry.items; i++) {
        const struct stack_sequence *q = &r->generation->sequence[i];
        assert_true(q->recalled % STACK_PREFIX_ROWS == 0 && q->recalled < as->geometry.item[i].q);
        assert_int_equal(plain->generation->sequence[i].recalled, 0);
        recalled += q->recalled;
      }
      stack_generation_end(r->generation, r->geometry.items);
    }
    assert_true(budget.used == prefixes_bytes(known));
    prefixes_free(known);
    assert_true(budget.used == 0);
    random_case_done(&c);
  }
  assert_true(recalled > 80 * rounds(12));
}

/* Sequences of one text, side by side: it goes through the layers once, and each has the bits that
 * it has alone. */
static void a_text_of_several_sequences_is_computed_once(void **unused) {
  (void)unused;
  for (uint64_t seed = 0; seed < rounds(8); seed++) {
    struct random_case c;
    struct budget budget;
    struct error e = {0};
    budget_init(&budget, SIZE_MAX / 2);
    random_case_decoder(&c, 40 + seed, lone, 0);
    struct stack_run *r = random_texts(&c.s, &c.state, 6, 600, 40, &c.a);
    int32_t *token = (int32_t *)r->tokens;
    struct item *item = r->geometry.item;
    const size_t n = item[1].q =
        item[1].k; /* items 1, 2, 3 have one text; and 4, 5, too short a one */
    for (size_t i = 2; i < 6; i++) {
      item[i].q = item[i].k = i < 4 ? n : 1;
      item[i].q_row = item[i].k_row = item[i - 1].q_row + item[i - 1].q;
    }
    r->geometry.q_rows = r->geometry.k_rows = item[5].q_row + 1;
    token = random_room(&c.a, r->geometry.q_rows, sizeof *token);
    for (size_t i = 0; i < r->geometry.q_rows; i++)
      token[i] = (int32_t)random_below(&c.state, c.s.form.embedding.tokens);
    for (size_t i = 2; i < 4; i++)
      memcpy(token + item[i].q_row, token + item[1].q_row, n * sizeof *token);
    token[item[5].q_row] = token[item[4].q_row];
    r->tokens = token;
    r->generation->choice.temperature = 1;
    for (size_t i = 0; i < 6; i++) {
      struct stack_sequence *q = &r->generation->sequence[i];
      *q = (struct stack_sequence){.item = 1, .sample = (uint32_t)i, .most = 1 + seed * 5};
    }
    struct stack_run *alone[6];
    for (size_t i = 0; i < 6; i++) {
      alone[i] = texts_of(&c.s, r, i, 1, &c.a);
      alone[i]->generation->sequence[0].sample = (uint32_t)i;
      generate(&c.s, alone[i], random_work(&c.state), &c.a);
    }
    const struct layer_shape *h = &c.s.form.kind->self;
    const size_t rows = STACK_PREFIX_ROWS * h->kv_heads * (h->key_head_size + h->value_head_size);
    const size_t block = sizeof(struct prefix_block) + c.s.form.layers * (2 + rows) * sizeof(float);
    size_t blocks = 0; /* that may be kept: of copies none are */
    for (size_t i = 0; i < 6; i++)
      if (i < 2 || i > 3) blocks += (item[i].q + 1 + seed * 5 - 1) / STACK_PREFIX_ROWS;
    if (seed % 2) r->generation->prefixes = prefixes_new(64 << 20, &budget, &e);
    const size_t first = item[0].q;
    prepare_run(&c.s, r, &c.a);
    assert_int_equal(r->geometry.q_rows,
                     size_min(first, 512) + size_min(n, 512 - size_min(first, 512)) + 2);
    struct stack_run *run = r;
    compute_rounds(&c.s, &run, 1, random_work(&c.state));
    for (size_t i = 0; i < 6; i++) same_sequence(r, i, alone[i], 0);
    stack_generation_end(r->generation, 6);
    assert_true(budget.used <= blocks * block);
    prefixes_free(r->generation->prefixes);
    random_case_done(&c);
  }
}

/* A whole text that is known again: all blocks but that of the last token are recalled, also those
 * of what was generated; nothing by another stack; and a run that is not computed gives all back.
 */
static void a_text_that_goes_on_is_known(void **unused) {
  (void)unused;
  struct random_case c;
  struct random_stack other;
  struct budget budget;
  struct error e = {0};
  budget_init(&budget, SIZE_MAX / 2);
  struct random_stack_kind kind = far;
  kind.layers_least = 1;
  random_case_decoder(&c, 77, kind, 0);
  struct prefixes *known = prefixes_new(100 << 20, &budget, &e);
  struct stack_run *r = random_texts(&c.s, &c.state, 1, 1, 1, &c.a);
  enum { TEXT = 150, MORE = 200 };
  int32_t *token = random_room(&c.a, TEXT + MORE, sizeof *token);
  for (size_t i = 0; i < TEXT; i++) token[i] = (int32_t)(i % c.s.form.embedding.tokens);
  r->tokens = token;
  r->geometry.item[0] = (struct item){.q = TEXT, .k = TEXT};
  r->geometry.q_rows = r->geometry.k_rows = TEXT;
  r->generation->sequence[0].most = MORE;
  r->generation->prefixes = known;
  struct stack_run *again = texts_again(&c.s, r, &c.a);
  generate(&c.s, r, 1e6, &c.a);
  assert_int_equal(r->generation->sequence[0].recalled, 0);
  memcpy(token + TEXT, r->generation->sequence[0].token, MORE * sizeof *token);
  again->tokens = token;
  again->geometry.item[0].q = again->geometry.item[0].k = TEXT + MORE;
  again->geometry.q_rows = again->geometry.k_rows = TEXT + MORE;
  again->generation->sequence[0].most = 3;
  struct stack_run *left = texts_again(&c.s, again, &c.a), *plain = texts_again(&c.s, again, &c.a);
  plain->generation->prefixes = NULL;
  generate(&c.s, plain, 1e6, &c.a);
  generate(&c.s, again, 1e6, &c.a);
  for (size_t l = 0; l < c.s.form.layers; l++) { /* by these is seen what may leave float32 */
    const struct kept_pair *x = again->generation->rounds->kept[l],
                           *y = plain->generation->rounds->kept[l];
    assert_true(atomic_load(&x->key.top) >= atomic_load(&y->key.top));
    assert_true(atomic_load(&x->value.top) >= atomic_load(&y->value.top));
  }
  assert_int_equal(again->generation->sequence[0].recalled, (TEXT + MORE - 1) / 64 * 64);
  prepare_run(&c.s, left, &c.a);
  stack_generation_end(left->generation, 1);
  stack_generation_end(left->generation, 1);
  memcpy(&other, &c.s, sizeof c.s);
  random_stack_make(&other);
  struct stack_run *foreign = texts_again(&other, left, &c.a);
  foreign->geometry.item[0] = (struct item){.q = TEXT, .k = TEXT};
  foreign->geometry.q_rows = foreign->geometry.k_rows = TEXT;
  foreign->tokens = token;
  generate(&other, foreign, 1e6, &c.a);
  assert_int_equal(foreign->generation->sequence[0].recalled, 0);
  prefixes_free(known);
  assert_true(budget.used == 0);
  stack_free(other.stack);
  random_case_done(&c);
}

static void merging_changes_no_bit(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(16); round++) {
    struct random_case c;
    random_case_decoder(&c, 600 + round, round ? some : wide, round ? 0 : 600);
    struct stack_run *merged[RUNS], *alone[RUNS];
    for (size_t i = 0; i < RUNS; i++) {
      merged[i] = random_texts(&c.s, &c.state, 1 + random_below(&c.state, 3), 20, 12, &c.a);
      alone[i] = texts_again(&c.s, merged[i], &c.a);
      generate(&c.s, alone[i], random_work(&c.state), &c.a);
      prepare_run(&c.s, merged[i], &c.a);
    }
    compute_rounds(&c.s, merged, RUNS, random_work(&c.state));
    for (size_t i = 0; i < RUNS; i++) same_sequences(merged[i], alone[i]);
    random_case_done(&c);
  }
}

/* --- threads --- */

/* With a source, which is then computed first, or with none. */
static void computed_by(size_t workers, size_t seats, struct random_stack_kind kind, size_t tokens,
                        bool source) {
  enum { JOBS = 9 };
  struct random_case c;
  struct arena own[JOBS]; /* to which a run gives memory back */
  struct stack_run *run[JOBS], *alone[JOBS];
  struct run *first[JOBS];
  kind.alone = !source;
  (source ? random_case_pair : random_case_decoder)(&c, 700 + workers, kind, tokens);
  for (size_t i = 0; i < JOBS; i++) {
    run[i] = random_texts(&c.s, &c.state, 1 + i % 4, i % 5 ? 10 : c.s.longest - 30, 10, &c.a);
    alone[i] = texts_again(&c.s, run[i], &c.a);
    generate(&c.s, alone[i], 1e12, &c.a);
    arena_init(&own[i], NULL);
    first[i] = prepare_chain(&c.s, run[i], &own[i]);
  }
  pooled_compute(workers, seats, chain_scratch_bytes(&c.s), first, JOBS);
  for (size_t i = 0; i < JOBS; i++) {
    same_sequences(run[i], alone[i]);
    arena_free(&own[i]);
  }
  random_case_done(&c);
}

static void workers_change_no_bit(void **unused) {
  (void)unused;
  static const size_t workers[] = {1, 2, 4};
  for (unsigned source = 0; source < 2; source++) {
    for (size_t i = 0; i < 3; i++) computed_by(workers[i], 0, some, 0, source);
    computed_by(2, 0, wide, 600, source);
    computed_by(2, 0, far, 0, source);
    computed_by(2, 2, some, 0, source);
  }
}

/* --- the end of a sequence --- */

/* The first token that is chosen at step `t` and not before, or -1. */
static int32_t first_seen(const struct stack_sequence *q, size_t t) {
  for (size_t i = 0; i < t; i++)
    if (q->token[i] == q->token[t]) return -1;
  return q->token[t];
}

static void sequences_end_at_every_step(void **unused) {
  (void)unused;
  size_t ended = 0;
  for (uint64_t round = 0; round < 10; round++) {
    struct random_case c;
    random_case_decoder(&c, 800 + round, some, 200);
    struct stack_run *r = random_texts(&c.s, &c.state, 4, 10, 12, &c.a),
                     *as = texts_again(&c.s, r, &c.a);
    generate(&c.s, r, 1e6, &c.a);
    const struct stack_sequence *q = r->generation->sequence;
    for (size_t t = 0; t < q->most; t++) {
      const int32_t last[1] = {first_seen(q, t)};
      struct stack_run *ends = texts_again(&c.s, as, &c.a);
      struct stack_choice *choice = &ends->generation->choice;
      if (last[0] < 0) continue;
      if (t % 2)
        choice->end = last, choice->ends = 1;
      else
        choice->stop = last, choice->stops = 1;
      generate(&c.s, ends, random_work(&c.state), &c.a);
      const struct stack_sequence *e = ends->generation->sequence;
      assert_int_equal(e->finish, t % 2 ? STACK_FINISH_END : STACK_FINISH_STOP);
      assert_int_equal(atomic_load(&e->count), t + 1);
      assert_memory_equal(e->token, q->token, (t + 1) * sizeof *q->token);
      assert_memory_equal(e->log_probability, q->log_probability, (t + 1) * sizeof(float));
      ended++;
    }
    random_case_done(&c);
  }
  assert_true(ended > 10);
}

/* --- what is asked beside --- */

static size_t moves;
static void count_move(struct stack_generation *g) { moves += g->sequence != NULL; }

static void each_round_but_the_last_is_told(void **unused) {
  (void)unused;
  struct random_case c;
  random_case_decoder(&c, 900, some, 0);
  struct stack_run *r = random_texts(&c.s, &c.state, 1, 5, 1, &c.a);
  r->generation->sequence[0].most = 7;
  r->generation->next_round = count_move;
  moves = 0;
  generate(&c.s, r, 1e6, &c.a);
  assert_int_equal(moves, 6);
  random_case_done(&c);
}

/* --- what listens --- */

enum { HEARD = 64 };

struct listening {
  struct stack_listener listener;
  const struct stack_generation *generation;
  size_t count[HEARD]; /* tokens that were heard of each sequence */
  size_t ends, fails;  /* behind so many; 0: never */
};

static enum stack_finish hear(struct stack_listener *l, size_t item, size_t count,
                              enum stack_finish finish) {
  struct listening *k = (struct listening *)l;
  const struct stack_sequence *q = &k->generation->sequence[item];
  assert_true(item < HEARD && stack_sequence_count(q) < count);
  assert_int_equal(count, k->generation->choice.beams > 1 ? count : k->count[item] + 1);
  k->count[item] = count;
  if (count == k->fails) return STACK_FINISH_FAILED;
  return count == k->ends ? STACK_FINISH_STOP : finish;
}

static enum status fault(const struct stack_listener *l, struct error *e) {
  return error_set(e, STATUS_OVERLOADED, "it failed behind %zu",
                   ((const struct listening *)l)->fails);
}

static void listen(struct listening *k, struct stack_run *r, size_t ends, size_t fails) {
  *k = (struct listening){{hear, fault}, r->generation, {0}, ends, fails};
  r->generation->listener = &k->listener;
}

static void a_listener_hears_each_token_and_ends_sequences(void **unused) {
  (void)unused;
  struct random_case c;
  struct listening k;
  random_case_decoder(&c, 960, some, 100);
  struct stack_run *r = random_texts(&c.s, &c.state, 3, 5, 1, &c.a),
                   *as = texts_again(&c.s, r, &c.a);
  for (size_t i = 0; i < 3; i++)
    as->generation->sequence[i].most = r->generation->sequence[i].most = 8;
  generate(&c.s, r, 1e6, &c.a);
  for (size_t ends = 0; ends < 10; ends++) {
    struct stack_run *heard = texts_again(&c.s, as, &c.a);
    const size_t count = ends == 0 || ends > 8 ? 8 : ends;
    listen(&k, heard, ends, 0);
    generate(&c.s, heard, random_work(&c.state), &c.a);
    for (size_t i = 0; i < 3; i++) {
      const struct stack_sequence *q = &heard->generation->sequence[i];
      assert_int_equal(k.count[i], count);
      assert_int_equal(stack_sequence_count(q), count);
      assert_int_equal(q->finish, ends == count ? STACK_FINISH_STOP : STACK_FINISH_LENGTH);
      assert_memory_equal(q->token, r->generation->sequence[i].token, count * sizeof *q->token);
    }
  }
  random_case_done(&c);
}

/* Of a search it hears what was found, once. */
static void a_listener_hears_what_a_search_found(void **unused) {
  (void)unused;
  struct random_case c;
  struct listening k;
  random_case_decoder(&c, 970, some, 100);
  struct stack_run *r = random_search(&c.s, &c.state, 3, 2, 5, 6, &c.a);
  listen(&k, r, 0, 0);
  generate(&c.s, r, 1e6, &c.a);
  for (size_t i = 0; i < r->geometry.items; i++)
    assert_int_equal(k.count[i], stack_sequence_count(&r->generation->sequence[i]));
  assert_true(k.count[0] > 0);
  random_case_done(&c);
}

/* The settings of the choice reach it: what is banned is not chosen, and the seed decides. */
static void the_choice_is_the_requests(void **unused) {
  (void)unused;
  struct random_case c;
  random_case_decoder(&c, 950, some, 100);
  struct stack_run *greedy = random_texts(&c.s, &c.state, 2, 5, 1, &c.a),
                   *as = texts_again(&c.s, greedy, &c.a);
  for (size_t i = 0; i < 2; i++)
    as->generation->sequence[i].most = greedy->generation->sequence[i].most = 30;
  generate(&c.s, greedy, 1e6, &c.a);
  struct stack_run *banned = texts_again(&c.s, as, &c.a), *drawn[3];
  banned->generation->choice.banned = greedy->generation->sequence[0].token;
  banned->generation->choice.banned_count = 1;
  generate(&c.s, banned, 1e6, &c.a);
  for (size_t t = 0; t < 30; t++)
    assert_int_not_equal(banned->generation->sequence[0].token[t],
                         greedy->generation->sequence[0].token[0]);
  for (size_t i = 0; i < 3; i++) {
    drawn[i] = texts_again(&c.s, as, &c.a);
    drawn[i]->generation->choice.temperature = 2;
    drawn[i]->generation->choice.seed = i / 2;
    generate(&c.s, drawn[i], random_work(&c.state), &c.a);
  }
  same_sequences(drawn[0], drawn[1]);
  const struct stack_sequence *x = drawn[0]->generation->sequence;
  const struct stack_sequence *y = drawn[2]->generation->sequence;
  assert_true(memcmp(x[0].token, y[0].token, 30 * sizeof *x->token) != 0);
  random_case_done(&c);
}

/* --- faults --- */

static void is_fault(const struct random_stack *s, struct stack_run *r, enum status status,
                     const char *words, struct arena *a) {
  struct error e = {0};
  generate(s, r, 1e6, a);
  assert_int_equal(run_fault(&r->run, &e), status);
  if (!strstr(e.detail, words)) fail_msg("%s", e.detail);
}

static void nothing_is_left_to_choose(void **unused) {
  (void)unused;
  static const int32_t all[] = {0, 1, 2, 3, 4};
  struct random_case c;
  random_case_decoder(&c, 1000, some, 5);
  struct stack_run *r = random_texts(&c.s, &c.state, 1, 5, 1, &c.a);
  r->generation->choice.banned = all, r->generation->choice.banned_count = 5;
  is_fault(&c.s, r, STATUS_INVALID_REQUEST, "of item 0: nothing can be generated", &c.a);
  random_case_done(&c);
}

static void a_listener_that_fails(void **unused) {
  (void)unused;
  struct random_case c;
  struct listening k;
  random_case_decoder(&c, 980, some, 100);
  struct stack_run *r = random_texts(&c.s, &c.state, 2, 5, 1, &c.a);
  for (size_t i = 0; i < 2; i++) r->generation->sequence[i].most = 8;
  listen(&k, r, 0, 3);
  is_fault(&c.s, r, STATUS_OVERLOADED, "it failed behind 3", &c.a);
  struct stack_run *search = random_search(&c.s, &c.state, 3, 1, 5, 6, &c.a),
                   *as = texts_again(&c.s, search, &c.a);
  generate(&c.s, search, 1e6, &c.a);
  listen(&k, as, 0, stack_sequence_count(search->generation->sequence));
  is_fault(&c.s, as, STATUS_OVERLOADED, "it failed behind", &c.a);
  random_case_done(&c);
}

/* Where a token stands first that is in the text nowhere; `most`: nowhere. */
static size_t newcomer(const struct stack_run *as, const struct stack_sequence *q) {
  size_t t = 2;
  for (; t + 1 < q->most; t++) {
    bool before = first_seen(q, t) < 0;
    for (size_t i = 0; i < as->geometry.item[0].q; i++) before |= as->tokens[i] == q->token[t];
    if (!before) return t;
  }
  return q->most;
}

/* A token whose row of the table, scaled, exceeds the float32 range is chosen, and fed then. */
static void faults_say_which_row(void **unused) {
  (void)unused;
  size_t met = 0;
  for (uint64_t round = 0; round < 16; round++) {
    struct random_case c;
    char words[64];
    random_case_decoder(&c, 1100 + round,
                        (struct random_stack_kind){1, 2, 40, false, true, false, false}, 200);
    c.s.form.embedding.scale = 2;
    random_stack_remake(&c.s);
    struct stack_run *r = random_texts(&c.s, &c.state, 1, 5, 20, &c.a),
                     *as = texts_again(&c.s, r, &c.a);
    generate(&c.s, r, 1e6, &c.a);
    const size_t t = newcomer(as, r->generation->sequence);
    if (t < r->generation->sequence[0].most && !c.s.form.output.tied) {
      const size_t row = (size_t)r->generation->sequence[0].token[t], d = c.s.form.width;
      for (size_t x = 0; x < d; x++) ((float *)c.s.form.embedding.token)[row * d + x] = 3e38f;
      random_stack_remake(&c.s);
      snprintf(words, sizeof words, "position %zu of item 0", as->geometry.item[0].q + t);
      is_fault(&c.s, texts_again(&c.s, as, &c.a), STATUS_NOT_FINITE, words, &c.a);
      met++;
    }
    random_case_done(&c);
  }
  assert_true(met > 1);
}

/* --- memory --- */

static void any_allocation_may_fail(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < 6; round++) {
    struct random_case c;
    random_case_decoder(&c, 1200 + round, some, 0);
    struct stack_run *r = random_texts(&c.s, &c.state, 3, 40, 40, &c.a);
    assert_true(poisoned_run_prepare(&c.s, r, texts_again) > 1);
    random_case_done(&c);
  }
}

/* Of many texts some wait for the memory of others, also of those whose rows they would copy. */
static void many_texts_begin_in_turn(void **unused) {
  enum { TEXTS = 80, MOST = 32 };
  (void)unused;
  for (uint64_t round = 0; round < 6; round++) {
    struct random_case c;
    random_case_decoder(&c, 1500 + round, some, 30);
    struct stack_run *as = random_texts(&c.s, &c.state, TEXTS, 1, 1, &c.a);
    const size_t longest = round % 2 ? 70 : 5;
    struct item *item = as->geometry.item;
    size_t rows = 0, all = 0, largest = 0;
    for (size_t i = 0; i < TEXTS; i++) {
      const bool twin = i > 0 && random_below(&c.state, 3) > 0;
      const size_t n = twin ? item[i - 1].q : 1 + random_below(&c.state, longest);
      item[i] = (struct item){.q = n, .k = n, .q_row = rows, .k_row = rows};
      const size_t most = as->generation->sequence[i].most = 1 + random_below(&c.state, 9);
      largest = size_max(largest, n + most - 1);
      all += n + most - 1;
      rows += n;
    }
    int32_t *token = random_room(&c.a, rows, sizeof *token);
    memset(token, 0, rows * sizeof *token);
    as->tokens = token;
    as->geometry.q_rows = as->geometry.k_rows = rows;
    struct stack_run *r = texts_again(&c.s, as, &c.a);
    r->generation->round_work = 1;
    prepare_run(&c.s, r, &c.a);
    const size_t kept = r->generation->kept_bytes, most = r->geometry.q_rows;
    assert_true(most <= 2 * MOST);
    compute_rounds(&c.s, &r, 1, random_work(&c.state));
    sequences_are_as_scored(&c.s, r, as, &c.a);
    struct stack_run *whole = texts_again(&c.s, as, &c.a);
    prepare_run(&c.s, whole, &c.a);
    if (!r->source) assert_int_equal(kept * all, whole->generation->kept_bytes * MOST * largest);
    random_case_done(&c);
  }
}

/* `count` texts, all the same one of `length` tokens. */
static struct stack_run *one_text(struct random_case *c, size_t count, size_t length, size_t most) {
  struct stack_run *r = random_texts(&c->s, &c->state, count, 1, 1, &c->a);
  int32_t *token = random_room(&c->a, count * length, sizeof *token);
  for (size_t i = 0; i < count; i++) {
    for (size_t t = 0; t < length; t++)
      token[i * length + t] = (int32_t)(t * 7 % c->s.form.embedding.tokens);
    r->geometry.item[i] =
        (struct item){.q = length, .k = length, .q_row = i * length, .k_row = i * length};
    r->generation->sequence[i].most = most;
  }
  r->tokens = token;
  r->geometry.q_rows = r->geometry.k_rows = count * length;
  return r;
}

/* A sequence that begins late copies from one of its text that is in the midst of its own, whose
 * keys are turned beyond the text. Few rows are computed beside those copies. */
static void late_sequences_copy(void **unused) {
  enum { SEQUENCES = 70, LONG = 120 };
  static const size_t lengths[] = {60, 65, 100, 129};
  (void)unused;
  for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
    struct random_case c;
    random_case_decoder(&c, 1600 + l, lone, 30);
    struct stack_run *as = one_text(&c, SEQUENCES, lengths[l], 5);
    as->generation->sequence[0].most = LONG;
    as->generation->sequence[31].most = LONG - 20;
    for (size_t i = 1; i < 31; i++) as->generation->sequence[i].most = 80;
    struct stack_run *r = texts_again(&c.s, as, &c.a);
    r->generation->round_work = 1; /* 32 at a time */
    prepare_run(&c.s, r, &c.a);
    void *scratch = random_room(&c.a, stack_scratch_bytes(c.s.stack) + 1, 1);
    size_t rows = 0;
    for (struct run *on = &r->run; on; on = run_next_round(on)) {
      rows += on->rows;
      on->next = NULL;
      run_compute(on, 1e6, scratch);
    }
    sequences_are_as_scored(&c.s, r, as, &c.a);
    assert_in_range(rows, 0, 3 * (lengths[l] + 5) + SEQUENCES * (64 + 5) + 2 * LONG + 30 * 80);
    random_case_done(&c);
  }
}

/* Computes a run with the spans of each step in the opposite order, as threads might. */
static void compute_rounds_backwards(const struct random_stack *s, struct stack_run *r,
                                     struct arena *a) {
  enum { SPANS = 10000 };
  struct span *span = random_room(a, SPANS, sizeof *span);
  void *scratch = random_room(a, stack_scratch_bytes(s->stack) + 1, 1);
  for (struct run *on = &r->run; on; on = run_next_round(on)) {
    struct cursor at;
    on->next = NULL;
    for (run_begin(&at, on); !run_is_done(&at); run_next(&at)) {
      size_t n = 0;
      while (run_cut(&at, 1, &span[n])) must(++n < SPANS);
      while (n > 0) run_span(&span[--n], scratch);
    }
    if (atomic_load(&on->fault)) return;
  }
}

/* The prefix cache has the beginning of equal texts: one fetches it, and the others copy from that
 * one, in whichever order a step's units are computed. */
static void equal_texts_are_recalled(void **unused) {
  (void)unused;
  for (size_t length = 64; length <= 130; length += length % 64 == 2 ? 62 : 1) {
    struct random_case c;
    struct budget budget;
    struct error e = {0};
    budget_init(&budget, SIZE_MAX / 2);
    random_case_decoder(&c, 1700 + length, lone, 30);
    struct prefixes *known = prefixes_new(100 << 20, &budget, &e);
    struct stack_run *first = one_text(&c, 1, length, 3);
    struct stack_run *as = one_text(&c, 3, length, 6), *r = texts_again(&c.s, as, &c.a);
    first->generation->prefixes = r->generation->prefixes = known;
    prepare_run(&c.s, first, &c.a);
    compute_rounds(&c.s, &first, 1, 1e6);
    prepare_run(&c.s, r, &c.a);
    compute_rounds_backwards(&c.s, r, &c.a);
    sequences_are_as_scored(&c.s, r, as, &c.a);
    prefixes_free(known);
    random_case_done(&c);
  }
}

/* Once all texts have begun, what is free of their memory goes back to the budget. */
static void rooms_without_a_text_are_given_back(void **unused) {
  (void)unused;
  struct random_case c;
  struct budget budget;
  struct arena a;
  budget_init(&budget, SIZE_MAX / 2);
  random_case_decoder(&c, 1800, lone, 30);
  struct stack_run *as = one_text(&c, 33, 100, 2), *r = texts_again(&c.s, as, &c.a);
  as->generation->sequence[32].most = r->generation->sequence[32].most = 60;
  r->generation->round_work = 1; /* 32 at a time: the last one is alone soon */
  arena_init(&a, &budget);
  prepare_run(&c.s, r, &a);
  const size_t before = a.bytes, kept = r->generation->kept_bytes;
  compute_rounds(&c.s, &r, 1, 1e6);
  assert_in_range(before - a.bytes, kept / 32 * 31, kept);
  arena_free(&a);
  random_case_done(&c);
}

/* A budget larger than one that is enough for a run is enough, too. */
static void more_memory_is_never_too_little(void **unused) {
  static const struct {
    size_t texts, length, tokens;
    bool shows;
  } kinds[] = {{64, 600, 4000, false},
               {64, 600, 30, false},
               {128, 60, 4000, false},
               {64, 600, 400, false},
               {64, 300, 400, true}};
  (void)unused;
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    struct random_case c;
    random_case_decoder(&c, 1900 + k, lone, kinds[k].tokens);
    bool fits = false;
    size_t at_once = 0;
    for (size_t limit = 200000; limit < 200000000 && at_once < kinds[k].texts;
         limit += limit / 16) {
      struct random_case own = c;
      struct budget budget;
      struct arena a;
      struct error e = {0};
      budget_init(&budget, limit);
      arena_init(&a, &budget);
      arena_init(&own.a, NULL);
      struct stack_run *r = one_text(&own, kinds[k].texts, kinds[k].length, 24);
      struct stack_wish wish[2 * RANDOM_LAYERS];
      for (size_t i = 0; i < 2 * RANDOM_LAYERS; i++)
        wish[i] =
            (struct stack_wish){.hidden = true, .input = true, .weights = STACK_WEIGHTS_PER_HEAD};
      if (kinds[k].shows) r->wish = wish;
      const bool ok = stack_prepare(c.s.stack, r, &a, &e) == STATUS_OK;
      assert_true(ok || !fits);
      fits = ok;
      if (ok) assert_in_range(r->generation->rounds->at_once, at_once, kinds[k].texts);
      if (ok) at_once = r->generation->rounds->at_once;
      arena_free(&a);
      arena_free(&own.a);
    }
    assert_int_equal(at_once, kinds[k].texts);
    random_case_done(&c);
  }
}

/* A sequence that is over gives its keys and values back while the others go on; also one whose
 * text another one copies in the next round. */
static void what_is_over_is_given_back(void **unused) {
  (void)unused;
  for (int twins = 0; twins < 2; twins++) {
    struct random_case c;
    struct budget budget;
    struct arena a;
    struct random_stack_kind kind = lone;
    kind.layers_least = 1;
    random_case_decoder(&c, 1400, kind, 30);
    struct stack_run *as = random_texts(&c.s, &c.state, 3, 1, 1, &c.a);
    int32_t *token = random_room(&c.a, 900, sizeof *token);
    memset(token, 0, 900 * sizeof *token);
    if (!twins) token[300] = 1;
    as->tokens = token;
    as->geometry.q_rows = as->geometry.k_rows = 900;
    for (size_t i = 0; i < 3; i++) {
      as->geometry.item[i] = (struct item){.q = 300, .k = 300, .q_row = i * 300, .k_row = i * 300};
      as->generation->sequence[i].most = i == 1 ? 9 : 1;
    }
    budget_init(&budget, SIZE_MAX / 2);
    arena_init(&a, &budget);
    struct stack_run *r = texts_again(&c.s, as, &c.a);
    prepare_run(&c.s, r, &a);
    const size_t before = a.bytes;
    compute_rounds(&c.s, &r, 1, 1e6);
    sequences_are_as_scored(&c.s, r, as, &c.a);
    assert_in_range(before - a.bytes, r->generation->kept_bytes / 4, r->generation->kept_bytes);
    assert_int_equal(atomic_load(&budget.used), a.bytes);
    arena_free(&a);
    assert_int_equal(atomic_load(&budget.used), 0);
    random_case_done(&c);
  }
}

/* The memory of all rounds is charged before the first; what is charged is enough. */
static void any_budget_may_be_too_small(void **unused) {
  (void)unused;
  struct random_case c;
  random_case_decoder(&c, 1300, some, 0);
  struct stack_run *r = random_texts(&c.s, &c.state, 3, 40, 40, &c.a);
  struct arena a;
  struct short_memory m = {.arena = &a};
  while (short_memory_next(&m, 1001 + m.limit / 8)) {
    struct error e = {0};
    struct stack_run *again = texts_again(&c.s, r, &c.a);
    prepare_source(&c.s, again, &c.a);
    const enum status status = stack_prepare(c.s.stack, again, &a, &e);
    if (!short_memory_is_enough(&m, status, &e)) continue;
    const size_t bytes = a.bytes;
    compute_rounds(&c.s, &again, 1, 1e6);
    sequences_are_as_scored(&c.s, again, r, &c.a);
    assert_true(a.bytes <= bytes); /* what is over is given back */
  }
  random_case_done(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sequences_have_the_bits_of_the_whole),
      cmocka_unit_test(wide_models_share_out_columns),
      cmocka_unit_test(long_texts_come_in_pieces),
      cmocka_unit_test(a_long_text_does_not_hold_up_others),
      cmocka_unit_test(company_changes_no_bit),
      cmocka_unit_test(what_is_known_changes_no_bit),
      cmocka_unit_test(a_text_of_several_sequences_is_computed_once),
      cmocka_unit_test(a_text_that_goes_on_is_known),
      cmocka_unit_test(merging_changes_no_bit),
      cmocka_unit_test(workers_change_no_bit),
      cmocka_unit_test(sequences_end_at_every_step),
      cmocka_unit_test(each_round_but_the_last_is_told),
      cmocka_unit_test(a_listener_hears_each_token_and_ends_sequences),
      cmocka_unit_test(a_listener_hears_what_a_search_found),
      cmocka_unit_test(the_choice_is_the_requests),
      cmocka_unit_test(nothing_is_left_to_choose),
      cmocka_unit_test(a_listener_that_fails),
      cmocka_unit_test(faults_say_which_row),
      cmocka_unit_test(many_texts_begin_in_turn),
      cmocka_unit_test(late_sequences_copy),
      cmocka_unit_test(equal_texts_are_recalled),
      cmocka_unit_test(rooms_without_a_text_are_given_back),
      cmocka_unit_test(more_memory_is_never_too_little),
      cmocka_unit_test(any_allocation_may_fail),
      cmocka_unit_test(what_is_over_is_given_back),
      cmocka_unit_test(any_budget_may_be_too_small),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
