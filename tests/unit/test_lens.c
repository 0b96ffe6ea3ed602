/* test_lens: a logit lens beside the readable twin's formulas, and beside models that end early. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/size.h"
#include "core/reference/stack_ref.h"
#include "tests/support/compare_stack.h"
#include "tests/support/poisoned.h"
#include "tests/support/random_case.h"
#include "tests/support/rounds.h"

/* A model with an output, and a run that has targets and shows everything. False: there are no
 * rows.
 */
static bool make_case(struct random_case *c, uint64_t seed, struct stack_run **run) {
  const struct random_stack_kind kind = {.layers_most = 4, .longest = 12, .tokens = true};
  random_case_stack(c, seed, kind);
  random_stack_draw_output(&c->s, c->state, 1 + seed % 3 * 700 + seed % 40);
  random_stack_remake(&c->s);
  struct stack_run *r = *run = random_run(&c->s, &c->state, 4, kind.longest, &c->a);
  const size_t rows = r->geometry.q_rows, wishes = stack_form_attentions(&c->s.form);
  int32_t *targets = random_room(&c->a, rows, sizeof *targets);
  struct stack_wish *wish = random_room(&c->a, wishes, sizeof *wish);
  for (size_t i = 0; i < rows; i++)
    targets[i] = i % 3 == 1 ? -1 : (int32_t)random_below(&c->state, c->s.form.embedding.tokens);
  for (size_t i = 0; i < wishes; i++) wish[i] = (struct stack_wish){.hidden = true};
  r->targets = targets, r->wish = wish, r->embedded = true;
  r->want_logits = false, r->dimensions = 0, r->normalize = false;
  stack_set_pool(r, STACK_POOL_NONE);
  r->top = seed % 3 * 5, r->logit_lens = 1 + random_below(&c->state, 64);
  return rows > 0;
}

/* The last norm, in float64. */
static void norm(const struct stack_form *f, double *x) {
  const double d = (double)f->width;
  double mean = 0, squares = 0;
  if (!f->last.factor) return;
  for (size_t i = 0; f->norm == NORM_LAYER && i < f->width; i++) mean += x[i] / d;
  for (size_t i = 0; i < f->width; i++) squares += (x[i] - mean) * (x[i] - mean) / d;
  for (size_t i = 0; i < f->width; i++) {
    const double shift = f->last.shift ? f->last.shift[i] : 0;
    x[i] = (x[i] - mean) / sqrt(squares + f->epsilon) * f->last.factor[i] + shift;
  }
}

/* One list of a row: in order, each number right, and nothing above it left out. */
static void check_list(const int32_t *token, const float *log, size_t count, const double *right,
                       size_t tokens) {
  double greatest = 0;
  size_t above = 0;
  for (size_t t = 0; t < tokens; t++) greatest = fmax(greatest, fabs(right[t]));
  const double bound = 2e-5 + 1e-6 * greatest;
  for (size_t i = 0; i < count; i++) {
    assert_true(fabs(log[i] - right[token[i]]) <= bound);
    if (i > 0) assert_true(log[i] <= log[i - 1]);
  }
  for (size_t t = 0; t < tokens; t++) above += right[t] > log[count - 1] + bound;
  assert_true(above < count);
}

/* Of the states as they came out, which other tests compare. */
static void check_state(const struct random_case *c, const struct stack_run *r, size_t l) {
  const struct stack_form *f = &c->s.form;
  const float *state = l == 0 ? r->embedding : r->shown[l - 1].hidden;
  double *row = malloc(f->width * sizeof *row);
  double *right = malloc(f->embedding.tokens * sizeof *right);
  size_t target = 0;
  for (size_t i = 0; i < r->geometry.q_rows; i++) {
    if (r->targets[i] < 0) continue;
    const float *from = l == f->layers ? r->rows : state;
    for (size_t x = 0; x < f->width; x++) row[x] = from[i * f->width + x];
    if (l < f->layers) norm(f, row);
    stack_ref_log_probabilities(f, row, right);
    const size_t at = target++ * r->lens_count;
    check_list(r->lens[l].token + at, r->lens[l].log_probability + at, r->lens_count, right,
               f->embedding.tokens);
  }
  free(row);
  free(right);
}

static void every_state_agrees_with_the_formulas(void **unused) {
  (void)unused;
  for (uint64_t seed = 0; seed < rounds(200); seed++) {
    struct random_case c;
    struct stack_run *r;
    if (make_case(&c, 7000 + seed, &r)) {
      prepare_run(&c.s, r, &c.a);
      compute_runs(&c.s, r, 1e5);
      assert_int_equal(r->lens_count, size_min(r->logit_lens, c.s.form.embedding.tokens));
      for (size_t l = 0; l <= c.s.form.layers; l++) check_state(&c, r, l);
    }
    random_case_done(&c);
  }
}

/* Of each row that has a target the shorter list is the beginning of the longer one. */
static void check_top(const struct stack_run *r, const struct stack_lens *lens) {
  const size_t count = size_min(r->top_count, r->lens_count);
  size_t target = 0;
  for (size_t i = 0; i < r->geometry.q_rows; i++) {
    if (r->targets[i] < 0) continue;
    const size_t at = target++ * r->lens_count, top = i * r->top_count;
    assert_memory_equal(r->top_tokens + top, lens->token + at, count * sizeof(int32_t));
    assert_memory_equal(r->top_log_probabilities + top, lens->log_probability + at,
                        count * sizeof(float));
  }
}

static void the_last_state_has_the_likeliest_tokens_themselves(void **unused) {
  (void)unused;
  for (uint64_t seed = 0; seed < rounds(100); seed++) {
    struct random_case c;
    struct stack_run *r;
    if (make_case(&c, 8000 + seed, &r)) {
      r->top = 1 + seed % 64;
      prepare_run(&c.s, r, &c.a);
      compute_runs(&c.s, r, 1e5);
      check_top(r, &r->lens[c.s.form.layers]);
    }
    random_case_done(&c);
  }
}

/* The likeliest tokens of a model that ends with an early layer are what the lens shows there. */
static void a_model_that_ends_early_says_the_same(void **unused) {
  (void)unused;
  size_t compared = 0;
  for (uint64_t seed = 0; compared < rounds(40); seed++) {
    struct random_case c;
    struct stack_run *r;
    const bool rows = make_case(&c, 9000 + seed, &r);
    const size_t layers = c.s.form.layers;
    if (rows && layers > 1 && !c.s.form.cross.heads) {
      prepare_run(&c.s, r, &c.a);
      compute_runs(&c.s, r, 1e5);
      c.s.form.layers = 1 + seed % (layers - 1);
      random_stack_remake(&c.s);
      struct stack_run *early = random_run_again(&c.s, r, &c.a);
      early->top = r->logit_lens;
      prepare_run(&c.s, early, &c.a);
      compute_runs(&c.s, early, 1e5);
      check_top(early, &r->lens[c.s.form.layers]);
      compared++;
    }
    random_case_done(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_state_agrees_with_the_formulas),
      cmocka_unit_test(the_last_state_has_the_likeliest_tokens_themselves),
      cmocka_unit_test(a_model_that_ends_early_says_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
