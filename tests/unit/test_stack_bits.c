/* test_stack_bits: the promise that the bits of a whole model's answer depend on the model and the
 * item alone: not on company, cuts, threads, wishes or how its rows came in. Runs at the level that
 * ATTEND_CPU allows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/attention/trace.h"
#include "core/base/size.h"
#include "tests/support/compare.h"
#include "tests/support/compare_stack.h"
#include "tests/support/pooled.h"
#include "tests/support/random_case.h"
#include "tests/support/rounds.h"

enum { RUNS = 4, SPANS_MOST = 8192 };

static const struct random_stack_kind some = {.layers_most = 3, .longest = 60, .bytes = true};
static const struct random_stack_kind wide = {.layers_least = 1,
                                              .layers_most = 2,
                                              .longest = 150,
                                              .wide = true,
                                              .tokens = true,
                                              .bytes = true};

static void no_bit_differs(const struct random_stack *s, const struct stack_run *x,
                           const struct stack_run *y) {
  struct error e = {0};
  if (!same_bits_of_runs(s, x, y, &e)) fail_msg("%s", e.detail);
}

static struct stack_run *computed_again(const struct random_stack *s, const struct stack_run *r,
                                        double work, struct arena *a) {
  struct stack_run *again = random_run_again(s, r, a);
  prepare_run(s, again, a);
  compute_runs(s, again, work);
  return again;
}

/* --- company --- */

/* Each item alone, and some of them in another order. */
static void items_are_alone(const struct random_stack *s, const struct stack_run *whole,
                            uint64_t *state) {
  for (size_t i = 0; i < whole->geometry.items; i++) {
    struct error e = {0};
    struct arena a;
    arena_init(&a, NULL);
    const size_t list[] = {i, random_below(state, whole->geometry.items), i};
    const size_t first = random_below(state, 3), count = 1 + random_below(state, 3 - first);
    struct stack_run *part = random_run_of(s, whole, list + first, count, &a);
    prepare_run(s, part, &a);
    compute_runs(s, part, random_work(state));
    for (size_t k = 0; k < count; k++)
      if (!same_bits_of_items(s, whole, list[first + k], part, k, &e))
        fail_msg("item %zu: %s", list[first + k], e.detail);
    arena_free(&a);
  }
}

static void company_changes_no_bit(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(150); round++) {
    struct random_case c;
    random_case_stack(&c, 10000 + round, some);
    struct stack_run *r = round % 5 == 0 ? random_run(&c.s, &c.state, 40, 3, &c.a)
                                         : random_run(&c.s, &c.state, 5, round % 3 ? 12 : 60, &c.a);
    prepare_run(&c.s, r, &c.a);
    compute_runs(&c.s, r, 1e6);
    items_are_alone(&c.s, r, &c.state);
    random_case_done(&c);
  }
}

static void merging_changes_no_bit(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(60); round++) {
    struct random_case c;
    random_case_stack(&c, 11000 + round, some);
    struct stack_run *merged[RUNS], *alone[RUNS];
    for (int i = 0; i < RUNS; i++) {
      merged[i] = random_run(&c.s, &c.state, 4, round % 3 ? 8 : 60, &c.a);
      alone[i] = computed_again(&c.s, merged[i], random_work(&c.state), &c.a);
      prepare_run(&c.s, merged[i], &c.a);
      if (i) merged[i - 1]->run.next = &merged[i]->run;
    }
    compute_runs(&c.s, merged[0], random_work(&c.state));
    for (int i = 0; i < RUNS; i++) no_bit_differs(&c.s, merged[i], alone[i]);
    random_case_done(&c);
  }
}

/* Runs of a row or two, so many that a product takes rows of dozens of them. */
static void small_runs_merge(const struct random_stack_kind kind, size_t runs) {
  enum { MOST = 200 };
  static struct stack_run *merged[MOST];
  struct random_case c;
  random_case_stack(&c, 11500 + runs, kind);
  for (size_t i = 0; i < runs; i++) {
    merged[i] = random_run(&c.s, &c.state, 2, 1, &c.a);
    prepare_run(&c.s, merged[i], &c.a);
    if (i) merged[i - 1]->run.next = &merged[i]->run;
  }
  compute_runs(&c.s, merged[0], 1e8);
  for (size_t i = 0; i < runs; i++)
    no_bit_differs(&c.s, merged[i], computed_again(&c.s, merged[i], 1e3, &c.a));
  random_case_done(&c);
}

static void merging_small_runs_changes_no_bit(void **unused) {
  (void)unused;
  small_runs_merge((struct random_stack_kind){.layers_least = 1, .layers_most = 2, .longest = 1},
                   200);
  small_runs_merge(wide, 90);
  small_runs_merge(wide, 160);
}

/* --- cuts --- */

/* The spans of a step in the order of a draw: any may come before any. */
static void compute_shuffled(struct cursor *at, double work, uint64_t *state, void *scratch) {
  static struct span span[SPANS_MOST];
  size_t spans = 0;
  while (spans < SPANS_MOST && run_cut(at, work, &span[spans])) spans++;
  assert_true(spans < SPANS_MOST);
  for (; spans > 0; spans--) {
    const size_t next = random_below(state, spans);
    run_span(&span[next], scratch);
    span[next] = span[spans - 1];
  }
}

/* How many steps have shared columns out: of feed-forward layers the first matrix, and others. */
struct shared {
  size_t up, other;
};

static struct shared compute_cut(const struct random_stack *s, struct stack_run *first, double work,
                                 uint64_t *state) {
  void *scratch = aligned_alloc(64, size_round_up(stack_scratch_bytes(s->stack) + 1, 64));
  struct shared shared = {0};
  struct cursor at;
  for (run_begin(&at, &first->run); !run_is_done(&at); run_next(&at)) {
    const size_t columns = at.program->step[at.step]->columns;
    const bool parts = at.columns && at.columns < columns, up = columns == s->form.forward_size;
    shared.up += parts && up, shared.other += parts && !up;
    compute_shuffled(&at, work, state, scratch);
  }
  free(scratch);
  return shared;
}

static void cuts_change_no_bit(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(60); round++) {
    struct random_case c;
    random_case_stack(&c, 12000 + round, some);
    struct stack_run *whole = random_run(&c.s, &c.state, 5, 60, &c.a);
    prepare_run(&c.s, whole, &c.a);
    compute_runs(&c.s, whole, 1e12);
    for (double work = 1; work < 1e9; work *= 300) {
      struct stack_run *cut = random_run_again(&c.s, whole, &c.a);
      prepare_run(&c.s, cut, &c.a);
      compute_cut(&c.s, cut, work, &c.state);
      no_bit_differs(&c.s, whole, cut);
    }
    random_case_done(&c);
  }
}

/* One item of so many rows that no columns are shared out beside it. */
static struct stack_run *long_run(const struct random_stack *s, struct arena *a) {
  enum { ROWS = 140 };
  static const int32_t tokens[ROWS];
  struct stack_run *r = random_run_of_rows(s, ROWS, a);
  r->tokens = tokens;
  r->source = random_source(s, ROWS, 1, a);
  prepare_run(s, r, a);
  return r;
}

/* Few rows, whose columns are shared out, of one run or two; beside the same rows in a batch of so
 * many that rows are shared out instead. */
static void shared_columns_change_no_bit(void **unused) {
  (void)unused;
  size_t up = 0, other = 0;
  for (uint64_t round = 0; round < rounds(12); round++) {
    struct random_case c;
    random_case_stack(&c, 13000 + round, wide);
    struct stack_run *few[2], *one[2];
    for (int i = 0; i < 2; i++) {
      do few[i] = random_run(&c.s, &c.state, 3, 4 + random_below(&c.state, 30), &c.a);
      while (few[i]->geometry.q_rows < 4);
      one[i] = random_run_again(&c.s, few[i], &c.a);
      prepare_run(&c.s, few[i], &c.a);
      prepare_run(&c.s, one[i], &c.a);
    }
    if (round % 2) few[0]->run.next = &few[1]->run;
    for (int i = 0; i < (round % 2 ? 1 : 2); i++) {
      const struct shared shared = compute_cut(&c.s, few[i], random_work(&c.state), &c.state);
      up += shared.up, other += shared.other;
    }
    for (int i = 0; i < 2; i++) {
      one[i]->run.next = &long_run(&c.s, &c.a)->run;
      const struct shared shared = compute_cut(&c.s, one[i], 1e12, &c.state);
      assert_true(shared.up + shared.other == 0);
      no_bit_differs(&c.s, few[i], one[i]);
    }
    random_case_done(&c);
  }
  assert_true(up > rounds(12) - 2 && other > rounds(12) - 2);
}

/* --- threads --- */

static void computed_by(size_t workers, size_t seats, const struct random_stack_kind kind,
                        size_t jobs, size_t most) {
  enum { JOBS = 40 };
  struct random_case c;
  struct stack_run *run[JOBS], *alone[JOBS];
  struct run *first[JOBS];
  random_case_stack(&c, 14000 + workers, kind);
  for (size_t i = 0; i < jobs; i++) {
    run[i] = random_run(&c.s, &c.state, 4, i % 5 ? 6 : most, &c.a);
    alone[i] = computed_again(&c.s, run[i], 1e12, &c.a);
    prepare_run(&c.s, run[i], &c.a);
    first[i] = &run[i]->run;
  }
  pooled_compute(workers, seats, stack_scratch_bytes(c.s.stack), first, jobs);
  for (size_t i = 0; i < jobs; i++) no_bit_differs(&c.s, run[i], alone[i]);
  random_case_done(&c);
}

static void workers_change_no_bit(void **unused) {
  (void)unused;
  const struct random_stack_kind kind = {.layers_least = 2, .layers_most = 3, .longest = 60};
  static const size_t workers[] = {1, 2, 5};
  for (size_t i = 0; i < 3; i++) computed_by(workers[i], 0, kind, 40, 60);
  for (size_t i = 0; i < 3; i++) computed_by(workers[i], 0, wide, 10, 40);
  computed_by(2, 2, kind, 40, 20);
}

/* --- wishes --- */

static struct stack_run *asking(const struct random_stack *s, const struct stack_run *r,
                                struct stack_wish wish, struct arena *a) {
  struct stack_run *again = random_run_again(s, r, a);
  struct stack_wish *all = random_run_wishes(s, again, a);
  for (size_t i = 0; i < stack_form_attentions(&s->form); i++) {
    all[i] = wish;
    all[i].hidden &= i < s->form.layers;
    all[i].head_mask = r->wish ? r->wish[i].head_mask : NULL;
  }
  again->embedded = wish.hidden;
  prepare_run(s, again, a);
  compute_runs(s, again, 1e6);
  return again;
}

/* Whatever is asked, of every layer; beside all of it, and nothing. The thumbnails are those of the
 * weights. */
static void wishes_change_no_bit(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(60); round++) {
    struct random_case c;
    struct error e = {0};
    random_case_stack(&c, 15000 + round, some);
    struct stack_run *r = random_run(&c.s, &c.state, 4, round % 4 ? 20 : 60, &c.a);
    struct stack_run *one = computed_again(&c.s, r, 1e6, &c.a);
    struct stack_run *all = asking(
        &c.s, r,
        (struct stack_wish){.weights = STACK_WEIGHTS_PER_HEAD, .hidden = true, .input = true},
        &c.a);
    no_bit_differs(&c.s, one, all);
    for (unsigned i = 0; i < 16; i++) {
      struct stack_wish wish = {.weights = (enum stack_weights)(i % 4),
                                .thumbnail = 1 + random_below(&c.state, 64),
                                .hidden = i & 4,
                                .input = i & 8};
      struct stack_run *few = asking(&c.s, r, wish, &c.a);
      no_bit_differs(&c.s, few, all);
      no_bit_differs(&c.s, few, one);
      if (wish.weights == STACK_WEIGHTS_THUMBNAILS && !thumbnails_are_those_of(&c.s, few, all, &e))
        fail_msg("%s", e.detail);
    }
    random_case_done(&c);
  }
}

/* Rows, and the same rows pooled: the first, the last, and the greatest of them are their bits. */
static void vectors_are_made_of_the_rows(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(60); round++) {
    struct random_case c;
    random_case_stack(&c, 16000 + round, some);
    struct stack_run *r = random_run(&c.s, &c.state, 4, 20, &c.a);
    const size_t d = c.s.form.width;
    if (stack_has_rows(r) || c.s.form.pooling.dense[0].size) goto next;
    r->normalize = false, r->dimensions = 0, r->left_out = NULL;
    struct stack_run *rows = random_run_again(&c.s, r, &c.a);
    stack_set_pool(rows, STACK_POOL_NONE);
    prepare_run(&c.s, rows, &c.a);
    compute_runs(&c.s, rows, 1e6);
    for (enum stack_pool pool = STACK_POOL_CLS; pool <= STACK_POOL_LAST; pool++) {
      if (pool == STACK_POOL_MEAN) continue;
      stack_set_pool(r, pool);
      struct stack_run *vectors = computed_again(&c.s, r, 1e6, &c.a);
      assert_int_equal(vectors->output_size, d);
      for (size_t i = 0; i < r->geometry.items; i++)
        for (size_t x = 0; x < d; x++) {
          const struct item *item = &r->geometry.item[i];
          float wanted = rows->outputs[item->q_row * d + x];
          for (size_t k = 1; k < item->q && pool != STACK_POOL_CLS; k++) {
            const float next = rows->outputs[(item->q_row + k) * d + x];
            if (pool == STACK_POOL_LAST || next > wanted) wanted = next;
          }
          assert_true(vectors->outputs[i * d + x] == wanted);
        }
    }
  next:
    random_case_done(&c);
  }
}

/* Vectors of some rows are the vectors of all rows. */
static void vectors_are_made_of_the_kept_rows(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(60); round++) {
    struct random_case c;
    random_case_stack(&c, 16500 + round, some);
    struct stack_run *r = random_run(&c.s, &c.state, 4, 40, &c.a);
    stack_set_pool(r, STACK_POOL_NONE);
    r->after = random_often(&c.state, 70) ? STACK_AFTER_DENSE : 0;
    r->normalize = random_often(&c.state, 50), r->dimensions = 0, r->left_out = NULL;
    struct stack_run *all = computed_again(&c.s, r, 1e6, &c.a),
                     *some_rows = random_run_again(&c.s, r, &c.a);
    size_t *kept = random_room(&c.a, r->geometry.q_rows, sizeof *kept), keeps = 0;
    for (size_t row = 0; row < r->geometry.q_rows; row++)
      if (random_often(&c.state, 60)) kept[keeps++] = row;
    some_rows->kept = kept, some_rows->keeps = keeps;
    prepare_run(&c.s, some_rows, &c.a);
    compute_runs(&c.s, some_rows, random_work(&c.state));
    const size_t size = all->output_size;
    assert_int_equal(some_rows->output_size, size);
    for (size_t i = 0; i < keeps; i++)
      assert_memory_equal(some_rows->outputs + i * size, all->outputs + kept[i] * size,
                          size * sizeof(float));
    random_case_done(&c);
  }
}

/* Rows that no row attends to change no bit of the others, unless positions follow their number. */
static void masked_rows_change_no_bit(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(100); round++) {
    struct random_case c;
    random_case_stack(&c, 16700 + round, some);
    struct stack_run *r = random_run(&c.s, &c.state, 1, round % 3 ? 20 : 60, &c.a);
    if (r->geometry.q_rows > 0 && c.s.form.kind->self.rope_stretch.trained == 0) {
      stack_set_pool(r, STACK_POOL_NONE);
      r->normalize = r->want_logits = false, r->dimensions = 0, r->left_out = NULL;
      r->wish = NULL, r->targets = NULL;
      const size_t rows = r->geometry.q_rows, own = 1 + random_below(&c.state, rows);
      struct stack_run *padded = random_run_again(&c.s, r, &c.a),
                       *bare = random_run_again(&c.s, r, &c.a);
      int32_t *lens = random_room(&c.a, rows, sizeof *lens);
      for (size_t row = 0; row < rows; row++) lens[row] = (int32_t)own;
      padded->geometry.lens = lens;
      bare->geometry.item->q = bare->geometry.item->k = own;
      bare->geometry.q_rows = bare->geometry.k_rows = own;
      prepare_run(&c.s, padded, &c.a);
      prepare_run(&c.s, bare, &c.a);
      compute_runs(&c.s, padded, random_work(&c.state));
      compute_runs(&c.s, bare, 1e6);
      assert_memory_equal(padded->outputs, bare->outputs, own * c.s.form.width * sizeof(float));
    }
    random_case_done(&c);
  }
}

/* --- a layer alone --- */

static struct layer_run *attention_of(const struct random_stack *s, const struct stack_run *r,
                                      size_t number, struct arena *a) {
  struct error e = {0};
  struct layer_run *one = arena_alloc(a, 1, sizeof *one, &e);
  const bool across = number >= s->form.layers;
  const struct geometry *g = across ? &r->across : &r->geometry;
  const size_t window = across ? 0 : s->form.kind[s->layer[number].kind].window;
  *one =
      (struct layer_run){.geometry = {.items = g->items,
                                      .item = g->item,
                                      .q_rows = g->q_rows,
                                      .k_rows = g->k_rows,
                                      .causal = !across && s->form.causal,
                                      .window_left = (int64_t)window - 1,
                                      .window_right = s->form.causal ? -1 : (int64_t)window - 1}};
  one->call.queries = r->shown[number].input;
  one->call.keys = one->call.values = across ? r->source->rows : one->call.queries;
  return one;
}

static size_t heads_of(const struct random_stack *s, size_t number) {
  return number < s->form.layers ? s->form.kind->self.heads : s->form.cross.heads;
}

static void compute_alone(const struct layer *layer, struct layer_run *one, struct arena *a) {
  struct error e = {0};
  assert_int_equal(layer_prepare(layer, one, a, &e), STATUS_OK);
  compute(layer, one, 1e6);
  assert_int_equal(run_fault(&one->run, &e), STATUS_OK);
}

/* A layer's attention, called on what it is shown to have read, gives the weights that are shown.
 */
static void attention_alone(const struct random_stack *s, const struct stack_run *r, size_t l,
                            struct arena *a) {
  const bool average = r->wish[l].weights == STACK_WEIGHTS_AVERAGE;
  struct layer_run *one = attention_of(s, r, l, a);
  one->call.want = average ? WEIGHTS_AVERAGE : WEIGHTS_PER_HEAD;
  compute_alone(stack_attention(s->stack, l), one, a);
  for (size_t i = 0; i < r->geometry.items; i++) {
    const struct item *item = &one->geometry.item[i];
    const size_t count = item->q * item->k * (average ? 1 : heads_of(s, l));
    if (count)
      assert_memory_equal(r->shown[l].weights + r->shown[l].weights_at[i],
                          one->call.weights + one->call.weights_at[i], count * sizeof(float));
  }
}

/* Matrices that 16 bits have are widened where they are read. */
static void the_form_of_weights_changes_no_bit(void **unused) {
  (void)unused;
  uint64_t state = 77;
  for (size_t found = 0; found < 6;) {
    struct random_case c;
    random_case_stack(&c, state,
                      (struct random_stack_kind){1, RANDOM_LAYERS, 60, false, false, false, false});
    if (strcmp(stack_weights(c.s.stack), "float32") != 0) {
      struct stack_run *r = random_run(&c.s, &c.state, 5, 60, &c.a);
      prepare_run(&c.s, r, &c.a);
      compute_runs(&c.s, r, 1e6);
      stack_free(c.s.stack);
      c.s.form.whole = true;
      random_stack_make(&c.s);
      no_bit_differs(&c.s, computed_again(&c.s, r, 1e6, &c.a), r);
      found++;
    }
    state = c.state;
    random_case_done(&c);
  }
}

static void layers_alone_have_their_bits(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(60); round++) {
    struct random_case c;
    random_case_stack(&c, 17000 + round, some);
    struct stack_run *r = random_run(&c.s, &c.state, 4, round % 4 ? 20 : 60, &c.a);
    struct stack_wish *wish = random_run_wishes(&c.s, r, &c.a);
    for (size_t l = 0; l < stack_form_attentions(&c.s.form); l++)
      wish[l] = (struct stack_wish){.weights = random_below(&c.state, 3) ? STACK_WEIGHTS_PER_HEAD
                                                                         : STACK_WEIGHTS_AVERAGE,
                                    .input = true};
    prepare_run(&c.s, r, &c.a);
    compute_runs(&c.s, r, 1e6);
    for (size_t l = 0; l < stack_form_attentions(&c.s.form); l++) attention_alone(&c.s, r, l, &c.a);
    random_case_done(&c);
  }
}

/* A trace in every layer is that of the attention alone, and changes nothing else. */
static void traces_are_those_of_layers_alone(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(40); round++) {
    struct random_case c;
    struct error e = {0};
    random_case_stack(&c, 17500 + round, some);
    struct stack_run *r = random_run(&c.s, &c.state, 4, 20, &c.a);
    while (r->geometry.q_rows == 0) r = random_run(&c.s, &c.state, 4, 20, &c.a);
    const struct stack_run *plain = computed_again(&c.s, r, 1e6, &c.a);
    struct stack_wish *wish = random_run_wishes(&c.s, r, &c.a);
    struct trace *trace = arena_alloc(&c.a, 4 * RANDOM_LAYERS, sizeof *trace, &e);
    for (size_t l = 0; l < stack_form_attentions(&c.s.form); l++) {
      struct trace *t = &trace[l];
      *t = (struct trace){.head = random_below(&c.state, heads_of(&c.s, l))};
      while (r->geometry.item[t->item].q == 0) t->item++;
      t->row = random_below(&c.state, r->geometry.item[t->item].q);
      trace[2 * RANDOM_LAYERS + l] = *t;
      wish[l] = (struct stack_wish){.trace = t, .input = true};
      if (plain->wish) wish[l].head_mask = plain->wish[l].head_mask;
    }
    prepare_run(&c.s, r, &c.a);
    compute_runs(&c.s, r, 1e6);
    no_bit_differs(&c.s, plain, r);
    for (size_t l = 0; l < stack_form_attentions(&c.s.form); l++) {
      struct layer_run *one = attention_of(&c.s, r, l, &c.a);
      one->call.trace = &trace[2 * RANDOM_LAYERS + l];
      one->call.head_mask = wish[l].head_mask;
      compute_alone(stack_attention(c.s.stack, l), one, &c.a);
      if (!same_trace(&trace[l], one->call.trace, &e)) fail_msg("layer %zu: %s", l, e.detail);
    }
    random_case_done(&c);
  }
}

/* --- tokens --- */

static void rows_of_the_table_are_tokens(void **unused) {
  (void)unused;
  struct random_stack_kind kind = some;
  kind.tokens = true;
  kind.bytes = false; /* a table in blocks of bytes has other numbers */
  for (uint64_t round = 0; round < rounds(60); round++) {
    struct random_case c;
    struct error e = {0};
    random_case_stack(&c, 18000 + round, kind);
    struct stack_run *r = random_run(&c.s, &c.state, 4, 20, &c.a);
    const size_t d = c.s.form.width, rows = r->geometry.q_rows;
    const struct stack_embedding *m = &c.s.form.embedding;
    if (c.s.form.pooling.ends) r->after &= ~(unsigned)STACK_AFTER_POOLER; /* it requires tokens */
    int32_t *tokens = arena_alloc(&c.a, rows, sizeof *tokens, &e);
    float *scaled = arena_alloc(&c.a, rows * d, sizeof *scaled, &e);
    for (size_t i = 0; i < rows; i++) tokens[i] = (int32_t)random_below(&c.state, m->tokens);
    for (size_t i = 0; i < rows * d; i++)
      scaled[i] = m->scale * m->token[(size_t)tokens[i / d] * d + i % d];
    if (c.s.form.pooling.ends) r->after &= ~(unsigned)STACK_AFTER_POOLER; /* that reads tokens */
    struct stack_run *other = random_run_again(&c.s, r, &c.a);
    r->tokens = tokens, r->embeddings = NULL, other->tokens = NULL, other->embeddings = scaled;
    r->embedded = other->embedded = true;
    prepare_run(&c.s, r, &c.a);
    prepare_run(&c.s, other, &c.a);
    compute_runs(&c.s, r, 1e6);
    compute_runs(&c.s, other, 1e6);
    no_bit_differs(&c.s, r, other);
    random_case_done(&c);
  }
}

/* Types that are not given are all 0. */
static void no_types_are_zeros(void **unused) {
  (void)unused;
  size_t typed = 0;
  for (uint64_t round = 0; round < rounds(40); round++) {
    struct random_case c;
    struct error e = {0};
    random_case_stack(&c, 19000 + round, some);
    struct stack_run *r = random_run(&c.s, &c.state, 4, 20, &c.a);
    struct stack_run *other = random_run_again(&c.s, r, &c.a);
    int32_t *zeros = arena_alloc(&c.a, r->geometry.q_rows, sizeof *zeros, &e);
    memset(zeros, 0, r->geometry.q_rows * sizeof *zeros);
    r->types = NULL, other->types = c.s.form.embedding.type ? zeros : NULL;
    typed += other->types != NULL;
    prepare_run(&c.s, r, &c.a);
    prepare_run(&c.s, other, &c.a);
    compute_runs(&c.s, r, 1e6);
    compute_runs(&c.s, other, 1e6);
    no_bit_differs(&c.s, r, other);
    random_case_done(&c);
  }
  assert_true(typed > rounds(40) / 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(company_changes_no_bit),
      cmocka_unit_test(merging_changes_no_bit),
      cmocka_unit_test(merging_small_runs_changes_no_bit),
      cmocka_unit_test(cuts_change_no_bit),
      cmocka_unit_test(shared_columns_change_no_bit),
      cmocka_unit_test(workers_change_no_bit),
      cmocka_unit_test(wishes_change_no_bit),
      cmocka_unit_test(vectors_are_made_of_the_rows),
      cmocka_unit_test(vectors_are_made_of_the_kept_rows),
      cmocka_unit_test(masked_rows_change_no_bit),
      cmocka_unit_test(the_form_of_weights_changes_no_bit),
      cmocka_unit_test(layers_alone_have_their_bits),
      cmocka_unit_test(traces_are_those_of_layers_alone),
      cmocka_unit_test(rows_of_the_table_are_tokens),
      cmocka_unit_test(no_types_are_zeros),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
