/* test_stack_ref: whole models and their slow twin beside what the published implementations
 * answer: tests/golden/models, one folder a model, loaded as the service does. Runs at the level
 * that ATTEND_CPU allows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/reference/stack_ref.h"
#include "tests/support/whole_read.h"

struct loaded {
  struct whole_read made;
  struct stack *stack;
};

static void load(struct loaded *m, const char *folder) {
  struct error e = {0};
  whole_read_golden(&m->made, folder);
  m->stack = stack_new(&m->made.form, &e);
  assert_non_null(m->stack);
  for (size_t i = 0; i < m->made.form.layers; i++)
    assert_int_equal(stack_set_layer(m->stack, &m->made.form.layer[i], &e), STATUS_OK);
}

static void unload(struct loaded *m) {
  stack_free(m->stack);
  whole_read_free(&m->made);
}

/* --- what is expected --- */

/* Numbers in the order in which a case lists them: the twin's, or float32. */
struct found {
  const double *twin;
  const float *fast;
};

static void compare(const json_t *expected, struct found *found, const char *what) {
  if (json_is_array(expected)) {
    size_t i;
    json_t *part;
    json_array_foreach((json_t *)expected, i, part) compare(part, found, what);
    return;
  }
  const double right = json_number_value(expected), bound = found->twin ? 1e-6 : 1e-4;
  const double x = found->twin ? *found->twin++ : (double)*found->fast++;
  if (!(fabs(x - right) <= bound + bound * fabs(right)))
    fail_msg("%s: %.12g, not %.12g", what, x, right);
}

static void compare_twin(const json_t *expected, const double *x, size_t count, const char *what) {
  if (!expected) return;
  struct found found = {.twin = x};
  compare(expected, &found, what);
  assert_ptr_equal(found.twin, x + count);
}

static void compare_fast(const json_t *expected, const float *x, size_t count, const char *what) {
  if (!expected) return;
  struct found found = {.fast = x};
  compare(expected, &found, what);
  assert_ptr_equal(found.fast, x + count);
}

/* The expected numbers of a layer and an item, in a list [layers][items]; NULL if the case leaves
 * them out, as those of long items do. */
static const json_t *of_item(const json_t *one, const char *what, size_t layer, size_t item) {
  const json_t *all = json_object_get(json_object_get(one, "expected"), what);
  const json_t *found = json_array_get(json_array_get(all, layer), item);
  return json_array_size(found) ? found : NULL;
}

static const json_t *of_output(const json_t *one, size_t item) {
  const json_t *all = json_object_get(json_object_get(one, "expected"), "last_hidden_state");
  return json_array_get(all, item);
}

/* How cases name the vectors of an item. */
static const struct {
  const char *name;
  enum stack_pool pool;
} pools[] = {{"mean", STACK_POOL_MEAN},
             {"cls", STACK_POOL_CLS},
             {"last", STACK_POOL_LAST},
             {"pooler", STACK_POOL_POOLER}};
enum { POOLS = 4 };

static const json_t *pooled(const json_t *one, size_t pool) {
  const json_t *all = json_object_get(json_object_get(one, "expected"), "pooled");
  return json_object_get(all, pools[pool].name);
}

static double *numbers_of(struct loaded *m, const json_t *rows) {
  struct error e = {0};
  const size_t n = json_array_size(rows), d = m->made.form.width;
  double *x = arena_alloc(&m->made.arena, n * d, sizeof *x, &e);
  for (size_t i = 0; i < n * d; i++)
    x[i] = json_number_value(json_array_get(json_array_get(rows, i / d), i % d));
  return x;
}

static double *numbers_of_width(struct loaded *m) {
  struct error e = {0};
  return arena_alloc(&m->made.arena, m->made.form.width, sizeof(double), &e);
}

static int32_t *integers_of(struct loaded *m, const json_t *list) {
  struct error e = {0};
  int32_t *x = arena_alloc(&m->made.arena, json_array_size(list), sizeof *x, &e);
  for (size_t i = 0; i < json_array_size(list); i++)
    x[i] = (int32_t)json_integer_value(json_array_get(list, i));
  return x;
}

static void check_item(struct loaded *m, const json_t *one, size_t item) {
  struct error e = {0};
  const struct stack_form *s = &m->made.form;
  const json_t *tokens = json_array_get(json_object_get(one, "tokens"), item);
  const json_t *types = json_array_get(json_object_get(one, "token_types"), item);
  const json_t *rows = json_array_get(json_object_get(one, "input_hidden_states"), item);
  const size_t n = json_array_size(tokens ? tokens : rows);
  const struct ref_text text = {.n = n,
                                .token = tokens ? integers_of(m, tokens) : NULL,
                                .embedding = rows ? numbers_of(m, rows) : NULL,
                                .token_type = types ? integers_of(m, types) : NULL};
  double **weights = arena_alloc(&m->made.arena, s->layers, sizeof *weights, &e);
  for (size_t l = 0; l < s->layers; l++)
    weights[l] = arena_alloc(&m->made.arena, s->kind->self.heads * n * n, sizeof(double), &e);
  const size_t size = n * s->width;
  double *state = arena_alloc(&m->made.arena, (s->layers + 1) * size, sizeof *state, &e);
  double *outputs = arena_alloc(&m->made.arena, size, sizeof *outputs, &e);
  double *vector = numbers_of_width(m);
  const struct ref_hidden hidden = {.state = state, .weights = weights, .outputs = outputs};
  assert_int_equal(stack_ref(s, &text, &hidden, &e), STATUS_OK);
  for (size_t l = 0; l <= s->layers; l++)
    compare_twin(of_item(one, "hidden_states", l, item), state + l * size, size, "hidden state");
  for (size_t l = 0; l < s->layers; l++)
    compare_twin(of_item(one, "attentions", l, item), weights[l], s->kind->self.heads * n * n,
                 "weight");
  compare_twin(of_output(one, item), outputs, size, "output");
  for (size_t p = 0; p < POOLS; p++) {
    struct stack_run as = {.after = 0};
    stack_set_pool(&as, pools[p].pool);
    const struct ref_pooling how = {.vectors = as.vectors, .after = as.after, .token = text.token};
    if (!pooled(one, p)) continue;
    assert_int_equal(stack_ref_pool(s, &how, n, outputs, vector, &e), STATUS_OK);
    compare_twin(json_array_get(pooled(one, p), item), vector, s->width, pools[p].name);
  }
}

/* --- the same of all items of a case at once --- */

static const json_t *rows_of(const json_t *one, size_t item) {
  const json_t *tokens = json_object_get(one, "tokens");
  return json_array_get(tokens ? tokens : json_object_get(one, "input_hidden_states"), item);
}

/* The arrays of the items, one after the other. */
static void fill_request(struct loaded *m, const json_t *one, struct stack_run *r) {
  struct error e = {0};
  struct geometry *g = &r->geometry;
  const size_t d = m->made.form.width;
  const json_t *types = json_object_get(one, "token_types");
  for (size_t i = 0; i < g->items; i++) {
    g->item[i] = (struct item){.q_row = g->q_rows, .k_row = g->q_rows};
    g->item[i].q = g->item[i].k = json_array_size(rows_of(one, i));
    g->k_rows = g->q_rows += g->item[i].q;
  }
  int32_t *tokens = arena_alloc(&m->made.arena, g->q_rows, sizeof *tokens, &e);
  int32_t *kinds = arena_alloc(&m->made.arena, g->q_rows, sizeof *kinds, &e);
  float *rows = arena_alloc(&m->made.arena, g->q_rows * d, sizeof *rows, &e);
  const bool embedded = !json_object_get(one, "tokens");
  for (size_t i = 0; i < g->items; i++)
    for (size_t n = 0; n < g->item[i].q; n++) {
      const size_t at = g->item[i].q_row + n;
      const json_t *row = json_array_get(rows_of(one, i), n);
      if (types)
        kinds[at] = (int32_t)json_integer_value(json_array_get(json_array_get(types, i), n));
      if (!embedded) tokens[at] = (int32_t)json_integer_value(row);
      for (size_t x = 0; embedded && x < d; x++)
        rows[at * d + x] = (float)json_number_value(json_array_get(row, x));
    }
  r->tokens = embedded ? NULL : tokens;
  r->embeddings = embedded ? rows : NULL;
  r->types = types ? kinds : NULL;
}

static struct stack_run *compute_case(struct loaded *m, const json_t *one, size_t items,
                                      enum stack_pool pool) {
  struct error e = {0};
  struct stack_run *r = stack_run_new(m->stack, &m->made.arena, &e);
  struct stack_wish *wish = arena_alloc(&m->made.arena, m->made.form.layers, sizeof *wish, &e);
  for (size_t l = 0; l < m->made.form.layers; l++)
    wish[l] = (struct stack_wish){.weights = STACK_WEIGHTS_PER_HEAD, .hidden = true};
  r->geometry.items = items;
  r->geometry.item = arena_alloc(&m->made.arena, items, sizeof *r->geometry.item, &e);
  r->wish = wish, r->embedded = true;
  stack_set_pool(r, pool);
  fill_request(m, one, r);
  assert_int_equal(stack_prepare(m->stack, r, &m->made.arena, &e), STATUS_OK);
  void *scratch = aligned_alloc(64, stack_scratch_bytes(m->stack) / 64 * 64 + 64);
  run_compute(&r->run, 1e5, scratch);
  free(scratch);
  assert_int_equal(run_fault(&r->run, &e), STATUS_OK);
  return r;
}

static void check_fast_item(const struct loaded *m, const json_t *one, const struct stack_run *r,
                            size_t item) {
  const struct stack_form *s = &m->made.form;
  const size_t d = s->width, n = r->geometry.item[item].q, at = r->geometry.item[item].q_row * d;
  for (size_t l = 0; l <= s->layers; l++) {
    const float *state = l ? r->shown[l - 1].hidden : r->embedding;
    compare_fast(of_item(one, "hidden_states", l, item), state + at, n * d, "fast hidden state");
  }
  for (size_t l = 0; l < s->layers; l++)
    compare_fast(of_item(one, "attentions", l, item),
                 r->shown[l].weights + r->shown[l].weights_at[item], s->kind->self.heads * n * n,
                 "fast weight");
  compare_fast(of_output(one, item), r->outputs + at, n * d, "fast output");
}

static void check_fast(struct loaded *m, const json_t *one, size_t items) {
  const size_t d = m->made.form.width;
  const struct stack_run *r = compute_case(m, one, items, STACK_POOL_NONE);
  for (size_t i = 0; i < items; i++) check_fast_item(m, one, r, i);
  for (size_t p = 0; p < POOLS; p++)
    if (pooled(one, p))
      compare_fast(pooled(one, p), compute_case(m, one, items, pools[p].pool)->outputs, items * d,
                   pools[p].name);
}

static void check_cases(struct loaded *m, const char *folder) {
  char path[200];
  json_error_t fault;
  snprintf(path, sizeof path, "tests/golden/models/%s/cases.json", folder);
  json_t *cases = json_load_file(path, 0, &fault);
  if (!cases) fail_msg("%s: %s", path, fault.text);
  size_t i, items = 0;
  json_t *one;
  json_array_foreach(cases, i, one) {
    const json_t *last = json_object_get(json_object_get(one, "expected"), "last_hidden_state");
    for (size_t item = 0; item < json_array_size(last); item++, items++) check_item(m, one, item);
    check_fast(m, one, json_array_size(last));
  }
  assert_true(items > 1);
  json_decref(cases);
}

/* --- the models --- */

static void golden_models_are_answered(void **unused) {
  (void)unused;
  static const char *const folders[] = {"bert-a",
                                        "bert-b",
                                        "roberta-b",
                                        "distilbert-b",
                                        "t5-b",
                                        "t5-v11",
                                        "bart-b",
                                        "marian-a",
                                        "d2l-a",
                                        "torch-post",
                                        "torch-encoder-a",
                                        "torch-encoder-b",
                                        "vit-a",
                                        "bart-a",
                                        "marian-b",
                                        "t5-a",
                                        "torch-pre",
                                        "qwen2-bidirectional",
                                        "qwen2-bidirectional-window",
                                        "qwen3-bidirectional",
                                        "llama-bidirectional",
                                        "eurobert-a",
                                        "embeddinggemma-a",
                                        "mpnet-a",
                                        "mpnet-cls",
                                        "deberta-v3-a",
                                        "deberta-v2-separate",
                                        "deberta-v2-c2p",
                                        "deberta-v2-conv",
                                        "jina-v3-a",
                                        "jina-bert-a",
                                        "clip-text-a",
                                        "modernbert-a",
                                        "modernbert-b",
                                        "gte-a",
                                        "nomic-a",
                                        "nomic-ntk",
                                        "nomic-gelu",
                                        "electra-a",
                                        "albert-a",
                                        "albert-inner"};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    struct loaded m;
    print_message("%s\n", folders[i]);
    load(&m, folders[i]);
    check_cases(&m, folders[i]);
    unload(&m);
  }
}

/* Only the last layer's second row leaves float32, by a bias. */
static void what_is_beyond_float32_is_told(void **unused) {
  (void)unused;
  static const float one[4] = {1, 0, 0, 1}, zero[4] = {0}, huge[2] = {3e38f, 0};
  const struct stack_layer layer = {
      .self = {{zero, NULL}, {zero, NULL}, {zero, NULL}, {zero, NULL}},
      .forward = {.up = {one, NULL}, .down = {one, huge}}};
  const struct stack_form s = {.width = 2,
                               .forward_size = 2,
                               .layers = 1,
                               .kind = {{.self = {.heads = 1,
                                                  .kv_heads = 1,
                                                  .head_size = 2,
                                                  .key_head_size = 2,
                                                  .value_head_size = 2,
                                                  .query_size = 2,
                                                  .key_size = 2,
                                                  .value_size = 2,
                                                  .output_size = 2,
                                                  .scale = 1}}},
                               .causal = true,
                               .layer = &layer};
  const double rows[4] = {0, 0, 1e38, 0};
  double state[8];
  struct error e = {0};
  const struct ref_text text = {.n = 2, .embedding = rows};
  stack_ref(&s, &text, &(struct ref_hidden){.state = state}, &e);
  assert_int_equal(e.status, STATUS_NOT_FINITE);
  assert_string_equal(e.detail, "row 1 exceeds the float32 range");
}

/* --- what the golden models do not have --- */

static void vector_is(const struct stack_form *s, struct ref_pooling how, const double *wanted,
                      size_t size) {
  static const double rows[3][2] = {{1, -2}, {3, 0}, {-4, 8}};
  struct error e = {0};
  double x[4] = {77, 77, 77, 77};
  assert_int_equal(stack_ref_pool(s, &how, 3, rows[0], x, &e), STATUS_OK);
  for (size_t i = 0; i < 4; i++)
    assert_true(i < size ? fabs(x[i] - wanted[i]) < 1e-12 : x[i] == 77);
}

static void the_twin_pools(void **unused) {
  (void)unused;
  static const float weight[6] = {1, 0, 0, 1, 1, 1}, bias[3] = {0, 0, 1};
  struct stack_form s = {.width = 2};
  vector_is(&s, (struct ref_pooling){.vectors = STACK_VECTORS_FIRST}, (double[]){1, -2}, 2);
  vector_is(&s, (struct ref_pooling){.vectors = STACK_VECTORS_LAST, .after = STACK_AFTER_DENSE},
            (double[]){-4, 8}, 2);
  vector_is(&s, (struct ref_pooling){.vectors = STACK_VECTORS_MAX, .after = STACK_AFTER_DENSE},
            (double[]){3, 8}, 2);
  vector_is(&s, (struct ref_pooling){.vectors = STACK_VECTORS_MEAN, .after = STACK_AFTER_DENSE},
            (double[]){0, 2}, 2);
  vector_is(
      &s, (struct ref_pooling){.vectors = STACK_VECTORS_MEAN_SQRT_LEN, .after = STACK_AFTER_DENSE},
      (double[]){0, 6 / sqrt(3)}, 2);
  vector_is(
      &s, (struct ref_pooling){.vectors = STACK_VECTORS_WEIGHTED_MEAN, .after = STACK_AFTER_DENSE},
      (double[]){-5.0 / 6, 22.0 / 6}, 2);
  vector_is(&s,
            (struct ref_pooling){
                .vectors = STACK_VECTORS_WEIGHTED_MEAN, .after = STACK_AFTER_DENSE, .left_out = 1},
            (double[]){-6.0 / 5, 24.0 / 5}, 2);
  vector_is(
      &s,
      (struct ref_pooling){.vectors = STACK_VECTORS_MAX, .after = STACK_AFTER_DENSE, .left_out = 2},
      (double[]){-4, 8}, 2);
  vector_is(&s,
            (struct ref_pooling){
                .vectors = STACK_VECTORS_LAST, .after = STACK_AFTER_DENSE, .dimensions = 1},
            (double[]){-4}, 1);
  vector_is(&s,
            (struct ref_pooling){.vectors = STACK_VECTORS_LAST,
                                 .after = STACK_AFTER_DENSE,
                                 .dimensions = 1,
                                 .normalize = true},
            (double[]){-1}, 1);
  vector_is(&s,
            (struct ref_pooling){
                .vectors = STACK_VECTORS_LAST, .after = STACK_AFTER_DENSE, .normalize = true},
            (double[]){-1 / sqrt(5), 2 / sqrt(5)}, 2);
  static const int32_t tokens[][3] = {{5, 7, 7}, {7, 2, 5}, {2, 3, 4}};
  static const double of_seven[][2] = {{3, 0}, {1, -2}, {1, -2}},
                      of_greatest[][2] = {{3, 0}, {1, -2}, {-4, 8}};
  for (size_t i = 0; i < 3; i++) {
    struct ref_pooling how = {.vectors = STACK_VECTORS_FIRST,
                              .after = STACK_AFTER_POOLER,
                              .token = tokens[i]};
    s.pooling.ends = true, s.pooling.end = 7;
    vector_is(&s, how, of_seven[i], 2);
    s.pooling.end = -1;
    vector_is(&s, how, of_greatest[i], 2);
    s.pooling.ends = false;
  }
  s.pooling.pooler = (struct layer_matrix){weight + 2, NULL}; /* of both numbers: [0 1], [1 1] */
  vector_is(&s, (struct ref_pooling){.vectors = STACK_VECTORS_FIRST, .after = STACK_AFTER_POOLER},
            (double[]){tanh(-2), tanh(-1)}, 2);
  s.pooling.dense[0] = (struct stack_dense){.size = 3, .matrix = {weight, bias}};
  vector_is(&s, (struct ref_pooling){.vectors = STACK_VECTORS_MAX, .after = STACK_AFTER_DENSE},
            (double[]){3, 8, 12}, 3);
  s.pooling.dense[0].tanh = true;
  vector_is(&s, (struct ref_pooling){.vectors = STACK_VECTORS_MEAN, .after = STACK_AFTER_DENSE},
            (double[]){0, tanh(2), tanh(3)}, 3);
  s.pooling.dense[0].residual = true;
  s.pooling.dense[0].skip.weight = weight;
  vector_is(&s, (struct ref_pooling){.vectors = STACK_VECTORS_MEAN, .after = STACK_AFTER_DENSE},
            (double[]){0, tanh(2) + 2, tanh(3) + 2}, 3);
  s.pooling.dense[0] = (struct stack_dense){.size = 2, .matrix = {weight + 2, NULL}};
  s.pooling.dense[1] = (struct stack_dense){.size = 2, .matrix = {weight, NULL}, .residual = true};
  vector_is(&s, (struct ref_pooling){.vectors = STACK_VECTORS_MAX, .after = STACK_AFTER_DENSE},
            (double[]){16, 22}, 2);
}

/* Of a first row (1, -2): layers of its own, or the pooler. */
static void the_twin_classifies(void **unused) {
  (void)unused;
  static const float weight[6] = {1, 0, 0, 1, 1, 1}, bias[3] = {0, 0, 1};
  struct ref_pooling how = {.vectors = STACK_VECTORS_FIRST, .after = STACK_AFTER_CLASSES};
  struct stack_form s = {
      .width = 2,
      .pooling = {.dense = {{.size = 1, .matrix = {weight, NULL}}}},
      .classifier = {.first = {weight, NULL}, .classes = {weight, bias}, .count = 3}};
  const double sum = exp(1) + 1 + exp(2), low = tanh(-2), first = tanh(-1);
  vector_is(&s, how, (double[]){1, 0, 2}, 3);
  how.function = STACK_FUNCTION_SOFTMAX;
  vector_is(&s, how, (double[]){exp(1) / sum, 1 / sum, exp(2) / sum}, 3);
  how.function = STACK_FUNCTION_SIGMOID;
  vector_is(&s, how, (double[]){1 / (1 + exp(-1)), 0.5, 1 / (1 + exp(-2))}, 3);
  how.function = STACK_FUNCTION_NONE;
  s.classifier.tanh = true;
  vector_is(&s, how, (double[]){tanh(1), low, tanh(1) + low + 1}, 3);
  s.pooling.pooler = (struct layer_matrix){weight + 2, NULL};
  s.classifier.pooler = true;
  vector_is(&s, how, (double[]){low, first, low + first + 1}, 3);
}

static void the_twin_draws_thumbnails(void **unused) {
  (void)unused;
  static const double weights[9] = {1, 0, 0, 0.5, 0.5, 0, 0.2, 0.3, 0.501};
  static const uint8_t whole[9] = {255, 0, 0, 128, 128, 0, 51, 77, 128};
  uint8_t bytes[9];
  stack_ref_thumbnail(weights, 3, 3, 3, bytes);
  assert_memory_equal(bytes, whole, 9);
  stack_ref_thumbnail(weights, 3, 3, 2,
                      bytes); /* the first row, and the others; columns likewise */
  assert_memory_equal(bytes, ((uint8_t[]){255, 0, 128, 128}), 4);
  stack_ref_thumbnail(weights, 3, 3, 1, bytes);
  assert_int_equal(bytes[0], 255);
  stack_ref_thumbnail(weights + 3, 1, 6, 4, bytes); /* a row is one; columns 0, 1 2, 3, 4 5 */
  assert_memory_equal(bytes, ((uint8_t[]){128, 128, 51, 128}), 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(golden_models_are_answered),
      cmocka_unit_test(the_twin_pools),
      cmocka_unit_test(the_twin_classifies),
      cmocka_unit_test(the_twin_draws_thumbnails),
      cmocka_unit_test(what_is_beyond_float32_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
