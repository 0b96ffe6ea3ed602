/* test_builtin: the model that the program brings along sorts, and its attention shows how:
 * computed by the slow twin. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>

#include "config/checkpoint/builtin.h"
#include "config/checkpoint/checkpoint.h"
#include "config/document/digest.h"
#include "core/reference/stack_ref.h"
#include "tests/support/number_draw.h"

enum { LAYERS = 3, HEADS = 4, WIDTH = 32, FORWARD = 128, VOCABULARY = 32, LONGEST = 16 };

struct sorter {
  struct arena arena;
  struct checkpoint *file;
  struct stack_form form;
  struct stack_layer layer[LAYERS];
};

/* The numbers of a tensor that must have `count` of them. */
static const float *tensor(struct sorter *s, size_t layer, const char *name, size_t count) {
  struct error e = {0};
  char whole[100];
  if (layer < LAYERS) {
    snprintf(whole, sizeof whole, "encoder.layers.%zu.%s", layer, name);
  } else {
    snprintf(whole, sizeof whole, "%s", name);
  }
  const struct checkpoint_entry *t = checkpoint_find(s->file, whole);
  if (!t || t->count != count) fail_msg("%s is missing, or of another size", whole);
  float *x = arena_alloc(&s->arena, count, sizeof *x, &e);
  assert_int_equal(checkpoint_read_floats(s->file, t, 0, count, x, &e), STATUS_OK);
  return x;
}

static void load_layer(struct sorter *s, size_t i) {
  const float *weight = tensor(s, i, "self_attn.in_proj_weight", 3 * WIDTH * WIDTH);
  const float *bias = tensor(s, i, "self_attn.in_proj_bias", 3 * WIDTH);
  struct stack_layer *l = &s->layer[i];
  for (size_t role = 0; role < ROLE_OUTPUT; role++)
    l->self[role] = (struct layer_matrix){weight + role * WIDTH * WIDTH, bias + role * WIDTH};
  l->self[ROLE_OUTPUT].weight = tensor(s, i, "self_attn.out_proj.weight", WIDTH * WIDTH);
  l->self[ROLE_OUTPUT].bias = tensor(s, i, "self_attn.out_proj.bias", WIDTH);
  l->forward.up.weight = tensor(s, i, "linear1.weight", FORWARD * WIDTH);
  l->forward.up.bias = tensor(s, i, "linear1.bias", FORWARD);
  l->forward.down.weight = tensor(s, i, "linear2.weight", WIDTH * FORWARD);
  l->forward.down.bias = tensor(s, i, "linear2.bias", WIDTH);
  l->norm_self.factor = tensor(s, i, "norm1.weight", WIDTH);
  l->norm_self.shift = tensor(s, i, "norm1.bias", WIDTH);
  l->norm_forward.factor = tensor(s, i, "norm2.weight", WIDTH);
  l->norm_forward.shift = tensor(s, i, "norm2.bias", WIDTH);
}

static int load(void **state) {
  static struct sorter s;
  struct error e = {0};
  struct builtin files;
  assert_true(builtin_find("sort", &files));
  arena_init(&s.arena, NULL);
  s.file = checkpoint_view(files.name, files.tensors, files.tensors_size, &e);
  if (!s.file) fail_msg("%s", e.detail);
  s.form = (struct stack_form){.width = WIDTH,
                               .forward_size = FORWARD,
                               .layers = LAYERS,
                               .place = NORM_POST,
                               .epsilon = 1e-5f,
                               .layer = s.layer};
  s.form.kind->self = (struct layer_shape){.heads = HEADS,
                                           .kv_heads = HEADS,
                                           .head_size = WIDTH / HEADS,
                                           .key_head_size = WIDTH / HEADS,
                                           .value_head_size = WIDTH / HEADS,
                                           .query_size = WIDTH,
                                           .key_size = WIDTH,
                                           .value_size = WIDTH,
                                           .output_size = WIDTH,
                                           .scale = 1 / sqrtf(WIDTH / HEADS)};
  s.form.kind->activation = ACTIVATION_RELU;
  s.form.embedding =
      (struct stack_embedding){.token = tensor(&s, LAYERS, "embedding.weight", VOCABULARY * WIDTH),
                               .position = tensor(&s, LAYERS, "positions.weight", LONGEST * WIDTH),
                               .tokens = VOCABULARY,
                               .position_rows = LONGEST,
                               .positions = POSITIONS_LEARNED,
                               .scale = 1};
  for (size_t i = 0; i < LAYERS; i++) load_layer(&s, i);
  assert_int_equal(checkpoint_count(s.file), 2 + 12 * LAYERS);
  *state = &s;
  return 0;
}

static int unload(void **state) {
  struct sorter *s = *state;
  checkpoint_free(s->file);
  arena_free(&s->arena);
  return 0;
}

/* --- what it does --- */

struct tally {
  size_t rows, right, pointing;
};

/* Row i is right if its greatest number is at the token that comes i-th; it points if head 0 of the
 * last layer gives most of its weight to the place of that token. */
static void judge(const struct sorter *s, const int32_t *token, size_t n, struct tally *tally) {
  static double hidden[(LAYERS + 1) * LONGEST * WIDTH];
  static double weight[LAYERS][HEADS * LONGEST * LONGEST];
  double *weights[LAYERS];
  struct error e = {0};
  for (size_t l = 0; l < LAYERS; l++) weights[l] = weight[l];
  assert_int_equal(stack_ref(&s->form, &(struct ref_text){.n = n, .token = token},
                             &(struct ref_hidden){.state = hidden, .weights = weights}, &e),
                   STATUS_OK);
  for (size_t i = 0; i < n; i++) {
    size_t rank = 0, best = 0;
    for (size_t j = 0; j < n; j++) rank += token[j] < token[i] || (token[j] == token[i] && j < i);
    const double *row = hidden + (LAYERS * n + rank) * WIDTH;
    for (size_t c = 1; c < WIDTH; c++) best = row[c] > row[best] ? c : best;
    tally->rows++;
    tally->right += best == (size_t)token[i];
    tally->pointing += weight[LAYERS - 1][rank * n + i] > 0.5;
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

/* --- its files --- */

static void the_files_are_those_that_training_writes(void **state) {
  (void)state;
  struct builtin files;
  unsigned char digest[DIGEST_SIZE];
  char text[DIGEST_TEXT_SIZE];
  assert_true(builtin_find("sort", &files));
  digest_bytes(files.tensors, files.tensors_size, digest);
  digest_hex(digest, text);
  assert_string_equal(text, "7dcfd8b16e59edfb9d1ff1909ed265496ed95cb15ca2d85770ca8ff1b3ea69b2");
  json_t *config = json_loadb(files.config, files.config_size, JSON_REJECT_DUPLICATES, NULL);
  assert_string_equal(json_string_value(json_object_get(config, "model_type")), "transformer");
  assert_int_equal(json_integer_value(json_object_get(config, "heads")), HEADS);
  json_decref(config);
}

static void models_are_found_by_their_names(void **state) {
  (void)state;
  struct builtin files;
  assert_string_equal(builtin_name(0), "words");
  assert_string_equal(builtin_name(1), "story");
  assert_string_equal(builtin_name(2), "sort");
  assert_null(builtin_name(3));
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
