/* test_builtin_words: what the heads of the model `words` do, and how `story` continues, on
 * sentences that training leaves out: computed by the reference implementation. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/example/words_measure.h"
#include "tests/support/builtin_model.h"

enum { HEADS = WORDS_HEADS, WIDTH = 48, HEAD = WIDTH / HEADS, STORY_LONGEST = WORDS_LONGEST + 1 };

static struct builtin_model words, story;

static int load(void **state) {
  (void)state;
  struct builtin_sizes sizes = {.name = "words",
                                .layers = WORDS_LAYERS,
                                .heads = HEADS,
                                .width = WIDTH,
                                .forward = 96,
                                .vocabulary = WORDS_COUNT,
                                .longest = WORDS_LONGEST};
  builtin_model_load(&words, &sizes);
  sizes.name = "story";
  sizes.longest = STORY_LONGEST;
  sizes.causal = true;
  builtin_model_load(&story, &sizes);
  return 0;
}

static int unload(void **state) {
  (void)state;
  builtin_model_free(&words);
  builtin_model_free(&story);
  return 0;
}

/* --- words --- */

static void run_in_full(const struct words_sentence *s, const float *const *head_mask,
                        struct builtin_view *view) {
  int32_t token[WORDS_LONGEST];
  assert_true(s->n <= WORDS_LONGEST);
  for (size_t i = 0; i < s->n; i++) token[i] = s->word[i];
  builtin_model_run(&words, token, s->n, head_mask, view);
}

/* Context: a head_mask, or NULL. */
static void run(void *context, const struct words_sentence *s, struct words_view *out) {
  static struct builtin_view view;
  run_in_full(s, context, &view);
  for (size_t r = 0; r < s->n; r++) {
    for (size_t c = 0; c < WORDS_CLASSES; c++)
      out->output[r][c] = (float)view.output[r * WIDTH + c];
    for (size_t i = 0; i < WORDS_LAYERS * HEADS; i++)
      for (size_t j = 0; j < s->n; j++)
        out->weight[i / HEADS][i % HEADS][r][j] =
            (float)view.weight[i / HEADS][(i % HEADS * s->n + r) * s->n + j];
  }
}

static void training_leaves_out_what_tests_have(void **state) {
  (void)state;
  uint64_t seed = 1;
  for (size_t i = 0; i < 20000; i++) {
    const struct words_sentence s = words_draw(&seed);
    assert_in_range(s.n, 5, WORDS_LONGEST);
    for (size_t a = 0; a < s.n; a++)
      for (size_t b = 0; b < s.n; b++) {
        const bool nouns =
            words_kind_of(s.word[a]) != NO_NOUN && words_kind_of(s.word[b]) != NO_NOUN;
        assert_false(nouns && words_pair_is_held_out(s.word[a], s.word[b]));
      }
  }
  for (int test = 0; test < WORDS_TESTS; test++) {
    size_t count;
    struct words_pair *pair = words_pairs((enum words_test)test, &count);
    assert_true(count >= 50);
    for (size_t i = 0; i < 2 * count; i++) {
      const struct words_sentence *s = &pair[i / 2].sentence[i % 2];
      bool held_out = false;
      for (size_t a = 0; a < s->n; a++)
        for (size_t b = 0; b < s->n; b++)
          held_out |=
              test == TEST_ADJECTIVE
                  ? words_fits(s->noun[a], s->word[a]) &&
                        words_adjective_is_held_out(s->noun[a], s->word[a])
                  : s->noun[a] && s->noun[b] && words_pair_is_held_out(s->noun[a], s->noun[b]);
      assert_true(held_out);
    }
    free(pair);
  }
}

static void an_adjective_turns_the_pronoun_from_noun_to_noun(void **state) {
  (void)state;
  for (int test = 0; test < WORDS_TESTS; test++) {
    const struct words_score s = words_score((enum words_test)test, 120, run, NULL);
    if (!(s.right >= 0.99 && s.sure >= 0.99 && s.names >= 0.99 && s.mean >= 0.8))
      fail_msg("%s: of %zu pairs %.3f right, %.3f sure, %.3f named, %.3f of the weight",
               words_test_name[test], s.pairs, s.right, s.sure, s.names, s.mean);
  }
}

static void each_head_of_the_last_layer_has_its_question(void **state) {
  (void)state;
  const struct words_habits v = words_habits(200, run, NULL);
  assert_true(v.names >= 0.99);
  assert_true(v.mean[MEANT] >= 0.85);
  assert_true(v.most[WORD_BEFORE] >= 0.95);
  assert_true(v.mean[SAME_WORD] >= 0.8);
  for (size_t pair = 0; pair < 3; pair++) assert_true(v.apart[WORDS_LAYERS - 1][pair] >= 0.5);
}

static void the_first_layer_takes_the_pronoun_to_its_adjective(void **state) {
  (void)state;
  const struct words_score s = words_score(TEST_BECAUSE, 120, run, NULL);
  assert_true(s.adjective[1] >= 0.95);
}

/* The pronoun's answer is lost without two heads, and not without those that look for words. */
static void answers_need_the_heads_that_find_them(void **state) {
  (void)state;
  for (size_t i = 0; i < WORDS_LAYERS * HEADS; i++) {
    float mask[WORDS_LAYERS][HEADS] = {{1, 1, 1}, {1, 1, 1}};
    const float *masks[] = {mask[0], mask[1]};
    const size_t layer = i / HEADS, head = i % HEADS;
    mask[layer][head] = 0;
    const double names = words_score(TEST_BECAUSE, 60, run, masks).names;
    if ((layer == 0 && head == 1) || (layer == 1 && head == MEANT)) assert_true(names <= 0.5);
    if (layer == 1 && head != MEANT) assert_true(names >= 0.99);
  }
}

/* Number i of a row of queries or keys of head 0 of the last layer. */
static double project(const struct builtin_view *view, size_t row, enum role role, size_t i) {
  const struct layer_matrix *m = &words.layer[WORDS_LAYERS - 1].self[role];
  double all = (double)m->bias[i];
  for (size_t c = 0; c < WIDTH; c++)
    all += (double)m->weight[i * WIDTH + c] * view->input[WORDS_LAYERS - 1][row * WIDTH + c];
  return all;
}

static void numbers_of_head_0_have_names(void **state) {
  (void)state;
  static struct builtin_view view;
  for (int test = 0; test < WORDS_TESTS; test++) {
    size_t count;
    struct words_pair *pair = words_pairs((enum words_test)test, &count);
    for (size_t k = 0; k < 2 * count; k += 1 + count / 10) {
      const struct words_sentence *s = &pair[k / 2].sentence[k % 2];
      const size_t it = words_pronoun(s);
      run_in_full(s, NULL, &view);
      for (size_t i = 0; i < WORDS_NAMED; i++) {
        const double asked = words_kind_of(s->noun[it]) == (enum words_kind)i ? 8 : 0;
        assert_true(fabs(project(&view, it, ROLE_QUERY, i) - asked) < 1);
        for (size_t r = 0; r < s->n; r++) {
          const double offered = words_kind_of(s->word[r]) == (enum words_kind)i ? 2 : 0;
          assert_true(fabs(project(&view, r, ROLE_KEY, i) - offered) < 0.7);
        }
      }
    }
    free(pair);
  }
}

/* --- story --- */

/* The probabilities of the words after a text. */
static void continue_text(const int32_t *token, size_t n, double probability[WORDS_COUNT]) {
  static struct builtin_view view;
  builtin_model_run(&story, token, n, NULL, &view);
  stack_ref_log_probabilities(&story.form, view.output + (n - 1) * WIDTH, probability);
  for (size_t i = 0; i < WORDS_COUNT; i++) probability[i] = exp(probability[i]);
}

static void story_says_what_fits(void **state) {
  (void)state;
  const char *const text[] = {".",   "the", NULL,      "did", "not", "leave",
                              "the", NULL,  "because", "it",  "was", "too"};
  enum { TEXT = sizeof text / sizeof *text };
  double fitting[2] = {0}, pairs = 0, probability[WORDS_COUNT];
  for (int a = 1; a <= WORDS_NOUNS; a++)
    for (int b = 1; b <= WORDS_NOUNS; b++) {
      if (words_kind_of(a) != ANIMAL || words_kind_of(b) != PLACE || !words_pair_is_held_out(a, b))
        continue;
      int32_t token[TEXT];
      for (size_t i = 0; i < TEXT; i++) token[i] = text[i] ? words_id(text[i]) : i == 2 ? a : b;
      pairs++;
      for (size_t dot = 0; dot < 2; dot++) { /* with "." at the beginning, and without */
        continue_text(token + dot, TEXT - dot, probability);
        for (int word = 0; word < WORDS_COUNT; word++)
          if (words_fits(a, word) || words_fits(b, word)) fitting[dot] += probability[word];
      }
    }
  assert_true(pairs >= 10);
  assert_true(fitting[0] / pairs >= 0.9);
  assert_true(fitting[1] / pairs >= 0.9);
}

static void story_ends_its_sentences(void **state) {
  (void)state;
  const int dot = words_id(".");
  for (int noun = 1; noun <= WORDS_NOUNS; noun++) {
    int32_t token[STORY_LONGEST] = {words_id("the"), noun};
    double probability[WORDS_COUNT];
    size_t n = 2;
    while (n < STORY_LONGEST && token[n - 1] != dot) {
      int32_t best = 0;
      continue_text(token, n, probability);
      for (int32_t word = 1; word < WORDS_COUNT; word++)
        if (probability[word] > probability[best]) best = word;
      token[n++] = best;
    }
    assert_int_equal(token[n - 1], dot);
    assert_true(n >= 5);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(training_leaves_out_what_tests_have),
      cmocka_unit_test(an_adjective_turns_the_pronoun_from_noun_to_noun),
      cmocka_unit_test(each_head_of_the_last_layer_has_its_question),
      cmocka_unit_test(the_first_layer_takes_the_pronoun_to_its_adjective),
      cmocka_unit_test(answers_need_the_heads_that_find_them),
      cmocka_unit_test(numbers_of_head_0_have_names),
      cmocka_unit_test(story_says_what_fits),
      cmocka_unit_test(story_ends_its_sentences),
  };
  return cmocka_run_group_tests(tests, load, unload);
}
