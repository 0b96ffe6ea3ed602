/* test_stack_choice: which token comes next: beside the readable twin, one by one and in their
 * frequencies. Runs at the level that ATTEND_CPU allows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/size.h"
#include "core/kernel/kernel.h"
#include "core/kernel/philox.h"
#include "core/reference/choice_ref.h"
#include "tests/support/random_call.h"
#include "tests/support/rounds.h"

enum { TOKENS_MOST = 60, PAST_MOST = 40 };

static const struct stack_choice plain = {
    .top_p = 1, .repetition_penalty = 1, .forced_begin = -1, .forced_end = -1, .length_penalty = 1};

static int32_t choose(const struct stack_choice *c, const struct stack_past *past,
                      const float *logit, size_t tokens) {
  void *scratch = aligned_alloc(64, size_round_up(stack_choice_scratch(tokens) + 1, 64));
  const unsigned mode = kernel_enter();
  const int32_t token = stack_choose(kernel_best(KERNEL_FASTEST), c, past, logit, tokens, scratch);
  kernel_leave(mode);
  free(scratch);
  return token;
}

/* --- drawn cases --- */

struct choice_case {
  size_t tokens;
  float logit[TOKENS_MOST];
  int32_t text[PAST_MOST], banned[4], end[2], stop[2];
  struct stack_bias bias[3];
  struct stack_choice c;
  struct stack_past past;
};

static void draw_tokens(uint64_t *state, size_t tokens, int32_t *list, size_t count) {
  for (size_t i = 0; i < count; i++) list[i] = (int32_t)random_below(state, tokens);
}

/* Logits of which some are equal. */
static void draw_case(struct choice_case *k, uint64_t *state) {
  const size_t n = k->tokens = 1 + random_below(state, TOKENS_MOST);
  const float grain = random_often(state, 50) ? 1 : 64;
  for (size_t i = 0; i < n; i++) k->logit[i] = roundf(random_float(state) * 4 * grain) / grain;
  const size_t vocabulary = random_often(state, 50) ? size_min(n, 3) : n;
  draw_tokens(state, vocabulary, k->text, PAST_MOST);
  draw_tokens(state, n, k->banned, 4);
  draw_tokens(state, n, k->end, 2);
  draw_tokens(state, n, k->stop, 2);
  const bool begins = random_often(state, 5);
  const size_t chosen = begins ? 0 : random_below(state, 10);
  k->past =
      (struct stack_past){.token = k->text,
                          .count =
                              begins ? 1 : chosen + 1 + random_below(state, PAST_MOST - chosen),
                          .chosen = chosen,
                          .most = chosen + 1 + random_below(state, 3),
                          .item = (uint32_t)random_below(state, 5),
                          .sample = (uint32_t)random_below(state, 5)};
  k->c = plain;
  for (int32_t i = 0; i < 3; i++) /* each token once */
    k->bias[i] = (struct stack_bias){i, 3 * random_float(state)};
  k->c.bias = k->bias;
  k->c.banned = k->banned, k->c.end = k->end, k->c.stop = k->stop;
  k->c.seed = random_bits(state);
  static const double penalty[] = {1.3, 0.7, 1.3, 0.7, 1e-300, 1e300};
  if (random_often(state, 30)) k->c.repetition_penalty = penalty[random_below(state, 6)];
  if (random_often(state, 20)) k->c.presence_penalty = 2.0 * random_float(state);
  if (random_often(state, 20)) k->c.frequency_penalty = 2.0 * random_float(state);
  if (random_often(state, 20)) k->c.biases = random_below(state, size_min(n, 3) + 1);
  if (random_often(state, 30)) k->c.no_repeat_ngram = 1 + random_below(state, 4);
  if (random_often(state, 30)) k->c.banned_count = random_below(state, 5);
  if (random_often(state, 50)) k->c.ends = random_below(state, 3);
  if (random_often(state, 50)) k->c.stops = random_below(state, 3);
  if (random_often(state, 30)) k->c.min_tokens = random_below(state, 12);
  if (random_often(state, 20)) k->c.forced_begin = (int64_t)random_below(state, n);
  if (random_often(state, 10)) k->c.forced_end = (int64_t)random_below(state, n);
}

static void draws(struct choice_case *k, uint64_t *state) {
  static const double temperature[] = {1, 0.3, 2.5, 1e-3, 1e-300, 1e30};
  k->c.temperature = temperature[random_below(state, 6)];
  if (random_often(state, 50)) k->c.top_k = 1 + random_below(state, k->tokens + 3);
  if (random_often(state, 50))
    k->c.top_p = 0.05131 + 0.09717 * (double)random_below(state, 10); /* no sum of equals */
  if (random_often(state, 30))
    k->c.min_p = random_often(state, 20) ? 1 : 0.00713 + 0.1 * (double)random_below(state, 9);
}

static void the_greatest_is_the_twins(void **unused) {
  (void)unused;
  size_t none = 0;
  for (uint64_t round = 0; round < rounds(20000); round++) {
    uint64_t state = 100 + round;
    struct choice_case k;
    double p[TOKENS_MOST];
    draw_case(&k, &state);
    choice_ref(&k.c, &k.past, k.logit, k.tokens, p);
    const int32_t token = choose(&k.c, &k.past, k.logit, k.tokens);
    double any = 0;
    for (size_t i = 0; i < k.tokens; i++) any += p[i];
    none += any == 0;
    if (any == 0 ? token != -1 : token < 0 || p[token] != 1) fail_msg("round %lu", round);
  }
  assert_true(none > rounds(20000) / 200);
}

/* Of a search: those that would be chosen one after the other, if each found were banned. */
static void some_are_those_chosen_in_turn(void **unused) {
  (void)unused;
  size_t listed = 0;
  for (uint64_t round = 0; round < rounds(5000); round++) {
    uint64_t state = 700000 + round;
    struct choice_case k;
    int32_t token[TOKENS_MOST], gone[TOKENS_MOST + 4];
    float log[TOKENS_MOST], own[TOKENS_MOST];
    draw_case(&k, &state);
    const double less = random_float(&state) * 10;
    const size_t most = 1 + random_below(&state, k.tokens);
    for (size_t i = 0; i < k.tokens; i++) own[i] = (float)(k.logit[i] - less);
    void *scratch = aligned_alloc(64, size_round_up(stack_choice_scratch(k.tokens), 64));
    const size_t found =
        stack_choose_some(&k.c, &k.past, k.logit, less, k.tokens, most, token, log, scratch);
    free(scratch);
    struct stack_choice c = k.c;
    memcpy(gone, k.banned, c.banned_count * sizeof *gone);
    c.banned = gone;
    const int32_t first = choose(&k.c, &k.past, own, k.tokens);
    if (k.past.chosen + 1 == k.past.most ? c.forced_end >= 0
                                         : c.forced_begin >= 0 && k.past.count == 1) {
      assert_true(found == 1 && token[0] == first && log[0] == 0);
      continue;
    }
    if (c.forced_begin >= 0 && k.past.count == 1 && k.past.chosen == 0) continue;
    for (size_t i = 0; i < found; i++, listed++) {
      assert_int_equal(choose(&c, &k.past, own, k.tokens), token[i]);
      assert_true(i == 0 || log[i] <= log[i - 1]);
      gone[c.banned_count++] = token[i];
    }
    if (found < most) assert_int_equal(choose(&c, &k.past, own, k.tokens), -1);
  }
  assert_true(listed > 4 * rounds(5000));
}

/* Of many tokens a heap finds what a list in order does. */
static void many_are_found_as_some_are(void **unused) {
  (void)unused;
  enum { MANY = 1500, LISTED = 256 };
  for (uint64_t round = 0; round < rounds(50); round++) {
    uint64_t state = 800000 + round;
    static float logit[MANY], few[LISTED], many[MANY];
    static int32_t some[LISTED], all[MANY];
    struct stack_choice c = plain;
    const int32_t text[] = {1, 2}, banned[] = {7, 8};
    const struct stack_past past = {.token = text, .count = 2, .most = 5};
    for (size_t i = 0; i < MANY; i++) logit[i] = roundf(random_float(&state) * 400) / 64;
    if (round % 2) c.banned = banned, c.banned_count = 2;
    void *scratch = aligned_alloc(64, size_round_up(stack_choice_scratch(MANY), 64));
    const size_t found = stack_choose_some(&c, &past, logit, 3.7, MANY, MANY, all, many, scratch);
    assert_int_equal(found, MANY - c.banned_count);
    stack_choose_some(&c, &past, logit, 3.7, MANY, LISTED, some, few, scratch);
    free(scratch);
    assert_memory_equal(some, all, sizeof some);
    assert_memory_equal(few, many, sizeof few);
  }
}

/* The token at which the sum of the twin's probabilities exceeds the chance; one that is as near to
 * it as rounding may bring it is right, too. */
static void a_draw_is_the_twins(void **unused) {
  (void)unused;
  enum { TURNS = 20000 };
  size_t near = 0;
  for (uint64_t round = 0; round < rounds(TURNS); round++) {
    uint64_t state = 200000 + round;
    struct choice_case k;
    double p[TOKENS_MOST], sum = 0;
    draw_case(&k, &state);
    draws(&k, &state);
    choice_ref(&k.c, &k.past, k.logit, k.tokens, p);
    const int32_t token = choose(&k.c, &k.past, k.logit, k.tokens);
    const uint32_t key[2] = {(uint32_t)k.c.seed, (uint32_t)(k.c.seed >> 32)};
    const uint32_t counter[4] = {k.past.item, k.past.sample, (uint32_t)k.past.chosen, 1};
    const double chance = philox(key, counter).word[0] * 0x1p-32;
    int32_t right = -1;
    bool close = false;
    for (size_t i = 0; i < k.tokens; i++) {
      sum += p[i];
      close |= fabs(sum - chance) < 1e-5;
      if (right < 0 && p[i] > 0 && sum > chance) right = (int32_t)i;
    }
    near += close && token != right;
    if (!close && token != right)
      fail_msg("round %lu: %d, should be %d of %zu", round, token, right, k.tokens);
  }
  assert_true(near < rounds(TURNS) / 1000);
}

/* --- frequencies --- */

/* As often as the twin says, by chi-squared: with as many degrees of freedom as there are tokens, a
 * right draw exceeds the bound once in ten thousand times. */
static void frequencies(struct stack_choice c, uint64_t seed) {
  enum { TOKENS = 12, DRAWS = 20000 };
  static const double bound[TOKENS] = {0,    15.1, 18.4, 21.1, 23.5, 25.7,
                                       27.9, 29.9, 31.8, 33.7, 35.6, 37.4};
  uint64_t state = seed;
  float logit[TOKENS];
  double p[TOKENS], off = 0;
  size_t count[TOKENS] = {0}, possible = 0;
  const int32_t text[] = {0};
  for (size_t i = 0; i < TOKENS; i++) logit[i] = 1.5f * random_float(&state);
  struct stack_past past = {.token = text, .count = 1, .most = DRAWS};
  c.seed = seed;
  choice_ref(&c, &past, logit, TOKENS, p);
  for (past.chosen = 0; past.chosen < DRAWS; past.chosen++) {
    const int32_t token = choose(&c, &past, logit, TOKENS);
    assert_in_range(token, 0, TOKENS - 1);
    count[token]++;
  }
  for (size_t i = 0; i < TOKENS; i++) {
    const double right = p[i] * DRAWS;
    if (right == 0) assert_int_equal(count[i], 0);
    if (right == 0) continue;
    off += ((double)count[i] - right) * ((double)count[i] - right) / right;
    possible++;
  }
  if (possible > 1 && off > bound[possible - 1])
    fail_msg("%g of %zu tokens, seed %lu", off, possible, seed);
}

static void draws_have_their_frequencies(void **unused) {
  (void)unused;
  for (uint64_t seed = 1; seed <= 3; seed++) {
    struct stack_choice c = plain;
    c.temperature = 1;
    frequencies(c, seed);
    c.temperature = 0.5;
    frequencies(c, 10 + seed);
    c.top_k = 5;
    frequencies(c, 20 + seed);
    c.top_p = 0.7;
    frequencies(c, 30 + seed);
    c.top_k = 0;
    frequencies(c, 40 + seed);
    c.min_p = 0.3;
    frequencies(c, 50 + seed);
    c.top_p = 1;
    frequencies(c, 60 + seed);
  }
}

/* The penalties of what was chosen do not know what it goes on from, and count. */
static void penalties_count_what_was_chosen(void **unused) {
  (void)unused;
  const float logit[] = {9, 8.5f, 8, 7};
  const int32_t text[] = {0, 0, 0, 1, 1, 2};
  const struct stack_bias bias[] = {{3, 1.75}};
  struct stack_choice c = plain;
  struct stack_past past = {.token = text, .count = 6, .chosen = 3, .most = 9};
  assert_int_equal(choose(&c, &past, logit, 4), 0);
  c.presence_penalty = 1.5;
  assert_int_equal(choose(&c, &past, logit, 4), 0); /* 9, 7, 6.5, 7 */
  c.presence_penalty = -0.75;
  assert_int_equal(choose(&c, &past, logit, 4), 1); /* 9, 9.25, 8.75, 7 */
  c.frequency_penalty = 0.25;
  assert_int_equal(choose(&c, &past, logit, 4), 0); /* 9, 8.75, 8.5, 7 */
  past.chosen = 6;
  assert_int_equal(choose(&c, &past, logit, 4), 0); /* 9, 8.75, 8.5, 7 */
  c.frequency_penalty = 0.5;
  assert_int_equal(choose(&c, &past, logit, 4), 0); /* 8.25, 8.25, 8.25, 7 */
  c.bias = bias, c.biases = 1;
  assert_int_equal(choose(&c, &past, logit, 4), 3);
}

/* Items, samples and steps draw apart from each other; the same ones draw the same. */
static void draws_differ_by_where_they_are(void **unused) {
  (void)unused;
  enum { TOKENS = 4000 };
  static float logit[TOKENS];
  const int32_t text[] = {0};
  struct stack_choice c = plain;
  c.temperature = 1;
  c.seed = 0x123456789abcdef;
  struct stack_past past = {.token = text, .count = 1, .most = 9};
  const int32_t first = choose(&c, &past, logit, TOKENS);
  assert_int_equal(choose(&c, &past, logit, TOKENS), first);
  past.item = 1;
  assert_int_not_equal(choose(&c, &past, logit, TOKENS), first);
  past.item = 0, past.sample = 1;
  assert_int_not_equal(choose(&c, &past, logit, TOKENS), first);
  past.sample = 0, past.chosen = 1;
  assert_int_not_equal(choose(&c, &past, logit, TOKENS), first);
  past.chosen = 0, c.seed ^= UINT64_C(1) << 40;
  assert_int_not_equal(choose(&c, &past, logit, TOKENS), first);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_greatest_is_the_twins),
      cmocka_unit_test(some_are_those_chosen_in_turn),
      cmocka_unit_test(many_are_found_as_some_are),
      cmocka_unit_test(a_draw_is_the_twins),
      cmocka_unit_test(draws_have_their_frequencies),
      cmocka_unit_test(penalties_count_what_was_chosen),
      cmocka_unit_test(draws_differ_by_where_they_are),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
