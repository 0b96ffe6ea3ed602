/* test_space: memory that serves twice: lists of spare stretches, and calls whose inputs may be
 * overwritten, beside the same calls whose inputs stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "core/attention/measures.h"
#include "core/base/spare.h"
#include "tests/support/compare.h"
#include "tests/support/rounds.h"

/* --- the list --- */

static bool within(const void *p, size_t bytes, const char *stretch, size_t size) {
  return (const char *)p >= stretch && (const char *)p + bytes <= stretch + size;
}

static void stretches_are_used_one_after_the_other(void **unused) {
  (void)unused;
  static _Alignas(64) char first[1000], second[5000];
  struct spare s = {0};
  assert_null(spare_take(&s, 1));
  spare_add(&s, NULL, 0);
  spare_add(&s, first, 63);
  assert_int_equal(s.count, 0);
  spare_add(&s, first + 1, sizeof first - 1); /* 936 bytes from the next line on */
  spare_add(&s, second, sizeof second);
  assert_null(spare_take(&s, 5001));
  assert_ptr_equal(spare_take(&s, 937), second);
  assert_ptr_equal(spare_take(&s, 1), first + 64);
  assert_ptr_equal(spare_take(&s, 872), first + 128);
  assert_ptr_equal(spare_take(&s, 1), second + 960);
  assert_ptr_equal(spare_take(&s, 5000 - 1024), second + 1024);
  assert_null(spare_take(&s, 1));
}

static void what_is_added_beyond_is_left_unused(void **unused) {
  (void)unused;
  static _Alignas(64) char stretch[SPARE_STRETCHES + 1][64];
  struct spare s = {0};
  for (size_t i = 0; i <= SPARE_STRETCHES; i++) spare_add(&s, stretch[i], 64);
  for (size_t i = 0; i < SPARE_STRETCHES; i++) assert_ptr_equal(spare_take(&s, 64), stretch[i]);
  assert_null(spare_take(&s, 64));
}

/* --- calls --- */

static float *copy_of(const float *rows, size_t count, struct arena *a) {
  struct error e = {0};
  float *copy = arena_alloc(a, count, sizeof *copy, &e);
  assert_non_null(copy);
  memcpy(copy, rows, count * sizeof *copy);
  return copy;
}

/* The same request, unprepared, with inputs of its own that may be overwritten. */
static struct layer_run *spending(const struct random_layer *l, const struct layer_run *c,
                                  struct arena *a) {
  struct layer_run *copy = call_again(c, a);
  const size_t count[] = {c->geometry.q_rows * l->shape.query_size,
                          c->geometry.k_rows * l->shape.key_size,
                          c->geometry.k_rows * l->shape.value_size};
  copy->call.queries = copy_of(c->call.queries, count[0], a);
  spare_add(&copy->call.spare, (void *)copy->call.queries, count[0] * sizeof(float));
  copy->call.keys = copy->call.queries;
  if (c->call.keys != c->call.queries) {
    copy->call.keys = copy_of(c->call.keys, count[1], a);
    spare_add(&copy->call.spare, (void *)copy->call.keys, count[1] * sizeof(float));
  }
  copy->call.values = copy->call.keys;
  if (c->call.values != c->call.keys) {
    copy->call.values = copy_of(c->call.values, count[2], a);
    spare_add(&copy->call.spare, (void *)copy->call.values, count[2] * sizeof(float));
  }
  return copy;
}

static void prepare(const struct random_layer *l, struct layer_run *c, struct arena *a) {
  struct error e = {0};
  assert_int_equal(layer_prepare(l->layer, c, a, &e), STATUS_OK);
}

/* Now and then the values are the keys, and the keys the queries: where the sizes allow it. */
static void share_inputs(const struct random_layer *l, struct layer_run *c, uint64_t *state) {
  const struct layer_shape *s = &l->shape;
  bool rows_agree = true;
  for (size_t i = 0; i < c->geometry.items; i++)
    rows_agree &= c->geometry.item[i].q == c->geometry.item[i].k;
  if (random_below(state, 2)) return;
  if (s->key_size == s->value_size) c->call.values = c->call.keys;
  if (rows_agree && s->query_size == s->key_size && random_below(state, 4)) {
    const bool values = c->call.values == c->call.keys;
    c->call.keys = c->call.queries;
    if (values) c->call.values = c->call.keys;
  }
}

static void measure(const struct random_layer *l, struct layer_run *c, uint64_t *state,
                    struct arena *a) {
  struct error e = {0};
  const size_t count = c->geometry.q_rows * l->shape.output_size;
  c->call.want_measures = true;
  if (random_below(state, 2)) return;
  float *gradients = arena_alloc(a, count, sizeof *gradients, &e);
  assert_non_null(gradients);
  for (size_t i = 0; i < count; i++) gradients[i] = random_float(state);
  c->call.gradients = gradients;
}

static void use_what_is_left(struct layer_run *c) {
  for (size_t i = 0; i < c->call.left.count; i++)
    memset(c->call.left.stretch[i].at, 0xff,
           (size_t)(c->call.left.stretch[i].end - c->call.left.stretch[i].at));
}

static void no_bit_differs(const struct random_layer *l, const struct layer_run *x,
                           const struct layer_run *y) {
  struct error e = {0};
  assert_int_equal(atomic_load(&x->run.fault), atomic_load(&y->run.fault));
  if (atomic_load(&x->run.fault)) return;
  if (!same_bits(l, x, y, &e)) fail_msg("%s", e.detail);
  if (!x->call.measures) return;
  assert_memory_equal(x->call.measures->head, y->call.measures->head,
                      l->shape.heads * sizeof *x->call.measures->head);
}

enum { CALLS = 4 };

/* A chain of random calls, each as it is and spending its inputs, merged. */
static void compare_chains(const struct random_layer *l, uint64_t *state, size_t most, bool square,
                           struct arena *a) {
  struct layer_run *whole[CALLS], *spent[CALLS];
  const bool measured = random_below(state, 3) == 0; /* calls that are merged have one program */
  for (int i = 0; i < CALLS; i++) {
    const size_t rows = 1 + random_below(state, most);
    struct layer_run *c = square ? plain_call(l, state, 1 + random_below(state, 3), rows, rows,
                                              (enum weights)random_below(state, 3), a)
                                 : random_call(l, state, most, a);
    share_inputs(l, c, state);
    if (measured) measure(l, c, state, a);
    whole[i] = call_again(c, a);
    spent[i] = spending(l, c, a);
    prepare(l, whole[i], a);
    prepare(l, spent[i], a);
    if (i) whole[i - 1]->run.next = &whole[i]->run, spent[i - 1]->run.next = &spent[i]->run;
  }
  compute(l->layer, whole[0], 1e12);
  compute(l->layer, spent[0], 3e4 * (double)(1 + random_below(state, 50)));
  for (int i = 0; i < CALLS; i++) {
    use_what_is_left(spent[i]);
    use_what_is_left(whole[i]);
    no_bit_differs(l, whole[i], spent[i]);
  }
}

static void overwriting_inputs_changes_no_bit(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(80); round++) {
    uint64_t state = 100 + round;
    struct random_layer l;
    struct arena a;
    arena_init(&a, NULL);
    random_layer_init(&l, &state, GEMM_PACKED);
    compare_chains(&l, &state, round % 2 ? 12 : 90, false, &a);
    arena_free(&a);
    random_layer_done(&l);
  }
}

static void shared_inputs_are_overwritten_once(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(40); round++) {
    uint64_t state = 200 + round;
    struct random_layer l;
    struct arena a;
    arena_init(&a, NULL);
    plain_layer_init(&l, &state, 1 + random_below(&state, 4), 1 + random_below(&state, 40),
                     GEMM_PACKED);
    compare_chains(&l, &state, 60, true, &a);
    arena_free(&a);
    random_layer_done(&l);
  }
}

/* Nothing is copied for its own sake: context and outputs need no memory of their own, and all that
 * is not the outputs is left. */
static void a_plain_call_takes_the_memory_of_its_projections(void **unused) {
  (void)unused;
  enum { HEADS = 4, SIZE = 64, ROWS = 200, FLOATS = ROWS * HEADS * SIZE };
  uint64_t state = 1;
  struct random_layer l;
  struct arena a, room;
  arena_init(&a, NULL);
  arena_init(&room, NULL);
  plain_layer_init(&l, &state, HEADS, SIZE, GEMM_PACKED);
  struct layer_run *c = spending(&l, plain_call(&l, &state, 1, ROWS, ROWS, WEIGHTS_NONE, &a), &a);
  prepare(&l, c, &room);
  assert_in_range(room.bytes, 3 * FLOATS * sizeof(float), 3.2 * FLOATS * sizeof(float));
  assert_true(within(c->call.outputs, FLOATS * sizeof(float), (const char *)c->call.keys,
                     FLOATS * sizeof(float)));
  size_t left = 0;
  for (size_t i = 0; i < c->call.left.count; i++)
    left += (size_t)(c->call.left.stretch[i].end - c->call.left.stretch[i].at);
  assert_int_equal(left, 5 * FLOATS * sizeof(float));
  arena_free(&room);
  arena_free(&a);
  random_layer_done(&l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(stretches_are_used_one_after_the_other),
      cmocka_unit_test(what_is_added_beyond_is_left_unused),
      cmocka_unit_test(overwriting_inputs_changes_no_bit),
      cmocka_unit_test(shared_inputs_are_overwritten_once),
      cmocka_unit_test(a_plain_call_takes_the_memory_of_its_projections),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
