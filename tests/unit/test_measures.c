/* test_measures: the measures of the heads against their readable twin and their definitions. Runs
 * at the level that ATTEND_CPU allows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/attention/sight.h"
#include "core/reference/measures_ref.h"
#include "tests/support/compare.h"
#include "tests/support/rounds.h"

static void *take(struct arena *a, size_t count, size_t size) {
  void *p = random_room(a, count, size);
  memset(p, 0, count * size);
  return p;
}

static float *numbers(struct arena *a, uint64_t *state, size_t count) {
  float *x = take(a, count, sizeof *x);
  for (size_t i = 0; i < count; i++) x[i] = random_float(state);
  return x;
}

static void prepare(const struct random_layer *l, struct layer_run *c, struct arena *a) {
  struct error e = {0};
  c->call.want_measures = true;
  assert_int_equal(layer_prepare(l->layer, c, a, &e), STATUS_OK);
}

/* A random call that is to be measured, with gradients now and then. */
static struct layer_run *random_measured(const struct random_layer *l, uint64_t *state, size_t most,
                                         struct arena *a) {
  struct layer_run *c = random_call(l, state, most, a);
  if (random_below(state, 2))
    c->call.gradients = numbers(a, state, c->geometry.q_rows * l->shape.output_size);
  prepare(l, c, a);
  return c;
}

/* --- against the twin --- */

static struct measures *expected(const struct random_layer *l, const struct layer_run *c,
                                 struct arena *a) {
  const struct layer_shape *s = &l->shape;
  struct error e = {0};
  size_t pairs = 0;
  for (size_t i = 0; i < c->geometry.items; i++)
    pairs += c->geometry.item[i].q * c->geometry.item[i].k;
  const struct ref_answer answer = {
      .outputs = take(a, c->geometry.q_rows * s->output_size, sizeof(double)),
      .weights = take(a, s->heads * pairs, sizeof(double)),
      .contexts = take(a, c->geometry.q_rows * s->heads * s->value_head_size, sizeof(double))};
  struct measures *m = take(a, 1, sizeof *m);
  m->head = take(a, s->heads, sizeof *m->head);
  m->ranking = take(a, s->heads, sizeof *m->ranking);
  m->divergence = s->sigmoid ? NULL : take(a, s->heads * s->heads, sizeof(double));
  assert_int_equal(attention_ref(s, l->matrix, &c->call, &answer, &e), STATUS_OK);
  measures_ref(s, l->matrix, &c->call, &answer, m);
  return m;
}

static void near(const char *name, size_t i, double got, double right, double bound) {
  if (!(fabs(got - right) <= bound))
    fail_msg("%s of %zu: %.9g, should be %.9g", name, i, got, right);
}

/* Products with gradients may cancel: what is lost is a part of what was added up. */
static double michel_bound(const struct random_layer *l, const struct layer_run *c, double norm) {
  return 1e-5 * (1e-2 + norm * (double)c->geometry.q_rows * sqrt((double)l->shape.output_size));
}

static void compare(const struct random_layer *l, const struct layer_run *c, struct arena *a) {
  const struct measures *m = c->call.measures, *right = expected(l, c, a);
  const size_t heads = l->shape.heads;
  struct error e = {0};
  assert_int_equal(run_fault(&c->run, &e), STATUS_OK);
  assert_int_equal(m->rows, right->rows);
  for (size_t i = 0; i < heads; i++) {
    const struct head_measures *x = &m->head[i], *y = &right->head[i];
    near("confidence", i, x->confidence, y->confidence, 2e-6);
    if (m->divergence) near("entropy", i, x->entropy, y->entropy, 2e-6);
    near("distance", i, x->distance, y->distance, 2e-6 * (1 + y->distance));
    near("norm", i, x->norm, y->norm, 1e-5 * (1e-2 + y->norm));
    near("share", i, x->share, y->share, 1e-5);
    near("delta", i, x->delta, y->delta, 1e-5 * (1e-2 + y->delta));
    near("michel", i, x->michel, y->michel, michel_bound(l, c, y->norm));
  }
  assert_true((m->divergence != NULL) == !l->shape.sigmoid);
  for (size_t i = 0; m->divergence && i < heads * heads; i++)
    near("divergence", i, m->divergence[i], right->divergence[i], 1e-6);
}

static double importance(const struct layer_run *c, size_t head) {
  return c->call.gradients ? c->call.measures->head[head].michel
                           : c->call.measures->head[head].delta;
}

/* What holds whatever the numbers are. */
static void check_form(const struct random_layer *l, const struct layer_run *c) {
  const struct measures *m = c->call.measures;
  const size_t heads = l->shape.heads;
  bool ranked[64] = {false};
  for (size_t i = 0; i < heads; i++) {
    const size_t head = m->ranking[i], before = i ? m->ranking[i - 1] : head;
    assert_true(head < heads && !ranked[head]);
    ranked[head] = true;
    assert_true(importance(c, before) < importance(c, head) ||
                (importance(c, before) == importance(c, head) && before <= head));
    for (size_t h = 0; m->divergence && h < heads; h++) {
      const double js = m->divergence[i * heads + h];
      assert_true(js >= 0 && js <= log(2) + 1e-6 && js == m->divergence[h * heads + i]);
      assert_true(i != h || js == 0);
    }
  }
}

static void agree_with_their_twin(enum gemm_engine engine, uint64_t seed, size_t times,
                                  size_t most) {
  for (size_t round = 0; round < times; round++) {
    uint64_t state = seed + (uint64_t)round;
    struct random_layer l;
    struct arena a;
    arena_init(&a, NULL);
    random_layer_init(&l, &state, engine);
    struct layer_run *c = random_measured(&l, &state, most, &a);
    compute(l.layer, c, 1e5);
    compare(&l, c, &a);
    check_form(&l, c);
    arena_free(&a);
    random_layer_done(&l);
  }
}

static void small_calls_agree_with_the_twin(void **unused) {
  (void)unused;
  agree_with_their_twin(GEMM_PACKED, 1000, rounds(300), 12);
}

static void larger_calls_agree_with_the_twin(void **unused) {
  (void)unused;
  agree_with_their_twin(GEMM_PACKED, 2000, rounds(10), 250);
}

static void openblas_agrees_with_the_twin(void **unused) {
  (void)unused;
  agree_with_their_twin(GEMM_OPENBLAS, 3000, rounds(80), 20);
}

static void long_rows_agree_with_the_twin(void **unused) {
  (void)unused;
  uint64_t state = 5;
  struct random_layer l;
  struct arena a;
  arena_init(&a, NULL);
  plain_layer_init(&l, &state, 12, 4, GEMM_PACKED);
  struct layer_run *c = plain_call(&l, &state, 1, 70, 4000, WEIGHTS_NONE, &a);
  prepare(&l, c, &a);
  compute(l.layer, c, 1e7);
  compare(&l, c, &a);
  arena_free(&a);
  random_layer_done(&l);
}

/* So many heads that the sums of a unit must be shared by several items. */
static void many_heads_over_many_items_agree_with_the_twin(void **unused) {
  (void)unused;
  uint64_t state = 6;
  struct random_layer l;
  struct arena a;
  arena_init(&a, NULL);
  plain_layer_init(&l, &state, 64, 2, GEMM_PACKED);
  struct layer_run *c = plain_call(&l, &state, 700, 1, 3, WEIGHTS_NONE, &a);
  c->call.gradients = numbers(&a, &state, c->geometry.q_rows * l.shape.output_size);
  const size_t before = a.bytes;
  prepare(&l, c, &a);
  assert_true(a.bytes - before < 8 << 20);
  compute(l.layer, c, 1e6);
  compare(&l, c, &a);
  check_form(&l, c);
  arena_free(&a);
  random_layer_done(&l);
}

/* Cuts the keys of an item at random; some segments are empty. */
static void cut_keys(struct layer_run *c, uint64_t *state, size_t segments, struct arena *a) {
  int32_t *end = take(a, c->geometry.items * segments, sizeof *end);
  for (size_t i = 0; i < c->geometry.items; i++) {
    const size_t k = c->geometry.item[i].k;
    int32_t at = 0;
    for (size_t s = 0; s < segments; s++) {
      const size_t most = 1 + 3 * k / segments;
      at += s % 5 == 3 ? 0 : (int32_t)random_below(state, most);
      if (at > (int32_t)k || s + 1 == segments) at = (int32_t)k;
      end[i * segments + s] = at;
    }
    c->geometry.item[i].segments = segments, c->geometry.item[i].segments_at = i * segments;
  }
  c->geometry.segment_end = end;
}

/* Few heads over so many keys, and so many heads over few, that pieces have several turns. */
static void steps_agree_with_the_twin(void **unused) {
  (void)unused;
  static const struct {
    size_t heads, size, q, k, segments;
  } list[] = {{2, 2, 3, 70000, 0}, {2, 2, 3, 70000, 90}, {1, 3, 2, 90000, 4},
              {300, 1, 5, 20, 0},  {300, 2, 20, 9, 5},   {80, 3, 2, 300, 0}};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    uint64_t state = 60 + i;
    struct random_layer l;
    struct arena a;
    arena_init(&a, NULL);
    plain_layer_init(&l, &state, list[i].heads, list[i].size, GEMM_PACKED);
    struct layer_run *c = plain_call(&l, &state, 2, list[i].q, list[i].k, WEIGHTS_NONE, &a);
    if (list[i].segments) cut_keys(c, &state, list[i].segments, &a);
    prepare(&l, c, &a);
    compute(l.layer, c, 1e6);
    compare(&l, c, &a);
    arena_free(&a);
    random_layer_done(&l);
  }
}

/* Measures make the scores again: were they not the same to the bit, so large ones would be off by
 * whole factors. */
static void large_scores_of_one_query_agree_with_the_twin(void **unused) {
  (void)unused;
  const float large[] = {1e2f, 1e4f, 1e6f, 1e9f};
  for (size_t n = 0; n < sizeof large / sizeof *large; n++) {
    uint64_t state = 31 + n;
    struct random_layer l = {.shape = plain_shape(2, 64)};
    struct arena a;
    struct error e = {0};
    arena_init(&a, NULL);
    arena_init(&l.arena, NULL);
    l.layer = layer_new(&l.shape, l.matrix, GEMM_PACKED, &e);
    struct layer_run *c = plain_call(&l, &state, 1, 1, 40, WEIGHTS_NONE, &a);
    for (size_t i = 0; i < l.shape.query_size; i++) ((float *)c->call.queries)[i] *= large[n];
    prepare(&l, c, &a);
    compute(l.layer, c, 1e6);
    compare(&l, c, &a);
    arena_free(&a);
    random_layer_done(&l);
  }
}

/* An additive score that is large for any query: lanes without a query must not show. */
static void idle_lanes_do_not_show(void **unused) {
  (void)unused;
  const float query = 1, key = 10, vector = 89;
  for (size_t queries = 1; queries < 4; queries++)
    for (int segments = 0; segments < 2; segments++) {
      uint64_t state = 3;
      struct random_layer l = {.matrix = {[ROLE_SCORE_QUERY] = {.weight = &query},
                                          [ROLE_SCORE_KEY] = {.weight = &key},
                                          [ROLE_SCORE_VECTOR] = {.weight = &vector}}};
      struct arena a;
      struct error e = {0};
      arena_init(&a, NULL);
      arena_init(&l.arena, NULL);
      l.shape = plain_shape(1, 1);
      l.shape.score = SCORE_ADDITIVE;
      l.shape.score_size = 1;
      l.layer = layer_new(&l.shape, l.matrix, GEMM_PACKED, &e);
      struct layer_run *c = plain_call(&l, &state, 1, queries, 9, WEIGHTS_NONE, &a);
      if (segments) cut_keys(c, &state, 3, &a);
      prepare(&l, c, &a);
      compute(l.layer, c, 1e6);
      compare(&l, c, &a);
      arena_free(&a);
      random_layer_done(&l);
    }
}

static void weights_that_sum_to_anything_have_no_entropy(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(40); round++) {
    uint64_t state = 7000 + round;
    struct random_layer l;
    struct arena a;
    struct error e = {0};
    arena_init(&a, NULL);
    random_layer_init(&l, &state, GEMM_PACKED);
    layer_free(l.layer);
    l.shape.sigmoid = true;
    l.layer = layer_new(&l.shape, l.matrix, GEMM_PACKED, &e);
    struct layer_run *c = random_measured(&l, &state, 90, &a);
    compute(l.layer, c, 1e5);
    compare(&l, c, &a);
    for (size_t h = 0; h < l.shape.heads; h++) assert_true(c->call.measures->head[h].entropy == 0);
    arena_free(&a);
    random_layer_done(&l);
  }
}

/* --- by definition --- */

static double outputs_square(const struct random_layer *l, const struct layer_run *c,
                             const float *x, const float *y) {
  const size_t out = l->shape.output_size;
  double sum = 0;
  for (size_t i = 0; i < c->geometry.items; i++)
    for (size_t r = 0; r < c->geometry.item[i].q; r++) {
      bool sees = false;
      for (size_t h = 0; h < l->shape.heads; h++)
        for (size_t j = 0; j < c->geometry.item[i].k; j++)
          sees |= sight_allows(&c->geometry, &c->geometry.item[i], h, r, j);
      const size_t at = (c->geometry.item[i].q_row + r) * out;
      for (size_t n = 0; sees && n < out; n++) {
        const double difference = (double)x[at + n] - (y ? (double)y[at + n] : 0);
        sum += difference * difference;
      }
    }
  return sum;
}

static void delta_is_what_pruning_the_head_changes(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(60); round++) {
    uint64_t state = 8000 + round;
    struct random_layer l;
    struct arena a;
    arena_init(&a, NULL);
    random_layer_init(&l, &state, GEMM_AUTO);
    struct layer_run *c = random_measured(&l, &state, 70, &a);
    const size_t heads = l.shape.heads, head = random_below(&state, heads);
    float *mask = take(&a, heads, sizeof *mask);
    for (size_t h = 0; h < heads; h++) mask[h] = c->call.head_mask ? c->call.head_mask[h] : 1;
    mask[head] = 0;
    struct layer_run *pruned = call_again(c, &a);
    pruned->call.head_mask = mask;
    prepare(&l, pruned, &a);
    compute(l.layer, c, 1e6);
    compute(l.layer, pruned, 1e6);
    const double all = outputs_square(&l, c, c->call.outputs, NULL);
    const double change = outputs_square(&l, c, c->call.outputs, pruned->call.outputs);
    const double delta = all == 0 ? 0 : sqrt(change / all);
    near("delta", head, c->call.measures->head[head].delta, delta, 1e-5 * (1e-1 + delta));
    assert_true(pruned->call.measures->head[head].norm == 0);
    assert_true(pruned->call.measures->head[head].delta == 0);
    arena_free(&a);
    random_layer_done(&l);
  }
}

static void heads_that_agree_do_not_diverge(void **unused) {
  (void)unused;
  uint64_t state = 9;
  struct random_layer l;
  struct arena a;
  struct error e = {0};
  arena_init(&a, NULL);
  plain_layer_init(&l, &state, 4, 8, GEMM_PACKED);
  for (unsigned role = ROLE_QUERY; role <= ROLE_KEY; role++) /* head 3 does as head 1 */
    memcpy((float *)l.matrix[role].weight + 3 * 8 * 32, l.matrix[role].weight + 1 * 8 * 32,
           8 * 32 * sizeof(float));
  layer_free(l.layer);
  l.layer = layer_new(&l.shape, l.matrix, GEMM_PACKED, &e);
  struct layer_run *c = plain_call(&l, &state, 2, 90, 300, WEIGHTS_NONE, &a);
  prepare(&l, c, &a);
  compute(l.layer, c, 1e6);
  for (size_t g = 0; g < 4; g++)
    for (size_t h = 0; h < 4; h++)
      assert_true((c->call.measures->divergence[g * 4 + h] == 0) == (g == h || (g % 2 && h % 2)));
  arena_free(&a);
  random_layer_done(&l);
}

/* Keys that all weigh the same: rounding must not make their entropy more than it can be. */
static void entropy_is_at_most_one(void **unused) {
  (void)unused;
  for (size_t k = 1000; k < 300000; k *= 2) {
    uint64_t state = 17;
    struct random_layer l;
    struct arena a;
    arena_init(&a, NULL);
    plain_layer_init(&l, &state, 3, 2, GEMM_PACKED);
    struct layer_run *c = plain_call(&l, &state, 1, 1, k, WEIGHTS_NONE, &a);
    for (size_t i = 0; i < k * 6; i++) ((float *)c->call.keys)[i] = 1;
    prepare(&l, c, &a);
    compute(l.layer, c, 1e9);
    for (size_t h = 0; h < 3; h++) {
      const double entropy = c->call.measures->head[h].entropy;
      assert_true(entropy <= 1 && entropy > 1 - 1e-5);
    }
    arena_free(&a);
    random_layer_done(&l);
  }
}

static void a_call_without_rows_measures_nothing(void **unused) {
  (void)unused;
  for (size_t items = 0; items < 3; items++) {
    uint64_t state = 10;
    struct random_layer l;
    struct arena a;
    arena_init(&a, NULL);
    plain_layer_init(&l, &state, 3, 4, GEMM_AUTO);
    struct layer_run *c =
        plain_call(&l, &state, items, items == 1 ? 0 : 5, items == 1 ? 5 : 0, WEIGHTS_NONE, &a);
    c->call.uniform_rows = true;
    prepare(&l, c, &a);
    compute(l.layer, c, 1e6);
    const struct head_measures zero = {0};
    assert_int_equal(c->call.measures->rows, 0);
    for (size_t h = 0; h < 3; h++) {
      assert_memory_equal(&c->call.measures->head[h], &zero, sizeof zero);
      assert_int_equal(c->call.measures->ranking[h], h);
      for (size_t g = 0; g < 3; g++) assert_true(c->call.measures->divergence[g * 3 + h] == 0);
    }
    arena_free(&a);
    random_layer_done(&l);
  }
}

/* Every number of the output is finite, its norm is not. */
static void a_measure_beyond_float_is_an_error(void **unused) {
  (void)unused;
  struct random_layer l = {.shape = {.heads = 1,
                                     .kv_heads = 1,
                                     .head_size = 1,
                                     .key_head_size = 1,
                                     .value_head_size = 1,
                                     .query_size = 1,
                                     .key_size = 1,
                                     .value_size = 1,
                                     .output_size = 2,
                                     .scale = 1.0f}};
  struct arena a;
  struct error e = {0};
  uint64_t state = 1;
  arena_init(&a, NULL);
  arena_init(&l.arena, NULL);
  l.matrix[ROLE_OUTPUT] = (struct layer_matrix){.weight = (float[]){1, 1}};
  l.layer = layer_new(&l.shape, l.matrix, GEMM_PACKED, &e);
  struct layer_run *c = plain_call(&l, &state, 1, 1, 1, WEIGHTS_NONE, &a);
  c->call.values = (float[]){2e38f};
  prepare(&l, c, &a);
  compute(l.layer, c, 1e6);
  assert_int_equal(run_fault(&c->run, &e), STATUS_OK);
  assert_true(fabs(c->call.measures->head[0].norm / 2e38 - sqrt(2)) < 1e-6);
  c->call.values = (float[]){3e38f};
  prepare(&l, c, &a);
  compute(l.layer, c, 1e6);
  assert_true(c->call.outputs[0] == 3e38f && c->call.outputs[1] == 3e38f);
  assert_int_equal(run_fault(&c->run, &e), STATUS_NOT_FINITE);
  assert_string_equal(e.detail, "a measure of the heads exceeds the float32 range");
  arena_free(&a);
  random_layer_done(&l);
}

/* --- bits and bytes --- */

static void same_measures(const struct random_layer *l, const struct layer_run *x,
                          const struct layer_run *y) {
  const size_t heads = l->shape.heads;
  const struct measures *m = x->call.measures, *n = y->call.measures;
  assert_int_equal(m->rows, n->rows);
  assert_memory_equal(m->head, n->head, heads * sizeof *m->head);
  if (m->divergence)
    assert_memory_equal(m->divergence, n->divergence, heads * heads * sizeof *m->divergence);
  assert_memory_equal(m->ranking, n->ranking, heads * sizeof *m->ranking);
}

static void no_neighbour_changes_a_bit(enum gemm_engine engine, uint64_t seed) {
  enum { CALLS = 4 };
  for (uint64_t round = 0; round < rounds(30); round++) {
    uint64_t state = seed + round;
    struct random_layer l;
    struct arena a;
    arena_init(&a, NULL);
    random_layer_init(&l, &state, engine);
    struct layer_run *alone[CALLS], *merged[CALLS];
    for (int i = 0; i < CALLS; i++) {
      alone[i] = random_measured(&l, &state, i % 2 ? 5 : 150, &a);
      merged[i] = call_again(alone[i], &a);
      if (random_below(&state, 2)) merged[i]->call.want = WEIGHTS_NONE;
      prepare(&l, merged[i], &a);
      if (i) merged[i - 1]->run.next = &merged[i]->run;
      compute(l.layer, alone[i], 1e12);
    }
    compute(l.layer, merged[0], 3e4 * (double)(1 + random_below(&state, 50)));
    for (int i = 0; i < CALLS; i++) same_measures(&l, alone[i], merged[i]);
    arena_free(&a);
    random_layer_done(&l);
  }
}

static void merging_and_cutting_change_no_bit(void **unused) {
  (void)unused;
  no_neighbour_changes_a_bit(GEMM_PACKED, 4000);
}

static void merging_and_cutting_change_no_bit_with_openblas(void **unused) {
  (void)unused;
  no_neighbour_changes_a_bit(GEMM_OPENBLAS, 5000);
}

/* What is taken from the arena beyond what the layer alone needs, and the outputs, which must then
 * not lie where the projected rows were. */
static size_t bytes_for(const struct random_layer *l, size_t rows) {
  struct arena a;
  uint64_t state = 1;
  arena_init(&a, NULL);
  struct layer_run *c = plain_call(l, &state, 1, rows, rows, WEIGHTS_NONE, &a);
  const size_t before = a.bytes;
  struct error e = {0};
  assert_int_equal(layer_prepare(l->layer, c, &a, &e), STATUS_OK);
  const size_t plain = a.bytes - before;
  const double work = c->run.work;
  prepare(l, c, &a);
  const size_t measured = a.bytes - before - plain, outputs = rows * l->shape.output_size * 4;
  assert_true(measured >= plain + outputs && c->run.work > 1.5 * work);
  arena_free(&a);
  return measured - plain - outputs;
}

static void memory_grows_with_the_rows_not_with_their_pairs(void **unused) {
  (void)unused;
  uint64_t state = 12;
  struct random_layer l;
  plain_layer_init(&l, &state, 8, 64, GEMM_AUTO);
  const size_t small = bytes_for(&l, 512), large = bytes_for(&l, 2048);
  assert_true(large < 4 * small + 4096);
  assert_true(large < 1 << 20);
  random_layer_done(&l);
}

int main(void) {
  gemm_blas_init();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(small_calls_agree_with_the_twin),
      cmocka_unit_test(larger_calls_agree_with_the_twin),
      cmocka_unit_test(openblas_agrees_with_the_twin),
      cmocka_unit_test(long_rows_agree_with_the_twin),
      cmocka_unit_test(many_heads_over_many_items_agree_with_the_twin),
      cmocka_unit_test(steps_agree_with_the_twin),
      cmocka_unit_test(large_scores_of_one_query_agree_with_the_twin),
      cmocka_unit_test(idle_lanes_do_not_show),
      cmocka_unit_test(weights_that_sum_to_anything_have_no_entropy),
      cmocka_unit_test(delta_is_what_pruning_the_head_changes),
      cmocka_unit_test(heads_that_agree_do_not_diverge),
      cmocka_unit_test(entropy_is_at_most_one),
      cmocka_unit_test(a_call_without_rows_measures_nothing),
      cmocka_unit_test(a_measure_beyond_float_is_an_error),
      cmocka_unit_test(merging_and_cutting_change_no_bit),
      cmocka_unit_test(merging_and_cutting_change_no_bit_with_openblas),
      cmocka_unit_test(memory_grows_with_the_rows_not_with_their_pairs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
