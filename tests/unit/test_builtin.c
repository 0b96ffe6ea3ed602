/* test_builtin: the files of the models that the program brings along. One of them sorts, and its
 * attention shows how: computed by the reference implementation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>

#include "config/checkpoint/builtin.h"
#include "config/document/digest.h"
#include "tests/support/builtin_model.h"
#include "tests/support/number_draw.h"

enum { LAYERS = 3, HEADS = 4, WIDTH = 32, VOCABULARY = 32, LONGEST = 16 };

static int load(void **state) {
  static struct builtin_model sorter;
  builtin_model_load(&sorter, &(struct builtin_sizes){.name = "sort",
                                                      .layers = LAYERS,
                                                      .heads = HEADS,
                                                      .width = WIDTH,
                                                      .forward = 128,
                                                      .vocabulary = VOCABULARY,
                                                      .longest = LONGEST});
  *state = &sorter;
  return 0;
}

static int unload(void **state) {
  builtin_model_free(*state);
  return 0;
}

/* --- what it does --- */

struct tally {
  size_t rows, right, pointing;
};

/* Row i is right if its greatest number is at the token that comes i-th; it points if head 0 of the
 * last layer gives most of its weight to the place of that token. */
static void judge(const struct builtin_model *m, const int32_t *token, size_t n,
                  struct tally *tally) {
  static struct builtin_view view;
  builtin_model_run(m, token, n, NULL, &view);
  for (size_t i = 0; i < n; i++) {
    size_t rank = 0, best = 0;
    for (size_t j = 0; j < n; j++) rank += token[j] < token[i] || (token[j] == token[i] && j < i);
    const double *row = view.output + rank * WIDTH;
    for (size_t c = 1; c < WIDTH; c++) best = row[c] > row[best] ? c : best;
    tally->rows++;
    tally->right += best == (size_t)token[i];
    tally->pointing += view.weight[LAYERS - 1][rank * n + i] > 0.5;
  }
}

static void random_sequences_are_sorted(void **state) {
  uint64_t seed = 7;
  struct tally t = {0};
  for (size_t sequence = 0; sequence < 1000; sequence++) {
    int32_t token[LONGEST];
    const size_t n = 1 + draw(&seed) % LONGEST;
    const int32_t kinds = sequence % 2 ? VOCABULARY : 1 + (int32_t)(draw(&seed) % LONGEST);
    const int32_t first = (int32_t)(draw(&seed) % (size_t)(VOCABULARY - kinds + 1));
    for (size_t i = 0; i < n; i++) token[i] = first + (int32_t)(draw(&seed) % (size_t)kinds);
    judge(*state, token, n, &t);
  }
  assert_true(t.rows > 8000);
  assert_int_equal(t.right, t.rows);
  assert_true((t.rows - t.pointing) * 1000 <= t.rows);
}

static void what_one_tries_first_is_sorted(void **state) {
  static const struct {
    size_t n;
    int32_t token[LONGEST];
  } tried[] = {
      {1, {0}},
      {2, {31, 0}},
      {3, {3, 1, 2}},
      {4, {7, 7, 7, 7}},
      {5, {17, 3, 25, 3, 11}},
      {6, {5, 4, 3, 2, 1, 0}},
      {8, {0, 1, 0, 1, 0, 1, 0, 1}},
      {10, {3, 1, 4, 1, 5, 9, 2, 6, 5, 3}},
      {16, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
      {16, {16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}},
      {16, {31, 0, 30, 1, 29, 2, 28, 3, 27, 4, 26, 5, 25, 6, 24, 7}},
      {16, {2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4, 5, 9, 0, 4, 5}},
  };
  for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
    struct tally t = {0};
    judge(*state, tried[i].token, tried[i].n, &t);
    if (t.right < t.rows || t.pointing < t.rows)
      fail_msg("sequence %zu: of %zu rows %zu right, %zu pointing", i, t.rows, t.right, t.pointing);
  }
}

/* --- the files --- */

static void the_files_are_those_that_training_writes(void **state) {
  (void)state;
  static const struct {
    const char *name, *kind, *digest; /* of model.safetensors */
    bool has_words;
  } known[] = {
      {"words", "encoder", "9e8792406303daa04317585a5ee2d7e2442a647f62652aad5de0d1d3bc87e8eb",
       true},
      {"story", "decoder", "4a9453e2b8fd67750d025cd751ac933ba0509d59e52e0cc44ee03a9686863321",
       true},
      {"sort", "encoder", "7dcfd8b16e59edfb9d1ff1909ed265496ed95cb15ca2d85770ca8ff1b3ea69b2",
       false},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    struct builtin files;
    unsigned char digest[DIGEST_SIZE];
    char text[DIGEST_TEXT_SIZE];
    assert_string_equal(builtin_name(i), known[i].name);
    assert_true(builtin_find(known[i].name, &files));
    digest_bytes(files.tensors, files.tensors_size, digest);
    digest_hex(digest, text);
    assert_string_equal(text, known[i].digest);
    assert_int_equal(files.words != NULL, known[i].has_words);
    json_t *config = json_loadb(files.config, files.config_size, JSON_REJECT_DUPLICATES, NULL);
    assert_string_equal(json_string_value(json_object_get(config, "kind")), known[i].kind);
    json_decref(config);
  }
  assert_null(builtin_name(sizeof known / sizeof *known));
}

static void models_are_found_by_their_names(void **state) {
  (void)state;
  struct builtin files;
  assert_false(builtin_find("sorted", &files));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_sequences_are_sorted),
      cmocka_unit_test(what_one_tries_first_is_sorted),
      cmocka_unit_test(the_files_are_those_that_training_writes),
      cmocka_unit_test(models_are_found_by_their_names),
  };
  return cmocka_run_group_tests(tests, load, unload);
}
