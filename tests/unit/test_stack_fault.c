/* test_stack_fault: what may go wrong with whole models: numbers beyond float32 and what is said of
 * them, runs that are cancelled, memory that is not there. Runs at the level that ATTEND_CPU
 * allows.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/size.h"
#include "tests/support/compare_stack.h"
#include "tests/support/poisoned_run.h"
#include "tests/support/random_case.h"
#include "tests/support/rounds.h"
#include "tests/support/short_memory.h"

/* --- a model whose rows stay as they are, but for what a test spoils --- */

enum { LAYERS = 2, HEADS = 2, ROW = 2, ITEM = 1 }; /* the row that is spoilt, and its item */

struct still {
  struct random_stack s;
  struct stack_layer *last; /* the second layer */
  float *row;               /* [d] what enters there; all other rows are 0 */
  float *types;             /* [2, d] the second one is that row's */
  float *positions;         /* [3, d] the third one is that row's */
  enum stack_pool pool;
};

static float *zeros(struct still *t, size_t count) {
  struct error e = {0};
  float *x = arena_alloc(&t->s.arena, count, sizeof *x, &e);
  assert_non_null(x);
  return memset(x, 0, count * sizeof *x);
}

static void still_init(struct still *t, size_t width, size_t forward_size) {
  const size_t d = width, f = forward_size;
  memset(t, 0, sizeof *t);
  arena_init(&t->s.arena, NULL);
  t->s.form = (struct stack_form){.name = "encoder",
                                  .width = d,
                                  .forward_size = f,
                                  .layers = LAYERS,
                                  .kind = {{.self = plain_shape(HEADS, d / HEADS)}},
                                  .causal = true,
                                  .epsilon = 1e-12f,
                                  .layer = t->s.layer};
  for (size_t l = 0; l < LAYERS; l++) {
    struct stack_layer *layer = &t->s.layer[l];
    for (unsigned role = 0; role < ROLE_PROJECTIONS; role++)
      layer->self[role].weight = zeros(t, d * d);
    layer->forward.up.weight = zeros(t, f * d);
    layer->forward.down.weight = zeros(t, d * f);
  }
  t->last = &t->s.layer[LAYERS - 1];
  t->row = zeros(t, d);
  t->row[0] = 2;
  t->types = zeros(t, 2 * d);
  t->positions = zeros(t, 3 * d);
}

static void still_done(struct still *t) { random_stack_done(&t->s); }

/* The number of a matrix that takes input 0 to output 0. */
static void set_first(const struct layer_matrix *m, float to) { *(float *)m->weight = to; }

/* Of rows whose numbers are all alike a norm makes zeros, of the one row it does not. */
static void set_norm(struct still *t, struct stack_norm *norm) {
  float *factor = zeros(t, t->s.form.width);
  for (size_t i = 0; i < t->s.form.width; i++) factor[i] = 1;
  factor[0] = 3e38f;
  *norm = (struct stack_norm){factor, NULL};
}

/* Items of two, three and no rows; the last row of the second one is that which is spoilt. */
static struct stack_run *run_of_rows(const struct still *t, bool spoilt, struct arena *a) {
  static const size_t rows[] = {2, 3, 0};
  struct error e = {0};
  const size_t d = t->s.form.width, items = t->pool ? 2 : 3;
  struct stack_run *r = stack_run_new(t->s.stack, a, &e);
  struct item *item = arena_alloc(a, items, sizeof *item, &e);
  float *x = arena_alloc(a, 5 * d, sizeof *x, &e);
  int32_t *types = arena_alloc(a, 5, sizeof *types, &e);
  assert_int_equal(e.status, STATUS_OK);
  memset(x, 0, 5 * d * sizeof *x);
  memset(types, 0, 5 * sizeof *types);
  r->geometry.item = item;
  r->geometry.items = spoilt ? items : 1;
  for (size_t i = 0; i < r->geometry.items; i++) {
    item[i] = (struct item){.q = rows[i], .k = rows[i]};
    item[i].q_row = item[i].k_row = r->geometry.q_rows;
    r->geometry.q_rows += rows[i];
  }
  r->geometry.k_rows = r->geometry.q_rows;
  if (spoilt) memcpy(x + 4 * d, t->row, d * sizeof *x), types[4] = 1;
  r->embeddings = x, r->types = types;
  stack_set_pool(r, t->pool);
  if (t->s.form.classifier.count) r->after = STACK_AFTER_CLASSES;
  return r;
}

/* The run at fault between two others, which are not. */
static void fault_is(const struct still *t, double work, const char *detail) {
  struct error e = {0};
  struct arena a;
  arena_init(&a, NULL);
  struct stack_run *bad = run_of_rows(t, true, &a), *good[3];
  prepare_run(&t->s, bad, &a);
  for (int i = 0; i < 3; i++) {
    good[i] = run_of_rows(t, false, &a);
    prepare_run(&t->s, good[i], &a);
  }
  good[0]->run.next = &bad->run, bad->run.next = &good[1]->run;
  compute_runs(&t->s, good[0], work);
  compute_runs(&t->s, good[2], 1e9);
  if (run_fault(&bad->run, &e) != STATUS_NOT_FINITE || strcmp(e.detail, detail) != 0)
    fail_msg("\"%s\" where \"%s\" should be said", e.detail, detail);
  e = (struct error){0};
  for (int i = 0; i < 2; i++)
    if (!same_bits_of_runs(&t->s, good[i], good[2], &e)) fail_msg("%s: %s", detail, e.detail);
  arena_free(&a);
}

/* --- what is spoilt --- */

static void spoil_query(struct still *t) { set_first(&t->last->self[ROLE_QUERY], 3e38f); }
static void spoil_key(struct still *t) { set_first(&t->last->self[ROLE_KEY], 3e38f); }
static void spoil_value(struct still *t) { set_first(&t->last->self[ROLE_VALUE], 3e38f); }

static void spoil_score(struct still *t) {
  set_first(&t->last->self[ROLE_QUERY], 1e20f);
  set_first(&t->last->self[ROLE_KEY], 1e20f);
}

static void spoil_output(struct still *t) {
  set_first(&t->last->self[ROLE_VALUE], 1e30f);
  set_first(&t->last->self[ROLE_OUTPUT], 1e30f);
}

static void spoil_attention_sum(struct still *t) {
  t->row[0] = 3e38f;
  set_first(&t->last->self[ROLE_VALUE], 1);
  set_first(&t->last->self[ROLE_OUTPUT], 1);
}

static void spoil_up(struct still *t) { set_first(&t->last->forward.up, 3e38f); }

static void spoil_down(struct still *t) {
  set_first(&t->last->forward.up, 1e30f);
  set_first(&t->last->forward.down, 1e30f);
}

static void spoil_forward_sum(struct still *t) {
  t->row[0] = 3e38f;
  set_first(&t->last->forward.up, 1);
  set_first(&t->last->forward.down, 0.5f);
}

static void gate_all(struct still *t) {
  for (size_t l = 0; l < LAYERS; l++)
    t->s.layer[l].forward.gate.weight = zeros(t, t->s.form.forward_size * t->s.form.width);
}

static void spoil_gate(struct still *t) {
  gate_all(t);
  set_first(&t->last->forward.gate, 3e38f);
  set_first(&t->last->forward.up, 1);
}

static void spoil_gated(struct still *t) {
  gate_all(t);
  set_first(&t->last->forward.gate, 1e30f);
  set_first(&t->last->forward.up, 1e30f);
}

/* Sums that leave float32 on the way, below it: an activation would make 0 of them, though the
 * numbers come to 4e37 in the end. */
static void leave_below(struct still *t, const struct layer_matrix *m) {
  static const float sum[] = {-3e38f, 1.6e38f, 1.6e38f};
  t->row[1] = t->row[2] = t->row[0];
  memcpy((float *)m->weight, sum, sizeof sum);
  set_first(&t->last->forward.down, 1e-37f);
}

static void spoil_below_up(struct still *t) { leave_below(t, &t->last->forward.up); }

static void spoil_below_gate(struct still *t) {
  gate_all(t);
  leave_below(t, &t->last->forward.gate);
  set_first(&t->last->forward.up, 1);
}

static void spoil_norm_behind_attention(struct still *t) { set_norm(t, &t->last->norm_self); }
static void spoil_norm_behind_forward(struct still *t) { set_norm(t, &t->last->norm_forward); }
static void spoil_last_norm(struct still *t) { set_norm(t, &t->s.form.last); }

static void spoil_norm_before_first(struct still *t) {
  t->s.form.place = NORM_PRE;
  set_norm(t, &t->s.layer[0].norm_self);
}

static void spoil_norm_before_attention(struct still *t) {
  t->s.form.place = NORM_PRE;
  spoil_norm_behind_attention(t);
}

static void spoil_norm_before_forward(struct still *t) {
  t->s.form.place = NORM_PRE;
  spoil_norm_behind_forward(t);
}

static void spoil_last_norm_of_pre(struct still *t) {
  t->s.form.place = NORM_PRE;
  spoil_last_norm(t);
}

static void spoil_rms(struct still *t) {
  t->s.form.norm = NORM_RMS;
  spoil_norm_behind_attention(t);
}

static void spoil_type(struct still *t) {
  t->row[0] = t->types[t->s.form.width] = 3e38f;
  t->s.form.embedding.type = t->types, t->s.form.embedding.types = 2;
}

static void spoil_position(struct still *t) {
  t->row[0] = t->positions[2 * t->s.form.width] = 3e38f;
  t->s.form.embedding.positions = POSITIONS_LEARNED;
  t->s.form.embedding.position = t->positions, t->s.form.embedding.position_rows = 3;
}

static void spoil_embedding_norm(struct still *t) { set_norm(t, &t->s.form.embedding.norm); }

static void make_dense(struct still *t, bool with_tanh) {
  t->pool = STACK_POOL_LAST;
  struct stack_dense *dense = t->s.form.pooling.dense;
  *dense = (struct stack_dense){.size = 3,
                                .matrix.weight = zeros(t, 3 * t->s.form.width),
                                .tanh = with_tanh};
  set_first(&dense->matrix, 3e38f);
}

static void spoil_dense(struct still *t) { make_dense(t, false); }
static void spoil_dense_tanh(struct still *t) { make_dense(t, true); }

/* Each of the two is a float32, and their sum is not. */
static void spoil_residual(struct still *t) {
  make_dense(t, false);
  struct stack_dense *dense = t->s.form.pooling.dense;
  dense->residual = true;
  dense->skip.weight = zeros(t, 3 * t->s.form.width);
  set_first(&dense->matrix, 1.8e38f);
  set_first(&dense->skip, 1.8e38f);
}

/* The first layer of a classifier, which relu would bend to 0, or the scores of its classes. */
static void make_classifier(struct still *t, bool relu, bool of_first) {
  struct stack_classifier *c = &t->s.form.classifier;
  const size_t d = t->s.form.width;
  t->pool = STACK_POOL_CLS;
  c->first.weight = zeros(t, d * d);
  c->classes.weight = zeros(t, 2 * d);
  c->count = 2;
  c->vectors = STACK_VECTORS_FIRST;
  c->tanh = !relu;
  set_first(&c->first, of_first ? (relu ? -3e38f : 3e38f) : 1);
  set_first(&c->classes, of_first ? 1 : 3e38f);
  float *bias = zeros(t, 2);
  if (!of_first) bias[0] = 3e38f;
  c->classes.bias = bias;
}

struct spoilt {
  void (*spoil)(struct still *t);
  const char *detail;
};

static const struct spoilt all[] = {
    {spoil_query, "encoder.1.self: the projection of query 2 of item 1 exceeds the float32 range"},
    {spoil_key, "encoder.1.self: the projection of key 2 of item 1 exceeds the float32 range"},
    {spoil_value, "encoder.1.self: the projection of value 2 of item 1 exceeds the float32 range"},
    {spoil_score, "encoder.1.self: a score of query 2 of item 1 exceeds the float32 range"},
    {spoil_output, "encoder.1.self: the output of query 2 of item 1 exceeds the float32 range"},
    {spoil_attention_sum,
     "encoder layer 1: after the attention, position 2 of item 1 exceeds the float32 range"},
    {spoil_up,
     "encoder layer 1: the feed-forward of position 2 of item 1 exceeds the float32 range"},
    {spoil_down,
     "encoder layer 1: the feed-forward of position 2 of item 1 exceeds the float32 range"},
    {spoil_gate,
     "encoder layer 1: the feed-forward of position 2 of item 1 exceeds the float32 range"},
    {spoil_gated,
     "encoder layer 1: the feed-forward of position 2 of item 1 exceeds the float32 range"},
    {spoil_below_up,
     "encoder layer 1: the feed-forward of position 2 of item 1 exceeds the float32 range"},
    {spoil_below_gate,
     "encoder layer 1: the feed-forward of position 2 of item 1 exceeds the float32 range"},
    {spoil_forward_sum,
     "encoder layer 1: after the feed-forward, position 2 of item 1 exceeds the float32 range"},
    {spoil_norm_behind_attention,
     "encoder layer 1: after the attention, position 2 of item 1 exceeds the float32 range"},
    {spoil_norm_behind_forward,
     "encoder layer 1: after the feed-forward, position 2 of item 1 exceeds the float32 range"},
    {spoil_last_norm, "encoder: the last norm of position 2 of item 1 exceeds the float32 range"},
    {spoil_norm_before_first,
     "encoder layer 0: the first norm of position 2 of item 1 exceeds the float32 range"},
    {spoil_norm_before_attention,
     "encoder layer 0: after the feed-forward, position 2 of item 1 exceeds the float32 range"},
    {spoil_norm_before_forward,
     "encoder layer 1: after the attention, position 2 of item 1 exceeds the float32 range"},
    {spoil_last_norm_of_pre,
     "encoder layer 1: after the feed-forward, position 2 of item 1 exceeds the float32 range"},
    {spoil_rms,
     "encoder layer 1: after the attention, position 2 of item 1 exceeds the float32 range"},
    {spoil_type, "encoder: the embedding of position 2 of item 1 exceeds the float32 range"},
    {spoil_position, "encoder: the embedding of position 2 of item 1 exceeds the float32 range"},
    {spoil_embedding_norm,
     "encoder: the embedding of position 2 of item 1 exceeds the float32 range"},
    {spoil_dense, "the vector of item 1 exceeds the float32 range"},
    {spoil_dense_tanh, "the vector of item 1 exceeds the float32 range"},
    {spoil_residual, "the vector of item 1 exceeds the float32 range"},
};

enum { ALL = sizeof all / sizeof *all };

/* All faults of the list, or so many, at equal distances. */
static void check_faults(size_t count, size_t width, size_t forward_size) {
  for (size_t n = 0; n < count; n++) {
    const size_t i = n * ALL / count;
    struct still t;
    still_init(&t, width, forward_size);
    all[i].spoil(&t);
    random_stack_make(&t.s);
    fault_is(&t, 1, all[i].detail);
    fault_is(&t, 1e9, all[i].detail);
    still_done(&t);
  }
}

static void faults_say_where_they_are(void **unused) {
  (void)unused;
  check_faults(ALL, 4, 3);
}

/* So wide that columns are shared out. */
static void faults_of_shared_columns_say_the_same(void **unused) {
  (void)unused;
  check_faults(rounds(ALL), 512, 2600);
}

/* The first row of an item through the pooler. */
static void a_pooler_may_be_at_fault(void **unused) {
  (void)unused;
  struct still t;
  struct arena a;
  struct error e = {0};
  arena_init(&a, NULL);
  still_init(&t, 4, 3);
  t.pool = STACK_POOL_POOLER;
  t.s.form.pooling.pooler.weight = zeros(&t, 16);
  set_first(&t.s.form.pooling.pooler, 3e38f);
  random_stack_make(&t.s);
  struct stack_run *r = run_of_rows(&t, true, &a);
  memcpy((float *)r->embeddings + 2 * 4, t.row, 4 * sizeof(float));
  prepare_run(&t.s, r, &a);
  compute_runs(&t.s, r, 1e9);
  assert_int_equal(run_fault(&r->run, &e), STATUS_NOT_FINITE);
  assert_string_equal(e.detail, "the vector of item 1 exceeds the float32 range");
  arena_free(&a);
  still_done(&t);
}

/* No function hides it. */
static void a_classifier_may_be_at_fault(void **unused) {
  (void)unused;
  for (unsigned i = 0; i < 12; i++) {
    struct still t;
    struct arena a;
    struct error e = {0};
    arena_init(&a, NULL);
    still_init(&t, 4, 3);
    make_classifier(&t, i & 1, i & 2);
    random_stack_make(&t.s);
    struct stack_run *r = run_of_rows(&t, true, &a);
    r->function = (enum stack_function)(i / 4);
    memcpy((float *)r->embeddings + 2 * 4, t.row, 4 * sizeof(float));
    prepare_run(&t.s, r, &a);
    compute_runs(&t.s, r, 1e9);
    assert_int_equal(run_fault(&r->run, &e), STATUS_NOT_FINITE);
    assert_string_equal(e.detail, "the score of a class of item 1 exceeds the float32 range");
    arena_free(&a);
    still_done(&t);
  }
}

static void tokens_may_be_at_fault(void **unused) {
  (void)unused;
  static const int32_t tokens[5] = {0, 0, 0, 0, 1};
  struct still t;
  struct arena a;
  struct error e = {0};
  arena_init(&a, NULL);
  still_init(&t, 4, 3);
  t.types[4] = 4; /* a table of two tokens */
  t.s.form.embedding = (struct stack_embedding){.token = t.types, .tokens = 2, .scale = 1e38f};
  random_stack_make(&t.s);
  struct stack_run *r = run_of_rows(&t, true, &a);
  r->embeddings = NULL, r->types = NULL, r->tokens = tokens;
  prepare_run(&t.s, r, &a);
  compute_runs(&t.s, r, 1e9);
  assert_int_equal(run_fault(&r->run, &e), STATUS_NOT_FINITE);
  assert_string_equal(e.detail,
                      "encoder: the embedding of position 2 of item 1 exceeds the float32 range");
  arena_free(&a);
  still_done(&t);
}

/* Where a target's logarithm is wanted, and where logits are wanted themselves; and where logits
 * are numbers, but so far apart that the logarithm is none. */
static void logits_may_be_at_fault(void **unused) {
  (void)unused;
  static const int32_t targets[5] = {0, 1, 0, -1, 1};
  for (int wanted = 0; wanted < 3; wanted++) {
    struct still t;
    struct arena a;
    struct error e = {0};
    arena_init(&a, NULL);
    still_init(&t, 4, 3);
    t.s.form.embedding = (struct stack_embedding){.token = t.types, .tokens = 2};
    t.s.form.output.matrix.weight = zeros(&t, 8);
    float *weight = (float *)t.s.form.output.matrix.weight;
    weight[0] = wanted == 2 ? 2e38f / t.row[0] : 3e38f;
    if (wanted == 2) weight[4] = -weight[0];
    random_stack_make(&t.s);
    struct stack_run *r = run_of_rows(&t, true, &a);
    r->types = NULL;
    r->targets = wanted == 1 ? NULL : targets;
    r->want_logits = wanted == 1;
    prepare_run(&t.s, r, &a);
    compute_runs(&t.s, r, 1e9);
    assert_int_equal(run_fault(&r->run, &e), STATUS_NOT_FINITE);
    assert_string_equal(
        e.detail,
        "encoder: a logit or log probability of position 2 of item 1 exceeds the float32 range");
    arena_free(&a);
    still_done(&t);
  }
}

/* The last layer takes away what is too large for the output, so that only a lens sees it: of a row
 * as it is, or behind the last norm. */
static void a_lens_may_be_at_fault(void **unused) {
  (void)unused;
  static const int32_t targets[5] = {0, 1, 0, -1, 1};
  for (int wanted = 0; wanted < 4; wanted++) {
    struct still t;
    struct arena a;
    struct error e = {0};
    const bool normed = wanted > 1, lens = wanted % 2 == 1;
    arena_init(&a, NULL);
    still_init(&t, 4, 3);
    t.s.form.embedding = (struct stack_embedding){.token = t.types, .tokens = 2};
    t.s.form.place = NORM_PRE;
    t.s.form.output.matrix.weight = zeros(&t, 8);
    if (normed)
      set_norm(&t, &t.s.form.last);
    else
      set_first(&t.s.form.output.matrix, 3e38f);
    set_first(&t.last->forward.up, 1);
    set_first(&t.last->forward.down, -1);
    random_stack_make(&t.s);
    struct stack_run *r = run_of_rows(&t, true, &a);
    r->types = NULL, r->targets = targets, r->logit_lens = lens;
    prepare_run(&t.s, r, &a);
    compute_runs(&t.s, r, 1e9);
    assert_int_equal(run_fault(&r->run, &e), lens ? STATUS_NOT_FINITE : STATUS_OK);
    if (lens)
      assert_string_equal(e.detail,
                          "encoder layer 0: before it, through the logit lens, position 2 of "
                          "item 1 exceeds the float32 range");
    arena_free(&a);
    still_done(&t);
  }
}

/* Any row of any item, empty ones between them. */
static void each_row_is_told_from_the_others(void **unused) {
  (void)unused;
  static const size_t sizes[] = {0, 2, 0, 1, 3, 0};
  enum { ITEMS = 6, ROWS = 6, WIDTH = 4 };
  struct still t;
  still_init(&t, WIDTH, 3);
  spoil_up(&t);
  random_stack_make(&t.s);
  for (size_t i = 0, row = 0; i < ITEMS; i++)
    for (size_t n = 0; n < sizes[i]; n++, row++) {
      struct arena a;
      struct error e = {0};
      char wanted[96];
      float x[ROWS * WIDTH] = {0};
      struct item item[ITEMS] = {0};
      arena_init(&a, NULL);
      struct stack_run *r = stack_run_new(t.s.stack, &a, &e);
      r->geometry.items = ITEMS, r->geometry.item = item;
      for (size_t k = 0; k < ITEMS; k++) {
        item[k].q = item[k].k = sizes[k];
        item[k].q_row = item[k].k_row = r->geometry.q_rows;
        r->geometry.k_rows = r->geometry.q_rows += sizes[k];
      }
      x[row * WIDTH] = 2;
      r->embeddings = x;
      prepare_run(&t.s, r, &a);
      compute_runs(&t.s, r, 1e6);
      snprintf(
          wanted, sizeof wanted,
          "encoder layer 1: the feed-forward of position %zu of item %zu exceeds the float32 range",
          n, i);
      run_fault(&r->run, &e);
      assert_string_equal(e.detail, wanted);
      arena_free(&a);
    }
  still_done(&t);
}

/* --- which fault is kept --- */

/* In any order of the spans of a step. */
static void compute_backwards(const struct random_stack *s, struct stack_run *r, double work) {
  static struct span span[4096];
  void *scratch = aligned_alloc(64, size_round_up(stack_scratch_bytes(s->stack) + 1, 64));
  struct cursor at;
  for (run_begin(&at, &r->run); !run_is_done(&at); run_next(&at)) {
    size_t spans = 0;
    while (run_cut(&at, work, &span[spans])) assert_true(++spans < 4096);
    while (spans > 0) run_span(&span[--spans], scratch);
  }
  free(scratch);
}

/* Of many rows at fault the error names the first one, and of many layers the first one. */
static void the_first_fault_is_kept(void **unused) {
  (void)unused;
  enum { ROWS = 400, WIDTH = 16 };
  static void (*const spoil[])(struct still *) = {spoil_query,       spoil_value,
                                                  spoil_up,          spoil_down,
                                                  spoil_forward_sum, spoil_norm_behind_attention};
  for (size_t i = 0; i < sizeof spoil / sizeof *spoil; i++)
    for (size_t l = 0; l < LAYERS; l++) {
      struct still t;
      struct arena a;
      struct error e = {0};
      char own[32], attention[32];
      arena_init(&a, NULL);
      still_init(&t, WIDTH, 40);
      t.last = &t.s.layer[l];
      spoil[i](&t);
      random_stack_make(&t.s);
      float *x = zeros(&t, ROWS * WIDTH);
      for (size_t row = 37; row < ROWS; row += 40) memcpy(x + row * WIDTH, t.row, WIDTH * 4);
      struct stack_run *r = random_run_of_rows(&t.s, ROWS, &a);
      r->embeddings = x;
      prepare_run(&t.s, r, &a);
      compute_backwards(&t.s, r, i % 2 ? 1 : 1e4);
      run_fault(&r->run, &e);
      snprintf(own, sizeof own, "encoder layer %zu:", l);
      snprintf(attention, sizeof attention, "encoder.%zu.self:", l);
      if ((!strstr(e.detail, own) && !strstr(e.detail, attention)) ||
          !strstr(e.detail, " 37 of item 0"))
        fail_msg("%zu, layer %zu: %s", i, l, e.detail);
      arena_free(&a);
      still_done(&t);
    }
}

/* --- runs that are cancelled --- */

static unsigned steps_of(const struct stack_run *r) { return r->run.program->steps; }

/* The first of two runs is cancelled before a step. */
static void compute_cancelling(const struct random_stack *s, struct stack_run *first,
                               unsigned step) {
  void *scratch = aligned_alloc(64, size_round_up(stack_scratch_bytes(s->stack) + 1, 64));
  struct cursor at;
  struct span span;
  for (run_begin(&at, &first->run); !run_is_done(&at); run_next(&at)) {
    if (at.step >= step) atomic_store(&first->run.cancelled, true);
    while (run_cut(&at, 1e4, &span)) run_span(&span, scratch);
  }
  free(scratch);
}

static void a_cancelled_run_leaves_others_alone(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < 6; round++) {
    struct random_case c;
    random_case_stack(&c, 20000 + round,
                      (struct random_stack_kind){2, 2, 20, false, false, false, false});
    struct stack_run *one = random_run(&c.s, &c.state, 3, 20, &c.a);
    struct stack_run *two = random_run(&c.s, &c.state, 3, 20, &c.a);
    struct stack_run *alone = random_run_again(&c.s, two, &c.a);
    prepare_run(&c.s, alone, &c.a);
    compute_runs(&c.s, alone, 1e6);
    for (unsigned step = 0; step <= steps_of(alone); step++) {
      struct error e = {0};
      struct arena a;
      arena_init(&a, NULL);
      struct stack_run *left = random_run_again(&c.s, one, &a);
      struct stack_run *stays = random_run_again(&c.s, two, &a);
      prepare_run(&c.s, left, &a);
      prepare_run(&c.s, stays, &a);
      left->run.next = &stays->run;
      compute_cancelling(&c.s, left, step);
      assert_int_equal(run_fault(&left->run, &e), STATUS_OK);
      if (!same_bits_of_runs(&c.s, stays, alone, &e)) fail_msg("step %u: %s", step, e.detail);
      arena_free(&a);
    }
    random_case_done(&c);
  }
}

/* --- memory --- */

/* The n-th allocation of what makes a stack fails. */
static bool make_failing(const struct random_stack *s, size_t n) {
  struct error e = {0};
  poisoned_fail(n);
  struct stack *made = stack_new(&s->form, &e);
  for (size_t l = 0; made && l < s->form.layers && !e.status; l++)
    stack_set_layer(made, &s->layer[l], &e);
  poisoned_fail(0);
  stack_free(made);
  if (!made || e.status) assert_int_equal(e.status, STATUS_OUT_OF_MEMORY);
  return e.status == STATUS_OK;
}

static void any_allocation_of_a_stack_may_fail(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(12); round++) {
    struct random_case c;
    random_case_stack(&c, 21000 + round,
                      (struct random_stack_kind){.layers_most = 2, .longest = 8});
    size_t n = 1;
    while (!make_failing(&c.s, n)) n++;
    assert_true(n > 2);
    random_case_done(&c);
  }
}

/* A request of which much is asked. */
static struct stack_run *large_run(const struct random_stack *s, uint64_t *state, struct arena *a) {
  struct stack_run *r = random_run(s, state, 4, 40, a);
  struct stack_wish *wish = random_run_wishes(s, r, a);
  for (size_t l = 0; l < s->form.layers; l++)
    wish[l] = (struct stack_wish){
        .weights = (enum stack_weights)(l % 4), .thumbnail = 8, .hidden = true, .input = l % 2};
  return r;
}

static void any_allocation_of_a_run_may_fail(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(12); round++) {
    struct random_case c;
    random_case_stack(&c, 22000 + round,
                      (struct random_stack_kind){.layers_most = 4, .longest = 40});
    const struct stack_run *r = large_run(&c.s, &c.state, &c.a);
    poisoned_run_prepare(&c.s, r, random_run_again);
    struct error e = {0};
    struct arena a;
    arena_init(&a, NULL);
    poisoned_fail(1);
    assert_null(stack_run_new(c.s.stack, &a, &e));
    assert_int_equal(e.status, STATUS_OUT_OF_MEMORY);
    poisoned_fail(0);
    random_case_done(&c);
  }
}

static void any_budget_may_be_too_small(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(12); round++) {
    struct random_case c;
    random_case_stack(&c, 23000 + round,
                      (struct random_stack_kind){.layers_most = 3, .longest = 40});
    const struct stack_run *r = large_run(&c.s, &c.state, &c.a);
    struct arena a;
    struct short_memory m = {.arena = &a};
    while (short_memory_next(&m, 1001 + m.limit / 8)) {
      struct error e = {0};
      struct stack_run *again = random_run_again(&c.s, r, &c.a);
      prepare_source(&c.s, again, &c.a);
      const enum status status = stack_prepare(c.s.stack, again, &a, &e);
      if (!short_memory_is_enough(&m, status, &e)) continue;
      assert_true(a.bytes <= m.limit);
      compute_runs(&c.s, again, 1e6);
      if (!run_agrees_with_twin(&c.s, again, &e)) fail_msg("%s", e.detail);
    }
    random_case_done(&c);
  }
}

static void more_rows_than_can_be_counted_are_too_many(void **unused) {
  (void)unused;
  struct random_case c;
  random_case_stack(&c, 24000, (struct random_stack_kind){1, 1, 8, false, false, false, false});
  for (size_t rows = SIZE_MAX / 2; rows > SIZE_MAX / 32; rows /= 2) {
    struct arena a;
    struct error e = {0};
    arena_init(&a, NULL);
    struct stack_run *r = random_run_of_rows(&c.s, rows, &a);
    assert_int_equal(stack_prepare(c.s.stack, r, &a, &e), STATUS_TOO_LARGE);
    arena_free(&a);
  }
  random_case_done(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(faults_say_where_they_are),
      cmocka_unit_test(faults_of_shared_columns_say_the_same),
      cmocka_unit_test(a_pooler_may_be_at_fault),
      cmocka_unit_test(a_classifier_may_be_at_fault),
      cmocka_unit_test(tokens_may_be_at_fault),
      cmocka_unit_test(logits_may_be_at_fault),
      cmocka_unit_test(a_lens_may_be_at_fault),
      cmocka_unit_test(each_row_is_told_from_the_others),
      cmocka_unit_test(the_first_fault_is_kept),
      cmocka_unit_test(a_cancelled_run_leaves_others_alone),
      cmocka_unit_test(any_allocation_of_a_stack_may_fail),
      cmocka_unit_test(any_allocation_of_a_run_may_fail),
      cmocka_unit_test(any_budget_may_be_too_small),
      cmocka_unit_test(more_rows_than_can_be_counted_are_too_many),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
