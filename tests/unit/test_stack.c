/* test_stack: whole models against their readable twin: random forms, ragged requests, memory that
 * holds NaN until it is written. Runs at the level that ATTEND_CPU allows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/compare_stack.h"
#include "tests/support/poisoned.h"
#include "tests/support/random_case.h"
#include "tests/support/rounds.h"

static void compare(const struct random_stack *s, const struct stack_run *r, uint64_t seed) {
  struct error e = {0};
  if (!run_agrees_with_twin(s, r, &e)) fail_msg("seed %zu: %s", (size_t)seed, e.detail);
}

static void agrees_with_its_twin(uint64_t seed, size_t times, struct random_stack_kind kind,
                                 size_t items) {
  for (uint64_t round = 0; round < times; round++) {
    struct random_case c;
    random_case_stack(&c, seed + round, kind);
    struct stack_run *r = random_run(&c.s, &c.state, items, kind.longest, &c.a);
    prepare_run(&c.s, r, &c.a);
    compute_runs(&c.s, r, 1e5);
    compare(&c.s, r, seed + round);
    random_case_done(&c);
  }
}

static void small_runs_agree_with_the_twin(void **unused) {
  (void)unused;
  agrees_with_its_twin(1000, rounds(400),
                       (struct random_stack_kind){.layers_most = 4, .longest = 12}, 5);
}

static void longer_runs_agree_with_the_twin(void **unused) {
  (void)unused;
  agrees_with_its_twin(2000, rounds(20),
                       (struct random_stack_kind){.layers_most = 3, .longest = 200}, 4);
}

static void many_items_agree_with_the_twin(void **unused) {
  (void)unused;
  agrees_with_its_twin(2500, rounds(25), (struct random_stack_kind){.layers_most = 2, .longest = 3},
                       90);
}

static void deep_models_agree_with_the_twin(void **unused) {
  (void)unused;
  const struct random_stack_kind kind = {.layers_least = 12, .layers_most = 12, .longest = 20};
  agrees_with_its_twin(3000, rounds(30), kind, 3);
}

static void wide_models_agree_with_the_twin(void **unused) {
  (void)unused;
  const struct random_stack_kind kind = {
      .layers_least = 1, .layers_most = 2, .longest = 6, .wide = true};
  agrees_with_its_twin(4000, rounds(6), kind, 2);
}

/* More tokens than one block has, and as many as fill some exactly. */
static void large_vocabularies_agree_with_the_twin(void **unused) {
  (void)unused;
  static const size_t tokens[] = {1, 1023, 1024, 1025, 2048, 2500, 5000};
  for (uint64_t seed = 0; seed < 21; seed++) {
    struct random_case c;
    random_case_stack(&c, 4700 + seed,
                      (struct random_stack_kind){0, 2, 40, false, true, false, false});
    random_stack_draw_output(&c.s, c.state, tokens[seed % 7]);
    random_stack_remake(&c.s);
    struct stack_run *r = random_run(&c.s, &c.state, 4, 40, &c.a);
    if (!r->targets && !r->want_logits) {
      int32_t *targets = random_room(&c.a, r->geometry.q_rows, sizeof *targets);
      for (size_t i = 0; i < r->geometry.q_rows; i++)
        targets[i] = (int32_t)random_below(&c.state, tokens[seed % 7]);
      r->targets = targets;
    }
    prepare_run(&c.s, r, &c.a);
    compute_runs(&c.s, r, 1e5);
    compare(&c.s, r, seed);
    random_case_done(&c);
  }
}

/* Of equals the lower token comes first, whichever block it is in. */
static void likeliest_tokens_are_in_order(void **unused) {
  (void)unused;
  struct random_case c;
  random_case_stack(&c, 4800, (struct random_stack_kind){0, 0, 4, false, true, true, false});
  const size_t d = c.s.form.width;
  float *matrix = random_room(&c.s.arena, 1100 * d, sizeof *matrix);
  for (size_t i = 0; i < 1100 * d; i++) matrix[i] = i / d == 7 || i / d == 1050 ? 0.5f : 0.25f;
  float *bias = random_room(&c.s.arena, 1100, sizeof *bias);
  memset(bias, 0, 1100 * sizeof *bias);
  bias[1099] = 1000;
  c.s.form.embedding.tokens = 1100;
  c.s.form.embedding.token = random_floats(&c.s.arena, &c.state, 1100 * d, 1);
  c.s.form.last = (struct stack_norm){0};
  c.s.form.output = (struct stack_output){.matrix = {matrix, bias}};
  random_stack_remake(&c.s);
  struct stack_run *r = random_run(&c.s, &c.state, 1, 1, &c.a);
  struct item item = {.q = 1, .k = 1};
  const int32_t target = 1099;
  float *row = random_room(&c.a, d, sizeof *row);
  for (size_t x = 0; x < d; x++) row[x] = 1;
  r->geometry.items = 1, r->geometry.item = &item;
  r->geometry.q_rows = r->geometry.k_rows = 1;
  r->tokens = NULL, r->types = NULL, r->wish = NULL;
  stack_set_pool(r, STACK_POOL_NONE);
  r->embeddings = row, r->targets = &target, r->top = 64, r->want_logits = false;
  prepare_run(&c.s, r, &c.a);
  compute_runs(&c.s, r, 1e5);
  assert_int_equal(r->top_tokens[0], 1099);
  const float sum = r->top_log_probabilities[1] - r->top_log_probabilities[3];
  const int32_t higher[] = {1099, 7, 1050, 0, 1, 2, 3, 4, 5, 6, 8};
  if (sum > 0)
    for (size_t i = 0; i < 11; i++) assert_int_equal(r->top_tokens[i], higher[i]);
  else
    for (size_t i = 1; i < 8; i++) assert_int_equal(r->top_tokens[i], i - 1);
  assert_true(r->log_probabilities[0] == r->top_log_probabilities[0]);
  random_case_done(&c);
}

/* Positions are kept up to some number, and computed behind it. */
static void far_positions_agree_with_the_twin(void **unused) {
  (void)unused;
  size_t far = 0;
  for (uint64_t seed = 4500; far < rounds(12); seed++) {
    struct random_case c;
    random_case_stack(&c, seed, (struct random_stack_kind){.layers_most = 1, .longest = 1});
    if (c.s.form.embedding.positions >= POSITIONS_INTERLEAVED) {
      c.s.form.embedding.first_position = 1000 + random_below(&c.state, 20);
      c.s.longest = 60;
      random_stack_remake(&c.s);
      struct stack_run *r = random_run(&c.s, &c.state, 3, 60, &c.a);
      r->embedded = true;
      prepare_run(&c.s, r, &c.a);
      compute_runs(&c.s, r, 1e5);
      compare(&c.s, r, seed);
      far++;
    }
    random_case_done(&c);
  }
}

/* Items without rows, and no items at all. */
static void runs_may_be_empty(void **unused) {
  (void)unused;
  static const size_t sizes[][3] = {{0, 0, 0}, {0, 3, 0}, {2, 0, 4}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (size_t items = 0; items <= 3; items++) {
      struct random_case c;
      random_case_stack(&c, 50 + i, (struct random_stack_kind){1, 3, 8, false, true, false, false});
      struct stack_run *r = random_run(&c.s, &c.state, 0, 8, &c.a);
      struct item item[3] = {0};
      for (size_t k = 0; k < items; k++) {
        item[k].q = item[k].k = sizes[i][k];
        item[k].q_row = item[k].k_row = r->geometry.q_rows;
        r->geometry.q_rows += item[k].q;
      }
      const int32_t tokens[8] = {0};
      r->geometry.item = item, r->geometry.items = items;
      r->geometry.k_rows = r->geometry.q_rows;
      r->source = random_source(&c.s, c.state, items, &c.a);
      stack_set_pool(r, STACK_POOL_NONE);
      r->normalize = false, r->dimensions = 0;
      r->tokens = tokens, r->types = NULL, r->embeddings = NULL, r->embedded = true;
      struct stack_wish *wish = random_run_wishes(&c.s, r, &c.a);
      for (size_t l = 0; l < c.s.form.layers; l++)
        wish[l] = (struct stack_wish){
            .weights = (enum stack_weights)(1 + l), .thumbnail = 3, .hidden = true, .input = true};
      prepare_run(&c.s, r, &c.a);
      compute_runs(&c.s, r, 1e5);
      compare(&c.s, r, 50 + i);
      random_case_done(&c);
    }
}

/* --- vectors --- */

/* A model without layers and positions: its outputs are what comes in. */
static void bare_stack_init(struct random_stack *s, size_t width) {
  memset(s, 0, sizeof *s);
  arena_init(&s->arena, NULL);
  s->form = (struct stack_form){.name = "encoder",
                                .width = width,
                                .forward_size = 1,
                                .kind = {{.self = plain_shape(1, width)}},
                                .embedding = {.scale = 1},
                                .layer = s->layer};
  random_stack_make(s);
}

static struct stack_run *pool_rows(const struct random_stack *s, enum stack_pool pool,
                                   const float *rows, struct item *item, struct arena *a) {
  struct error e = {0};
  struct stack_run *r = stack_run_new(s->stack, a, &e);
  r->geometry.items = 1, r->geometry.item = item;
  r->geometry.q_rows = r->geometry.k_rows = item->k = item->q;
  r->embeddings = rows;
  stack_set_pool(r, pool);
  return r;
}

/* Their sum and their squares leave float32, they do not. */
static void huge_rows_are_pooled(void **unused) {
  (void)unused;
  static const float rows[3][2] = {{3e38f, -3e38f}, {3e38f, 1}, {3e38f, 3e38f}};
  struct random_stack s;
  bare_stack_init(&s, 2);
  for (enum stack_pool pool = STACK_POOL_CLS; pool <= STACK_POOL_LAST; pool++)
    for (int normalize = 0; normalize < 2; normalize++) {
      struct arena a;
      arena_init(&a, NULL);
      struct stack_run *r = pool_rows(&s, pool, rows[0], &(struct item){.q = 3}, &a);
      r->normalize = normalize;
      prepare_run(&s, r, &a);
      compute_runs(&s, r, 1e5);
      compare(&s, r, pool);
      arena_free(&a);
    }
  random_stack_done(&s);
}

static void nothing_has_no_length(void **unused) {
  (void)unused;
  static const float rows[2][3] = {{0}};
  struct random_stack s;
  struct arena a;
  bare_stack_init(&s, 3);
  arena_init(&a, NULL);
  struct stack_run *r = pool_rows(&s, STACK_POOL_MEAN, rows[0], &(struct item){.q = 2}, &a);
  r->normalize = true;
  prepare_run(&s, r, &a);
  compute_runs(&s, r, 1e5);
  compare(&s, r, 0);
  for (size_t i = 0; i < 3; i++) assert_true(r->outputs[i] == 0);
  arena_free(&a);
  random_stack_done(&s);
}

/* Numbers whose squares are below float32's range still have a length. */
static void small_rows_get_length_one(void **unused) {
  (void)unused;
  static const float rows[1][4] = {{3e-30f, 0, -4e-30f, 0}};
  struct random_stack s;
  struct arena a;
  bare_stack_init(&s, 4);
  arena_init(&a, NULL);
  struct stack_run *r = pool_rows(&s, STACK_POOL_CLS, rows[0], &(struct item){.q = 1}, &a);
  r->normalize = true;
  prepare_run(&s, r, &a);
  compute_runs(&s, r, 1e5);
  compare(&s, r, 0);
  arena_free(&a);
  random_stack_done(&s);
}

/* A model whose classes are bent by what is asked, and whose first layer hands the row on. */
static void huge_scores_have_a_function(void **unused) {
  (void)unused;
  static const float third[1] = {1.0f / 3}, classes[3] = {3e38f, -3e38f, 3e38f}, row[1] = {3};
  static const float right[3][3] = {
      [STACK_FUNCTION_NONE] = {3e38f, -3e38f, 3e38f},
      [STACK_FUNCTION_SOFTMAX] = {0.5f, 0, 0.5f},
      [STACK_FUNCTION_SIGMOID] = {1, 0, 1},
  };
  struct random_stack s;
  bare_stack_init(&s, 1);
  s.form.classifier = (struct stack_classifier){.first = {third, NULL},
                                                .activation = ACTIVATION_RELU,
                                                .classes = {classes, NULL},
                                                .count = 3};
  random_stack_remake(&s);
  for (enum stack_function f = STACK_FUNCTION_NONE; f <= STACK_FUNCTION_SIGMOID; f++) {
    struct arena a;
    arena_init(&a, NULL);
    struct stack_run *r = pool_rows(&s, STACK_POOL_CLS, row, &(struct item){.q = 1}, &a);
    r->after = STACK_AFTER_CLASSES;
    r->function = f;
    prepare_run(&s, r, &a);
    compute_runs(&s, r, 1e5);
    compare(&s, r, f);
    assert_int_equal(r->output_size, 3);
    for (size_t i = 0; i < 3; i++) assert_true(r->outputs[i] == right[f][i]);
    arena_free(&a);
  }
  random_stack_done(&s);
}

/* --- thumbnails --- */

/* Sizes around those of a picture; each byte is that of the weights that a second run shows. */
static void thumbnails_are_of_the_weights(void **unused) {
  (void)unused;
  static const size_t rows[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 64, 65, 150};
  uint64_t state = 60;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (size_t side = 1; side <= 64; side = side < 8 ? side + 3 : 2 * side + 1) {
      struct random_case c;
      random_case_stack(&c, state,
                        (struct random_stack_kind){1, 1, 150, false, true, false, false});
      struct stack_run *r = random_run(&c.s, &c.state, 0, 8, &c.a);
      const struct item item = {.q = rows[i], .k = rows[i]};
      int32_t tokens[150];
      for (size_t k = 0; k < 150; k++)
        tokens[k] = (int32_t)random_below(&c.state, c.s.form.embedding.tokens);
      r->geometry.items = 1, r->geometry.item = (struct item *)&item;
      r->geometry.q_rows = r->geometry.k_rows = rows[i];
      r->source = random_source(&c.s, c.state, 1, &c.a);
      stack_set_pool(r, STACK_POOL_NONE);
      r->dimensions = 0, r->normalize = false;
      r->tokens = tokens, r->types = NULL, r->embeddings = NULL;
      struct stack_run *whole = random_run_again(&c.s, r, &c.a);
      *random_run_wishes(&c.s, r, &c.a) =
          (struct stack_wish){.weights = STACK_WEIGHTS_THUMBNAILS, .thumbnail = side};
      *random_run_wishes(&c.s, whole, &c.a) =
          (struct stack_wish){.weights = STACK_WEIGHTS_PER_HEAD};
      prepare_run(&c.s, r, &c.a);
      prepare_run(&c.s, whole, &c.a);
      compute_runs(&c.s, r, 1e5);
      compute_runs(&c.s, whole, 1e7);
      compare(&c.s, r, i);
      struct error e = {0};
      if (!thumbnails_are_those_of(&c.s, r, whole, &e)) fail_msg("%zu rows: %s", rows[i], e.detail);
      state = c.state;
      random_case_done(&c);
    }
}

/* --- memory --- */

/* What is prepared is all that computing needs. */
static void computing_allocates_nothing(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(40); round++) {
    uint64_t state = 5000 + round;
    struct random_stack s;
    struct budget budget;
    struct arena a;
    budget_init(&budget, SIZE_MAX / 2);
    arena_init(&a, &budget);
    random_stack_init(&s, &state, (struct random_stack_kind){.layers_most = 3, .longest = 30});
    struct stack_run *r = random_run(&s, &state, 4, 30, &a);
    prepare_run(&s, r, &a);
    const size_t charged = a.bytes;
    void *scratch = aligned_alloc(64, stack_scratch_bytes(s.stack) / 64 * 64 + 64);
    poisoned_fail(0);
    run_compute(&r->run, 1e5, scratch);
    assert_int_equal(poisoned_count(), 0);
    assert_int_equal(a.bytes, charged);
    free(scratch);
    compare(&s, r, round);
    arena_free(&a);
    assert_int_equal(atomic_load(&budget.used), 0);
    random_stack_done(&s);
  }
}

enum { ROWS = 100 };

/* Bytes of a run of a model whose draw depends on the seed and the layers alone. */
static size_t bytes_of_run(uint64_t seed, size_t layers, bool thumbnails) {
  static const int32_t tokens[ROWS];
  struct random_case c;
  random_case_stack(&c, 7000 + seed,
                    (struct random_stack_kind){layers, layers, ROWS, true, true, true, false});
  struct stack_run *r = random_run_of_rows(&c.s, ROWS, &c.a);
  r->tokens = tokens;
  struct stack_wish *wish = random_run_wishes(&c.s, r, &c.a);
  for (size_t l = 0; thumbnails && l < layers; l++)
    wish[l] = (struct stack_wish){.weights = STACK_WEIGHTS_THUMBNAILS, .thumbnail = 4};
  prepare_run(&c.s, r, &c.a);
  const double products = 4.0 * ROWS * (double)(c.s.form.width * c.s.form.forward_size * layers);
  assert_true(r->run.work > products && r->run.work < 20 * products);
  assert_int_equal(r->run.rows, ROWS);
  const size_t bytes = c.a.bytes;
  random_case_done(&c);
  return bytes;
}

/* What one layer needs serves them all, the weights that become thumbnails among it. */
static void depth_needs_little_memory(void **unused) {
  (void)unused;
  for (uint64_t seed = 0; seed < rounds(3); seed++)
    for (int thumbnails = 0; thumbnails < 2; thumbnails++) {
      const size_t one = bytes_of_run(seed, 1, thumbnails),
                   deep = bytes_of_run(seed, 8, thumbnails);
      if (deep > one + one / 4) fail_msg("%zu bytes of one layer, %zu of eight", one, deep);
    }
}

static void a_stack_tells_its_form(void **unused) {
  (void)unused;
  uint64_t state = 6;
  struct random_stack s;
  random_stack_init(&s, &state, (struct random_stack_kind){3, 3, 8, false, true, false, false});
  const struct stack_form *f = stack_form(s.stack);
  assert_string_equal(f->name, "encoder");
  assert_int_equal(f->width, s.form.width);
  assert_int_equal(f->forward_size, s.form.forward_size);
  assert_int_equal(f->layers, 3);
  assert_int_equal(f->kind->self.heads, s.form.kind->self.heads);
  assert_int_equal(f->embedding.tokens, s.form.embedding.tokens);
  assert_true(f->causal == s.form.causal && f->last_aside == s.form.last_aside);
  assert_true(stack_has_pooler(s.stack) ==
              (s.form.pooling.pooler.weight != NULL || s.form.pooling.ends));
  for (size_t l = 0; l < 3; l++) /* at every level, or rows would depend on their neighbours */
    assert_string_equal(layer_engine(stack_attention(s.stack, l)), "packed");
  random_stack_done(&s);
  stack_free(NULL);
}

/* Matrices, tables and vectors; packing adds columns, and kept positions rows. */
static void a_stack_tells_its_bytes(void **unused) {
  (void)unused;
  for (uint64_t seed = 0; seed < rounds(8); seed++) {
    uint64_t state = 90 + seed;
    struct random_stack s;
    random_stack_init(&s, &state, (struct random_stack_kind){1, 3, 1, true, true, false, false});
    const struct stack_form *f = &s.form;
    const struct layer_shape *h = &f->kind->self;
    const size_t d = f->width, queries = h->heads * (h->head_size + h->value_head_size),
                 keys = h->kv_heads * (h->head_size + h->value_head_size),
                 matrices = s.layer[0].forward.gate.weight ? 3 : 2;
    size_t count = (f->embedding.tokens + f->embedding.types) * d;
    count += f->layers * d * (queries + keys + matrices * f->forward_size);
    if (f->pooling.pooler.weight) count += d * d;
    for (size_t i = 0, in = d; i < STACK_DENSE_MOST; in = f->pooling.dense[i++].size)
      count += in * f->pooling.dense[i].size * (f->pooling.dense[i].skip.weight ? 2 : 1);
    if (f->classifier.first.weight) count += d * d;
    count += d * f->classifier.count;
    const size_t positions = f->embedding.positions ? (1024 + f->embedding.position_rows) * d : 0;
    const size_t bytes = stack_bytes(s.stack);
    const bool narrow = strcmp(stack_weights(s.stack), "float32") != 0;
    stack_free(s.stack);
    s.form.whole = true;
    random_stack_make(&s);
    assert_string_equal(stack_weights(s.stack), "float32");
    assert_in_range(stack_bytes(s.stack), count * sizeof(float),
                    (count + count / 4 + positions) * sizeof(float));
    assert_true(narrow ? bytes < stack_bytes(s.stack) : bytes == stack_bytes(s.stack));
    random_stack_done(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(small_runs_agree_with_the_twin),
      cmocka_unit_test(longer_runs_agree_with_the_twin),
      cmocka_unit_test(many_items_agree_with_the_twin),
      cmocka_unit_test(deep_models_agree_with_the_twin),
      cmocka_unit_test(wide_models_agree_with_the_twin),
      cmocka_unit_test(large_vocabularies_agree_with_the_twin),
      cmocka_unit_test(likeliest_tokens_are_in_order),
      cmocka_unit_test(far_positions_agree_with_the_twin),
      cmocka_unit_test(runs_may_be_empty),
      cmocka_unit_test(huge_rows_are_pooled),
      cmocka_unit_test(nothing_has_no_length),
      cmocka_unit_test(small_rows_get_length_one),
      cmocka_unit_test(huge_scores_have_a_function),
      cmocka_unit_test(thumbnails_are_of_the_weights),
      cmocka_unit_test(computing_allocates_nothing),
      cmocka_unit_test(depth_needs_little_memory),
      cmocka_unit_test(a_stack_tells_its_form),
      cmocka_unit_test(a_stack_tells_its_bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
