/* test_kept: keys and values that the caller keeps: however a sequence is cut into calls, each row
 * has the bits that it has where all of it comes at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/attention/layer_parts.h"
#include "tests/support/compare.h"
#include "tests/support/rounds.h"

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

/* Room for more rows than will come, head by head or row by row; what is not there yet is NaN. */
static void keep(struct sequences *s, struct kept *k, unsigned role, size_t rows) {
  const size_t heads = s->l.shape.kv_heads, size = role_kept_size(s->l.layer, role);
  const size_t room = rows + random_below(&s->state, 5);
  *k = (struct kept){.capacity = room};
  k->rows.row = random_room(&s->a, room * heads * size, sizeof(float));
  memset(k->rows.row, 0xff, room * heads * size * sizeof(float));
  const bool by_rows = random_below(&s->state, 2);
  k->rows.row_step = by_rows ? heads * size : size;
  k->rows.head_step = by_rows ? size : room * size;
}

/* A layer whose inputs are of one size; or with columns that are shared out, too. */
static void layer_of_one_size(struct random_layer *l, uint64_t *state, bool wide) {
  if (wide) {
    wide_layer_init(l, state, GEMM_PACKED);
    return;
  }
  for (;;) {
    random_layer_init(l, state, GEMM_PACKED);
    const struct layer_shape *shape = &l->shape;
    if (shape->query_size == shape->key_size && shape->key_size == shape->value_size) return;
    random_layer_done(l);
  }
}

static void sequences_init(struct sequences *s, uint64_t seed) {
  size_t all = 0;
  *s = (struct sequences){.state = seed};
  arena_init(&s->a, NULL);
  layer_of_one_size(&s->l, &s->state, seed % 5 == 0);
  s->in = s->l.shape.query_size;
  for (size_t i = 0; i < ITEMS; i++) {
    s->rows[i] = random_below(&s->state, seed % 4 ? 30 : 160);
    s->at[i] = all;
    all += s->rows[i];
    keep(s, &s->kept[i].key, ROLE_KEY, s->rows[i]);
    keep(s, &s->kept[i].value, ROLE_VALUE, s->rows[i]);
  }
  s->input = random_room(&s->a, all * s->in + 1, sizeof(float));
  for (size_t x = 0; x < all * s->in; x++) s->input[x] = random_float(&s->state);
}

static void sequences_done(struct sequences *s) {
  random_layer_done(&s->l);
  arena_free(&s->a);
}

/* What is asked now and then while a sequence goes on: some heads alone, and no weights. */
static const float *draw_head_mask(struct sequences *s) {
  float *mask = random_room(&s->a, s->l.shape.heads, sizeof *mask);
  for (size_t h = 0; h < s->l.shape.heads; h++) mask[h] = (float)random_below(&s->state, 2);
  return mask;
}

/* The next rows of each item, `count` of them, behind those that are kept; prepared. */
static struct layer_run *next_rows(struct sequences *s, const size_t *from, const size_t *count,
                                   bool kept, const float *head_mask) {
  struct error e = {0};
  struct layer_run *c = random_room(&s->a, 1, sizeof *c);
  *c = (struct layer_run){.geometry.items = ITEMS,
                          .geometry.item = random_room(&s->a, ITEMS, sizeof(struct item)),
                          .geometry.causal = true,
                          .geometry.window_left = -1,
                          .geometry.window_right = -1,
                          .call.kept = kept ? s->kept : NULL,
                          .call.head_mask = head_mask,
                          .call.want = head_mask ? WEIGHTS_NONE : WEIGHTS_PER_HEAD};
  for (size_t i = 0; i < ITEMS; i++) {
    c->geometry.item[i] = (struct item){.q = count[i],
                                        .k = from[i] + count[i],
                                        .q_row = c->geometry.q_rows,
                                        .k_row = c->geometry.k_rows,
                                        .offset = (int64_t)from[i]};
    c->geometry.q_rows += count[i], c->geometry.k_rows += count[i];
  }
  float *rows = random_room(&s->a, c->geometry.q_rows * s->in + 1, sizeof *rows);
  for (size_t i = 0; i < ITEMS; i++)
    memcpy(rows + c->geometry.item[i].q_row * s->in, s->input + (s->at[i] + from[i]) * s->in,
           count[i] * s->in * sizeof *rows);
  c->call.queries = c->call.keys = c->call.values = rows;
  assert_int_equal(layer_prepare(s->l.layer, c, &s->a, &e), STATUS_OK);
  return c;
}

/* The rows of a step beside the same ones of the whole. */
static void compare(const struct sequences *s, const struct layer_run *whole,
                    const struct layer_run *step) {
  const size_t out = s->l.shape.output_size, heads = s->l.shape.heads;
  for (size_t i = 0; i < ITEMS; i++) {
    const struct item *x = &whole->geometry.item[i], *y = &step->geometry.item[i];
    const size_t first = y->k - y->q;
    assert_memory_equal(whole->call.outputs + (x->q_row + first) * out,
                        step->call.outputs + y->q_row * out, y->q * out * sizeof(float));
    for (size_t h = 0; h < heads; h++)
      for (size_t r = 0; r < y->q; r++)
        assert_memory_equal(whole->call.weights + whole->call.weights_at[i] +
                                (h * x->q + first + r) * x->k,
                            step->call.weights + step->call.weights_at[i] + (h * y->q + r) * y->k,
                            y->k * sizeof(float));
  }
}

static void any_cut_of_a_sequence_has_the_same_bits(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(ROUNDS); round++) {
    static const size_t none[ITEMS];
    struct sequences s;
    struct error e = {0};
    sequences_init(&s, 300 + round);
    struct layer_run *whole = next_rows(&s, none, s.rows, false, NULL);
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
      const bool masked = random_below(&s.state, 4) == 0; /* all heads may be needed only later */
      struct layer_run *step = next_rows(&s, from, count, true, masked ? draw_head_mask(&s) : NULL);
      const bool blind = random_below(&s.state, 3) == 0; /* rows may be seen only later */
      if (blind) step->geometry.lens = random_room(&s.a, step->geometry.q_rows, sizeof(int32_t));
      if (blind) memset((int32_t *)step->geometry.lens, 0, step->geometry.q_rows * sizeof(int32_t));
      compute(s.l.layer, step, 1e4 * (double)(1 + random_below(&s.state, 50)));
      assert_int_equal(run_fault(&step->run, &e), STATUS_OK);
      if (!blind && !masked) compare(&s, whole, step);
      for (size_t i = 0; i < ITEMS; i++) {
        from[i] += count[i];
        s.kept[i].key.count = s.kept[i].value.count = from[i];
      }
    }
    sequences_done(&s);
  }
}

/* Numbers of a key and its value in all heads. */
static size_t row_numbers(const struct sequences *s) {
  return s->l.shape.kv_heads *
         (role_kept_size(s->l.layer, ROLE_KEY) + role_kept_size(s->l.layer, ROLE_VALUE));
}

/* Preparing a call whose keys are kept takes memory for its new rows, not for those: for each of
 * these only what says who sees it, its weights, and its relative position. */
static void what_is_kept_is_not_paid_for_again(void **unused) {
  (void)unused;
  enum { KEPT = 4000 };
  struct sequences s;
  uint64_t seed = 7;
  for (sequences_init(&s, seed); row_numbers(&s) < 4 * s.l.shape.heads + 8;
       sequences_init(&s, ++seed))
    sequences_done(&s);
  const size_t one[ITEMS] = {1, 1, 1}, all[ITEMS] = {KEPT, KEPT, KEPT};
  for (size_t i = 0; i < ITEMS; i++) {
    keep(&s, &s.kept[i].key, ROLE_KEY, KEPT + 1);
    keep(&s, &s.kept[i].value, ROLE_VALUE, KEPT + 1);
    s.kept[i].key.count = s.kept[i].value.count = KEPT;
    s.at[i] = 0;
  }
  s.input = random_room(&s.a, (KEPT + 1) * s.in, sizeof(float));
  memset(s.input, 0, (KEPT + 1) * s.in * sizeof(float));
  const size_t before = s.a.bytes;
  struct layer_run *c = next_rows(&s, all, one, true, NULL);
  assert_ptr_equal(kept_rows_of(s.l.layer, &c->call, 0, ROLE_KEY).row, s.kept[0].key.rows.row);
  assert_int_equal(c->geometry.k_rows, ITEMS);
  assert_in_range(s.a.bytes - before, 0,
                  ITEMS * KEPT * (8 + 2 * sizeof(float) * s.l.shape.heads) + 65536);
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
