/* test_cross: stacks that attend to another one's rows: several sequences of one source, a table of
 * tokens that is lent, and what is said of faults. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/size.h"
#include "tests/support/compare_stack.h"
#include "tests/support/random_case.h"
#include "tests/support/rounds.h"
#include "tests/support/same_sequence.h"

static const struct random_stack_kind some = {
    .layers_least = 1, .layers_most = 3, .longest = 80, .tokens = true, .bytes = true};

/* --- several sequences of a text --- */

/* `each` sequences of every text of a run, which differ by their draws. */
static struct stack_run *drawn(const struct random_stack *s, const struct stack_run *one,
                               size_t each, struct arena *a) {
  struct error e = {0};
  struct stack_run *r = stack_run_new(s->stack, a, &e);
  struct stack_generation *g = random_room(a, 1, sizeof *g);
  const size_t items = one->geometry.items * each;
  *g = *one->generation;
  g->each = each;
  g->choice.temperature = 1;
  g->sequence = random_room(a, items, sizeof *g->sequence);
  int32_t *token = random_room(a, one->geometry.q_rows * each, sizeof *token);
  r->geometry.items = items;
  r->geometry.item = random_room(a, items, sizeof(struct item));
  for (size_t i = 0; i < items; i++) {
    const struct item *text = &one->geometry.item[i / each];
    const size_t row = r->geometry.q_rows;
    r->geometry.item[i] = (struct item){.q = text->q, .k = text->q, .q_row = row, .k_row = row};
    memcpy(token + row, one->tokens + text->q_row, text->q * sizeof *token);
    r->geometry.q_rows = r->geometry.k_rows = row + text->q;
    g->sequence[i] = (struct stack_sequence){.item = one->generation->sequence[i / each].item,
                                             .sample = (uint32_t)(i % each),
                                             .most = one->generation->sequence[i / each].most};
  }
  r->tokens = token;
  r->generation = g;
  r->wish = one->wish;
  r->embedded = one->embedded;
  return r;
}

static void same_shown(const struct random_stack *s, const struct stack_run *x, size_t i,
                       const struct stack_run *y, const struct item *source) {
  const struct stack_sequence *q = &x->generation->sequence[i], *p = y->generation->sequence;
  const size_t d = s->form.width;
  for (size_t n = 0; x->wish && n < stack_form_attentions(&s->form); n++) {
    const struct stack_shown *a = &x->shown[n], *b = &y->shown[n];
    const bool across = n >= s->form.layers, average = x->wish[n].weights == STACK_WEIGHTS_AVERAGE;
    const size_t heads = average ? 1 : across ? s->form.cross.heads : s->form.kind->self.heads;
    const size_t keys = across ? source->q : q->keys, most = x->wish[n].thumbnail;
    if (a->hidden)
      assert_memory_equal(a->hidden + q->row * d, b->hidden + p->row * d, q->most * d * 4);
    if (a->input)
      assert_memory_equal(a->input + q->row * d, b->input + p->row * d, q->most * d * 4);
    if (a->weights)
      assert_memory_equal(a->weights + a->weights_at[i], b->weights, heads * q->most * keys * 4);
    if (a->thumbnails) /* of as many rows as there are tokens */
      assert_memory_equal(a->thumbnails + a->thumbnails_at[i], b->thumbnails,
                          heads * size_min(most, stack_sequence_count(q)) *
                              size_min(most, across ? keys : 1));
  }
}

/* Beside each other they have the bits that each has alone, with all that is shown of it. */
static void sequences_share_their_source(void **unused) {
  (void)unused;
  enum { TEXTS = 3, EACH = 3 };
  for (uint64_t round = 0; round < rounds(60); round++) {
    struct random_case c;
    random_case_pair(&c, 300 + round, some, 0);
    struct stack_run *one = random_texts(&c.s, &c.state, TEXTS, round % 2 ? 1 : 30, 20, &c.a);
    one->embedded = random_often(&c.state, 50);
    if (random_often(&c.state, 70)) random_run_draw_wishes(&c.s, one, &c.state, &c.a);
    struct stack_run *r = drawn(&c.s, one, EACH, &c.a);
    r->source = one->source;
    generate(&c.s, r, random_work(&c.state), &c.a);
    for (size_t i = 0; i < TEXTS * EACH; i++) {
      const size_t text = i / EACH;
      struct stack_run *alone = drawn(&c.s, texts_of(&c.s, one, text, 1, &c.a), 1, &c.a);
      alone->generation->sequence[0].sample = (uint32_t)(i % EACH);
      alone->source = random_source_of(&c.s, one->source, &text, 1, &c.a);
      generate(&c.s, alone, random_work(&c.state), &c.a);
      same_sequence(r, i, alone, 0);
      same_shown(&c.s, r, i, alone, &one->source->geometry.item[text]);
    }
    random_case_done(&c);
  }
}

/* --- a table that is lent --- */

/* It gives the bits that a table of one's own does; tied or not, in 16 bits or not. */
static void a_lent_table_is_ones_own(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(40); round++) {
    struct random_case c;
    struct random_stack lender;
    struct error e = {0};
    random_case_stack(&c, 800 + round, some);
    memset(&c.s.form.output, 0, sizeof c.s.form.output);
    random_stack_remake(&c.s);
    memset(&lender, 0, sizeof lender);
    lender.form = (struct stack_form){.name = "decoder",
                                      .width = c.s.form.width,
                                      .whole = c.s.form.whole,
                                      .embedding = {.token = c.s.form.embedding.token,
                                                    .tokens = c.s.form.embedding.tokens,
                                                    .scale = 1},
                                      .output = {.tied = round % 2, .scale = 1}};
    random_stack_make(&lender);
    struct stack_run *r = random_run(&c.s, &c.state, 3, 20, &c.a);
    int32_t *token = random_room(&c.a, r->geometry.q_rows + 1, sizeof *token);
    for (size_t i = 0; i < r->geometry.q_rows; i++)
      token[i] = (int32_t)random_below(&c.state, c.s.form.embedding.tokens);
    r->tokens = token, r->embeddings = NULL;
    r->targets = NULL, r->want_logits = false;
    struct stack_run *other = random_run_again(&c.s, r, &c.a);
    prepare_run(&c.s, r, &c.a);
    compute_runs(&c.s, r, 1e6);
    const size_t own = stack_bytes(c.s.stack);
    c.s.form.embedding.lender = lender.stack;
    random_stack_remake(&c.s);
    const size_t numbers = c.s.form.width * c.s.form.embedding.tokens;
    assert_in_range(own - stack_bytes(c.s.stack), numbers * 2, numbers * 4);
    prepare_run(&c.s, other, &c.a);
    compute_runs(&c.s, other, 1e6);
    if (!same_bits_of_runs(&c.s, r, other, &e)) fail_msg("%s", e.detail);
    stack_free(lender.stack);
    random_case_done(&c);
  }
}

/* --- faults --- */

static void fill(const float *weight, size_t count) {
  for (size_t i = 0; i < count; i++) ((float *)weight)[i] = 3e38f;
}

static void says(const struct random_stack *s, struct stack_run *r, const char *words,
                 struct arena *a) {
  struct error e = {0};
  generate(s, r, 1e6, a);
  assert_int_equal(run_fault(&r->run, &e), STATUS_NOT_FINITE);
  if (!strstr(e.detail, words)) fail_msg("%s; should be %s", e.detail, words);
}

/* A row of keys is the source's; one of queries is a sequence's, wherever it lies among those of
 * its text. */
static void faults_name_the_rows_of_their_own(void **unused) {
  (void)unused;
  struct random_case c;
  char words[100];
  random_case_pair(&c, 4000, some, 30);
  struct stack_run *one = random_texts(&c.s, &c.state, 3, 9, 9, &c.a);
  one->source->geometry.item[0].q = one->source->geometry.item[0].k = 0; /* it has no keys */
  one->source->geometry.item[1] = (struct item){.q = 3, .k = 3};
  one->source->geometry.item[2] = (struct item){.q = 1, .k = 1, .q_row = 3, .k_row = 3};
  one->source->geometry.q_rows = one->source->geometry.k_rows = 4;
  one->source->embeddings = random_floats(&c.a, &c.state, 4 * c.s.source->form.width, 1.5f);
  const struct layer_shape *h = &c.s.form.cross;
  fill(c.s.layer[0].cross[ROLE_KEY].weight, h->kv_heads * h->head_size * h->key_size);
  random_stack_remake(&c.s);
  struct stack_run *r = drawn(&c.s, one, 2, &c.a);
  r->source = random_source_of(&c.s, one->source, (const size_t[]){0, 1, 2}, 3, &c.a);
  says(&c.s, r, ".0.cross: the projection of key 0 of item 1 exceeds the float32 range", &c.a);
  memset((float *)c.s.layer[0].cross[ROLE_KEY].weight, 0,
         h->kv_heads * h->head_size * h->key_size * sizeof(float));
  fill(c.s.layer[0].cross[ROLE_QUERY].weight, h->heads * h->head_size * h->query_size);
  random_stack_remake(&c.s);
  r = drawn(&c.s, one, 2, &c.a);
  r->source = random_source_of(&c.s, one->source, (const size_t[]){0, 1, 2}, 3, &c.a);
  snprintf(words, sizeof words, ".0.cross: the projection of query 0 of item 1");
  says(&c.s, r, words, &c.a);
  random_case_done(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sequences_share_their_source),
      cmocka_unit_test(a_lent_table_is_ones_own),
      cmocka_unit_test(faults_name_the_rows_of_their_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
