/* test_kept: keys and values that the caller keeps: however a sequence is cut into calls, each row
 * has the bits that it has where all of it comes at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/attention/layer_parts.h"
#include "tests/support/compare.h"

enum { ROUNDS = 40, ITEMS = 3 };

/* Sequences whose queries are their keys and values: some rows of `in` numbers each. */
struct sequences {
  struct random_layer l;
  struct arena a;
  uint64_t state;
  size_t in, rows[ITEMS], at[ITEMS]; /* all of an item's rows, and where they begin */
  float *input;
  struct kept_pair kept[ITEMS];
};

static void *allocate(struct arena *a, size_t count, size_t size) {
  struct error e = {0};
  void *p = arena_alloc(a, count, size, &e);
  assert_non_null(p);
  return p;
}

/* Room for more rows than will come, head by head or row by row; what is not there yet is NaN. */
static void keep(struct sequences *s, struct kept *k, unsigned role, size_t rows) {
  const size_t heads = s->l.shape.kv_heads, size = role_kept_size(s->l.layer, role);
  const size_t room = rows + random_below(&s->state, 5);
  *k = (struct kept){.capacity = room};
  k->rows.row = allocate(&s->a, room * heads * size, sizeof(float));
  memset(k->rows.row, 0xff, room * heads * size * sizeof(float));
  const bool by_rows = random_below(&s->state, 2);
  k->rows.row_step = by_rows ? heads * size : size;
  k->rows.head_step = by_rows ? size : room * size;
}

static void sequences_init(struct sequences *s, uint64_t seed) {
  size_t all = 0;
  *s = (struct sequences){.state = seed};
  arena_init(&s->a, NULL);
  for (;;) { /* a layer whose inputs are of one size */
    random_layer_init(&s->l, &s->state, GEMM_PACKED);
    const struct layer_shape *shape = &s->l.shape;
    if (shape->query_size == shape->key_size && shape->key_size == shape->value_size) break;
    random_layer_done(&s->l);
  }
  s->in = s->l.shape.query_size;
  for (size_t i = 0; i < ITEMS; i++) {
    s->rows[i] = random_below(&s->state, seed % 4 ? 30 : 160);
    s->at[i] = all;
    all += s->rows[i];
    keep(s, &s->kept[i].key, ROLE_KEY, s->rows[i]);
    keep(s, &s->kept[i].value, ROLE_VALUE, s->rows[i]);
  }
  s->input = allocate(&s->a, all * s->in + 1, sizeof(float));
  for (size_t x = 0; x < all * s->in; x++) s->input[x] = random_float(&s->state);
}

static void sequences_done(struct sequences *s) {
  random_layer_done(&s->l);
  arena_free(&s->a);
}

/* The next rows of each item, `count` of them, behind those that are kept; prepared. */
static struct call *next_rows(struct sequences *s, const size_t *from, const size_t *count,
                              bool kept) {
  struct error e = {0};
  struct call *c = allocate(&s->a, 1, sizeof *c);
  *c = (struct call){.items = ITEMS,
                     .item = allocate(&s->a, ITEMS, sizeof(struct item)),
                     .causal = true,
                     .window_left = -1,
                     .window_right = -1,
                     .kept = kept ? s->kept : NULL,
                     .want = WEIGHTS_PER_HEAD};
  for (size_t i = 0; i < ITEMS; i++) {
    c->item[i] = (struct item){.q = count[i],
                               .k = from[i] + count[i],
                               .q_row = c->q_rows,
                               .k_row = c->k_rows,
                               .offset = (int64_t)from[i]};
    c->q_rows += count[i], c->k_rows += count[i];
  }
  float *rows = allocate(&s->a, c->q_rows * s->in + 1, sizeof *rows);
  for (size_t i = 0; i < ITEMS; i++)
    memcpy(rows + c->item[i].q_row * s->in, s->input + (s->at[i] + from[i]) * s->in,
           count[i] * s->in * sizeof *rows);
  c->queries = c->keys = c->values = rows;
  assert_int_equal(layer_prepare(s->l.layer, c, &s->a, &e), STATUS_OK);
  return c;
}

/* The rows of a step beside the same ones of the whole. */
static void compare(const struct sequences *s, const struct call *whole, const struct call *step) {
  const size_t out = s->l.shape.output_size, heads = s->l.shape.heads;
  for (size_t i = 0; i < ITEMS; i++) {
    const struct item *x = &whole->item[i], *y = &step->item[i];
    const size_t first = y->k - y->q;
    assert_memory_equal(whole->outputs + (x->q_row + first) * out, step->outputs + y->q_row * out,
                        y->q * out * sizeof(float));
    for (size_t h = 0; h < heads; h++)
      for (size_t r = 0; r < y->q; r++)
        assert_memory_equal(whole->weights + x->weights_at + (h * x->q + first + r) * x->k,
                            step->weights + y->weights_at + (h * y->q + r) * y->k,
                            y->k * sizeof(float));
  }
}

static void any_cut_of_a_sequence_has_the_same_bits(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < ROUNDS; round++) {
    static const size_t none[ITEMS];
    struct sequences s;
    struct error e = {0};
    sequences_init(&s, 300 + round);
    struct call *whole = next_rows(&s, none, s.rows, false);
    compute(s.l.layer, whole, 1e5);
    assert_int_equal(run_fault(&whole->run, &e), STATUS_OK);
    size_t from[ITEMS] = {0}, left = 0;
    for (size_t i = 0; i < ITEMS; i++) left += s.rows[i];
    while (left > 0) {
      size_t count[ITEMS];
      for (size_t i = 0; i < ITEMS; i++) {
        const size_t more =
            random_below(&s.state, 3) ? random_below(&s.state, 3) : random_below(&s.state, 100);
        count[i] = more < s.rows[i] - from[i] ? more : s.rows[i] - from[i];
        left -= count[i];
      }
      struct call *step = next_rows(&s, from, count, true);
      const bool blind = random_below(&s.state, 3) == 0; /* rows may be seen only later */
      if (blind) step->lens = allocate(&s.a, step->q_rows, sizeof(int32_t));
      if (blind) memset((int32_t *)step->lens, 0, step->q_rows * sizeof(int32_t));
      compute(s.l.layer, step, 1e4 * (double)(1 + random_below(&s.state, 50)));
      assert_int_equal(run_fault(&step->run, &e), STATUS_OK);
      if (!blind) compare(&s, whole, step);
      for (size_t i = 0; i < ITEMS; i++) {
        from[i] += count[i];
        s.kept[i].key.rows.count = s.kept[i].value.rows.count = from[i];
      }
    }
    sequences_done(&s);
  }
}

/* Preparing a call whose keys are kept takes memory for its new rows, not for those. */
static void what_is_kept_is_not_paid_for_again(void **unused) {
  (void)unused;
  struct sequences s;
  sequences_init(&s, 7);
  const size_t one[ITEMS] = {1, 1, 1}, all[ITEMS] = {4000, 4000, 4000};
  for (size_t i = 0; i < ITEMS; i++) {
    keep(&s, &s.kept[i].key, ROLE_KEY, 4001);
    keep(&s, &s.kept[i].value, ROLE_VALUE, 4001);
    s.kept[i].key.rows.count = s.kept[i].value.rows.count = 4000;
    s.at[i] = 0;
  }
  s.input = allocate(&s.a, 4001 * s.in, sizeof(float));
  memset(s.input, 0, 4001 * s.in * sizeof(float));
  struct call *c = next_rows(&s, all, one, true);
  assert_ptr_equal(kept_rows_of(s.l.layer, c, 0, ROLE_KEY).row, s.kept[0].key.rows.row);
  assert_int_equal(c->k_rows, ITEMS);
  sequences_done(&s);
}

int main(void) {
  gemm_blas_init();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_cut_of_a_sequence_has_the_same_bits),
      cmocka_unit_test(what_is_kept_is_not_paid_for_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
