/* test_layer_program: layers one after the other over one geometry, in one run, beside the same
 * layers in runs of their own. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/attention/layer_program.h"
#include "core/attention/measures.h"
#include "core/attention/trace.h"
#include "core/base/size.h"
#include "tests/support/compare.h"
#include "tests/support/rounds.h"

enum { ROUNDS = 80, LAYERS = 3, RUNS = 3 };

static float *draw_rows(struct arena *a, uint64_t *state, size_t count) {
  float *x = random_room(a, count, sizeof *x);
  for (size_t i = 0; i < count; i++) x[i] = 1.7f * random_float(state);
  return x;
}

/* --- a tower of layers --- */

/* Makes a layer's inputs of what the layer before it puts out. */
struct between {
  struct step step; /* the first member */
  const struct layer_shape *before, *after;
  unsigned layer;
};

struct tower {
  struct random_layer drawn[LAYERS];
  const struct random_layer *layer[LAYERS]; /* one may be there twice */
  struct layer_step step[LAYERS][STEP_COUNT];
  struct between between[LAYERS];
  const struct step *list[LAYERS * (STEP_COUNT + 1)];
  struct program program;
  size_t scratch;
};

struct tower_run {
  struct run run; /* the first member */
  struct geometry geometry;
  struct call call[LAYERS];
  bool self;        /* keys and values of later layers are made of outputs, too */
  bool blind;       /* what tells the sight is lost after the first layer */
  size_t spoilt[2]; /* the layer, from 1 on, and the row of its queries that is made infinite */
};

static void make_rows(const float *from, size_t out, const float *to, size_t in, size_t rows) {
  float *x = (float *)to; /* the test's own */
  for (size_t r = 0; r < rows; r++)
    for (size_t n = 0; n < in; n++) x[r * in + n] = from[r * out + n % out] * (float)(1 + n % 3);
}

static void make_inputs(const struct layer_shape *before, const struct layer_shape *after,
                        const float *outputs, size_t rows, bool self, const struct call *c) {
  const size_t out = before->output_size;
  make_rows(outputs, out, c->queries, after->query_size, rows);
  if (self && c->keys != c->queries) make_rows(outputs, out, c->keys, after->key_size, rows);
  if (self && c->values != c->queries) make_rows(outputs, out, c->values, after->value_size, rows);
}

static bool unit_between(const struct step *step, struct cursor *at, struct unit *u) {
  (void)step, (void)u;
  return at->row++ == 0;
}

static double work_between(const struct step *step, const struct unit *u) {
  (void)step, (void)u;
  return 1000;
}

static void compute_between(const struct step *step, const struct span *span, void *scratch) {
  const struct between *b = (const struct between *)step;
  struct span left = *span;
  struct unit u;
  (void)scratch;
  while (run_next_unit(&left, &u)) {
    struct tower_run *r = (struct tower_run *)u.run;
    struct geometry *g = &r->geometry;
    const struct call *c = &r->call[b->layer];
    make_inputs(b->before, b->after, r->call[b->layer - 1].outputs, g->q_rows, r->self, c);
    if (r->spoilt[0] == b->layer)
      ((float *)c->queries)[r->spoilt[1] * b->after->query_size] = INFINITY;
    if (r->blind) g->lens = NULL, g->causal = false, g->window_left = g->window_right = 0;
  }
}

static void make_program(struct tower *s, bool measures) {
  static const char *const where[LAYERS] = {"layer 0: ", "layer 1: ", "layer 2: "};
  unsigned steps = 0;
  for (unsigned i = 0; i < LAYERS; i++) {
    const struct layer_place at = {.layer = s->layer[i]->layer,
                                   .call_at = offsetof(struct tower_run, call[i]),
                                   .first = i == 0,
                                   .measures = measures,
                                   .where = where[i]};
    s->between[i] = (struct between){
        .step = {.unit = unit_between, .work = work_between, .compute = compute_between},
        .before = i ? &s->layer[i - 1]->shape : NULL,
        .after = &s->layer[i]->shape,
        .layer = i};
    if (i) s->list[steps++] = &s->between[i].step;
    steps += layer_list_steps(&at, s->step[i], s->list + steps);
    s->scratch = size_max(s->scratch, layer_scratch_bytes(at.layer));
  }
  s->program = (struct program){.step = s->list, .steps = steps};
}

/* Masks and biases of heads are the same for all layers: so these have as many heads. */
static void tower_init(struct tower *s, uint64_t *state, bool measures) {
  memset(s, 0, sizeof *s);
  for (unsigned i = 0; i < LAYERS; i++) {
    struct random_layer *l = &s->drawn[i], *first = &s->drawn[0];
    for (;;) {
      random_layer_init(l, state, random_below(state, 4) ? GEMM_PACKED : GEMM_OPENBLAS);
      if (l->shape.heads == first->shape.heads && l->shape.sigmoid == first->shape.sigmoid) break;
      random_layer_done(l);
    }
    s->layer[i] = l;
  }
  if (random_below(state, 3) == 0) s->layer[2] = s->layer[0];
  make_program(s, measures);
}

static void tower_done(struct tower *s) {
  for (unsigned i = 0; i < LAYERS; i++) random_layer_done(&s->drawn[i]);
}

/* Computes a chain of runs in spans of `work`. */
static void compute_tower(const struct tower *s, struct tower_run *first, double work) {
  const size_t bytes = size_round_up(s->scratch + 1, 64);
  void *scratch = aligned_alloc(64, bytes);
  assert_non_null(scratch);
  memset(scratch, 0xff, bytes); /* NaN, where scratch is read before it is written */
  run_compute(&first->run, work, scratch);
  free(scratch);
}

/* --- what is asked --- */

/* A geometry, and the wishes of each layer; of later layers' inputs those that the layer before
 * does not make. */
struct asked {
  struct geometry geometry;
  struct call call[LAYERS];
  bool self;
};

/* As many keys as queries. */
static void make_square(struct geometry *g) {
  g->q_rows = 0;
  for (size_t i = 0; i < g->items; i++) {
    struct item *item = &g->item[i];
    item->q = item->k = size_min(item->q, item->k);
    item->q_row = item->k_row = g->q_rows;
    g->q_rows += item->q;
  }
  g->k_rows = g->q_rows;
  g->segment_end = NULL;
}

/* Of some query of the geometry, which has one. */
static struct trace *draw_trace(const struct geometry *g, size_t heads, uint64_t *state,
                                struct arena *a) {
  struct trace *t = random_room(a, 1, sizeof *t);
  *t = (struct trace){.head = random_below(state, heads)};
  do t->item = random_below(state, g->items);
  while (g->item[t->item].q == 0);
  t->row = random_below(state, g->item[t->item].q);
  return t;
}

/* A call's own, for its answer. */
static void copy_trace(struct call *c, struct arena *a) {
  if (!c->trace) return;
  struct trace *own = random_room(a, 1, sizeof *own);
  *own = *c->trace;
  c->trace = own;
}

/* Lean calls want nothing but outputs (and a trace), and leave heads out: not the same in all
 * layers. */
static struct call draw_wishes(const struct random_layer *l, const struct geometry *g, bool lean,
                               bool measures, uint64_t *state, struct arena *a) {
  const struct call *drawn = &random_call(l, state, 4, a)->call;
  struct call c = {.head_mask = drawn->head_mask,
                   .uniform_rows = drawn->uniform_rows && !g->segment_end,
                   .select = g->segment_end ? SELECT_SOFT : drawn->select,
                   .seed = drawn->seed,
                   .want = drawn->want,
                   .want_pointers = drawn->want_pointers,
                   .want_measures = measures && random_below(state, 2)};
  if (g->q_rows > 0 && random_below(state, 2)) c.trace = draw_trace(g, l->shape.heads, state, a);
  if (!lean || c.want_measures) return c;
  float *factor = random_room(a, l->shape.heads, sizeof *factor);
  for (size_t h = 0; h < l->shape.heads; h++) factor[h] = (float)random_below(state, 2);
  c.head_mask = factor;
  c.want = WEIGHTS_NONE;
  c.want_pointers = false;
  return c;
}

static struct asked ask(const struct tower *s, size_t most, bool measures, uint64_t *state,
                        struct arena *a) {
  const struct layer_run *first = random_call(s->layer[0], state, most, a);
  struct asked asked = {.geometry = first->geometry, .self = random_below(state, 2)};
  const struct geometry *g = &asked.geometry;
  const bool lean = random_below(state, 3) == 0;
  if (asked.self) make_square(&asked.geometry);
  for (unsigned i = 0; i < LAYERS; i++) {
    const struct layer_shape *shape = &s->layer[i]->shape;
    struct call *c = &asked.call[i];
    *c = draw_wishes(s->layer[i], g, lean, measures, state, a);
    /* A product of OpenBLAS has other bits with another number of rows. With a mask for each head,
     * rows count that some needed head of any layer sees. */
    if (g->mask_per_head && strcmp(layer_engine(s->layer[i]->layer), "openblas") == 0)
      c->head_mask = NULL;
    if (i == 0) c->queries = draw_rows(a, state, g->q_rows * shape->query_size);
    if (i > 0 && asked.self) continue;
    c->keys = draw_rows(a, state, g->k_rows * shape->key_size);
    c->values = draw_rows(a, state, g->k_rows * shape->value_size);
  }
  return asked;
}

/* Places for what the layer before makes; these may be overwritten once they are read. */
static void place_inputs(const struct layer_shape *s, const struct geometry *g, bool self,
                         struct call *c, struct arena *a) {
  const size_t count = g->q_rows * s->query_size;
  c->queries = random_room(a, count, sizeof(float));
  spare_add(&c->spare, (void *)c->queries, count * sizeof(float));
  if (!self) return;
  c->keys = c->values = c->queries;
  if (s->key_size != s->query_size)
    c->keys = random_room(a, g->q_rows * s->key_size, sizeof(float));
  if (s->value_size != s->query_size)
    c->values = random_room(a, g->q_rows * s->value_size, sizeof(float));
}

/* Each layer in a run of its own. */
static void compute_apart(const struct tower *s, const struct asked *asked, struct arena *a,
                          struct layer_run *one[LAYERS]) {
  for (unsigned i = 0; i < LAYERS; i++) {
    const struct random_layer *l = s->layer[i];
    struct error e = {0};
    struct layer_run *r = one[i] = random_room(a, 1, sizeof *r);
    *r = (struct layer_run){.geometry = asked->geometry, .call = asked->call[i]};
    copy_trace(&r->call, a);
    if (i > 0) {
      place_inputs(&l->shape, &r->geometry, asked->self, &r->call, a);
      make_inputs(&s->layer[i - 1]->shape, &l->shape, one[i - 1]->call.outputs, r->geometry.q_rows,
                  asked->self, &r->call);
    }
    assert_int_equal(layer_prepare(l->layer, r, a, &e), STATUS_OK);
    compute(l->layer, r, 1e6);
    assert_int_equal(run_fault(&r->run, &e), STATUS_OK);
  }
}

/* All of them in one run, which is prepared. A layer may use what the one before it leaves. */
static struct tower_run *prepare_stack(const struct tower *s, const struct asked *asked,
                                       struct arena *a) {
  struct tower_run *r = random_room(a, 1, sizeof *r);
  *r = (struct tower_run){.run = {.program = &s->program, .rows = asked->geometry.q_rows},
                          .geometry = asked->geometry,
                          .self = asked->self};
  for (unsigned i = 0; i < LAYERS; i++) {
    struct error e = {0};
    struct call *c = &r->call[i];
    *c = asked->call[i];
    c->geometry = &r->geometry;
    copy_trace(c, a);
    if (i > 0) {
      c->spare = r->call[i - 1].left;
      place_inputs(&s->layer[i]->shape, &r->geometry, asked->self, c, a);
    }
    assert_int_equal(layer_prepare_call(s->step[i], &r->run, a, &e), STATUS_OK);
  }
  return r;
}

/* --- the same? --- */

static void same_measures(const struct measures *x, const struct measures *y, size_t heads) {
  assert_int_equal(x->rows, y->rows);
  assert_memory_equal(x->head, y->head, heads * sizeof *x->head);
  assert_memory_equal(x->ranking, y->ranking, heads * sizeof *x->ranking);
  if (x->divergence)
    assert_memory_equal(x->divergence, y->divergence, heads * heads * sizeof *x->divergence);
}

static void no_bit_differs(const struct tower *s, const struct tower_run *r,
                           struct layer_run *const one[LAYERS]) {
  struct error e = {0};
  assert_int_equal(run_fault(&r->run, &e), STATUS_OK);
  for (unsigned i = 0; i < LAYERS; i++) {
    const struct layer_run all = {.geometry = r->geometry, .call = r->call[i]};
    if (!same_bits(s->layer[i], one[i], &all, &e)) fail_msg("layer %u: %s", i, e.detail);
    if (all.call.want_measures)
      same_measures(one[i]->call.measures, all.call.measures, s->layer[i]->shape.heads);
  }
}

/* Alone and merged, in spans of any size; and with a geometry that nobody can work a sight out of
 * any more, once the first layer has. */
static void a_stack_has_the_bits_of_its_layers(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(ROUNDS); round++) {
    uint64_t state = 4200 + round;
    const bool measures = round % 4 == 0;
    static struct tower s;
    struct arena a;
    arena_init(&a, NULL);
    tower_init(&s, &state, measures);
    struct asked asked[RUNS];
    struct layer_run *one[RUNS][LAYERS];
    struct tower_run *merged[RUNS];
    for (int i = 0; i < RUNS; i++) {
      asked[i] = ask(&s, round % 3 ? 30 : 6, measures, &state, &a);
      compute_apart(&s, &asked[i], &a, one[i]);
      merged[i] = prepare_stack(&s, &asked[i], &a);
      merged[i]->blind = random_below(&state, 2);
      if (i) merged[i - 1]->run.next = &merged[i]->run;
    }
    compute_tower(&s, merged[0], pow(10, 2 + (double)random_below(&state, 6)));
    for (int i = 0; i < RUNS; i++) {
      struct tower_run *alone = prepare_stack(&s, &asked[i], &a);
      compute_tower(&s, alone, pow(10, 2 + (double)random_below(&state, 8)));
      no_bit_differs(&s, merged[i], one[i]);
      no_bit_differs(&s, alone, one[i]);
    }
    arena_free(&a);
    tower_done(&s);
  }
}

/* A head's mask counts where any of the layers needs the head. */
static void heads_that_one_layer_needs_are_looked_at(void **unused) {
  (void)unused;
  enum { HEADS = 3, ROWS = 9 };
  static const float factor[LAYERS][HEADS] = {{1, 0, 0}, {0, 1, 0}, {1, 0, 1}};
  uint8_t mask[HEADS][ROWS][ROWS];
  uint64_t state = 77;
  static struct tower s;
  struct item item = {.q = ROWS, .k = ROWS};
  struct arena a;
  arena_init(&a, NULL);
  for (unsigned i = 0; i < LAYERS; i++) {
    plain_layer_init(&s.drawn[i], &state, HEADS, 8, GEMM_PACKED);
    s.layer[i] = &s.drawn[i];
  }
  make_program(&s, false);
  for (size_t h = 0; h < HEADS; h++)
    for (size_t i = 0; i < ROWS; i++) /* each head sees three keys of its own */
      for (size_t j = 0; j < ROWS; j++) mask[h][i][j] = j / 3 == h && i != j;
  struct asked asked = {.geometry = {.items = 1,
                                     .item = &item,
                                     .q_rows = ROWS,
                                     .k_rows = ROWS,
                                     .mask = &mask[0][0][0],
                                     .mask_per_head = true,
                                     .window_left = -1,
                                     .window_right = -1},
                        .self = true};
  for (unsigned i = 0; i < LAYERS; i++) asked.call[i].head_mask = factor[i];
  asked.call[0].queries = asked.call[0].keys = asked.call[0].values =
      draw_rows(&a, &state, ROWS * HEADS * 8);
  struct layer_run *one[LAYERS];
  compute_apart(&s, &asked, &a, one);
  struct tower_run *r = prepare_stack(&s, &asked, &a);
  assert_int_equal(r->geometry.sight.needed.count, HEADS);
  compute_tower(&s, r, 1e6);
  no_bit_differs(&s, r, one);
  arena_free(&a);
  tower_done(&s);
}

/* --- faults --- */

/* A row that is infinite on its way into a layer is a fault of that layer, and of no run beside. */
static void faults_name_their_layer(void **unused) {
  (void)unused;
  static const size_t rows[] = {3, 5};
  uint64_t state = 9;
  static struct tower s;
  struct arena a;
  arena_init(&a, NULL);
  for (unsigned i = 0; i < LAYERS; i++) {
    plain_layer_init(&s.drawn[i], &state, 2, 8, GEMM_PACKED);
    s.layer[i] = &s.drawn[i];
  }
  make_program(&s, false);
  struct item item[2] = {{.q = rows[0], .k = rows[0]},
                         {.q = rows[1], .k = rows[1], .q_row = rows[0], .k_row = rows[0]}};
  struct asked asked = {.geometry = {.items = 2,
                                     .item = item,
                                     .q_rows = 8,
                                     .k_rows = 8,
                                     .causal = true,
                                     .window_left = -1,
                                     .window_right = -1},
                        .self = true};
  float *x = draw_rows(&a, &state, 8 * 16);
  asked.call[0].queries = asked.call[0].keys = asked.call[0].values = x;
  struct layer_run *one[LAYERS];
  compute_apart(&s, &asked, &a, one);
  for (size_t layer = 0; layer < LAYERS; layer++)
    for (size_t row = 0; row < 8; row++) {
      char wanted[96];
      struct tower_run *bad = prepare_stack(&s, &asked, &a), *good = prepare_stack(&s, &asked, &a);
      const float kept = x[row * 16];
      struct error e = {0};
      bad->run.next = &good->run;
      bad->spoilt[0] = layer, bad->spoilt[1] = row;
      if (layer == 0) x[row * 16] = INFINITY, bad->run.next = NULL; /* the inputs are shared */
      compute_tower(&s, bad, 1e5);
      x[row * 16] = kept;
      snprintf(wanted, sizeof wanted,
               "layer %zu: the projection of query %zu of item %d exceeds the float32 range", layer,
               row < 3 ? row : row - 3, row >= 3);
      assert_int_equal(run_fault(&bad->run, &e), STATUS_NOT_FINITE);
      assert_string_equal(e.detail, wanted);
      if (layer > 0) no_bit_differs(&s, good, one);
    }
  arena_free(&a);
  tower_done(&s);
}

int main(void) {
  gemm_blas_init();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_stack_has_the_bits_of_its_layers),
      cmocka_unit_test(heads_that_one_layer_needs_are_looked_at),
      cmocka_unit_test(faults_name_their_layer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
