/* test_search: searches beside one that is written plainly: it runs over the whole of every way in
 * every step, and puts all candidates in order. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/size.h"
#include "core/kernel/kernel.h"
#include "tests/support/compare_stack.h"
#include "tests/support/pooled.h"
#include "tests/support/random_case.h"
#include "tests/support/rounds.h"
#include "tests/support/same_sequence.h"
#include "tests/support/short_memory.h"

enum { TOKENS_MOST = 40, BEAMS_MOST = 64, TOKENS_OF_WAY = 200 };

static const struct random_stack_kind some = {
    .layers_most = 3, .longest = 80, .tokens = true, .bytes = true};
static const struct random_stack_kind far = {
    .layers_most = 2, .longest = 400, .tokens = true, .bytes = true};

/* --- the plain search --- */

struct way {
  int32_t token[TOKENS_OF_WAY];
  float log[TOKENS_OF_WAY];
  size_t count, order; /* order: of being done */
  double sum, score;
  enum stack_finish finish;
};

struct candidate {
  double sum;
  size_t way;
  int32_t token;
  float log;
};

struct plain {
  const struct random_stack *s;
  const struct stack_run *r;
  const struct stack_choice *c;
  size_t text; /* number */
  struct way way[BEAMS_MOST], done[1000];
  size_t ways, dones;
  struct candidate candidate[BEAMS_MOST * TOKENS_MOST];
  size_t candidates;
};

static const struct item *text_of(const struct plain *p) {
  return &p->r->geometry.item[p->text * p->c->beams];
}

/* The model's own log probabilities of all tokens behind a way. */
static void find_logs(const struct plain *p, const struct way *w, float *log, struct arena *a) {
  const size_t rows = text_of(p)->q + w->count, tokens = p->s->form.embedding.tokens;
  struct stack_run *whole = whole_text_of(p->s, p->r, p->text * p->c->beams, w->token, w->count, a);
  int32_t *target = random_room(a, rows, sizeof *target);
  for (size_t i = 0; i < rows; i++) target[i] = i + 1 < rows ? -1 : 0;
  whole->targets = target, whole->top = tokens;
  prepare_run(p->s, whole, a);
  compute_runs(p->s, whole, 1e7);
  for (size_t i = 0; i < tokens; i++) {
    const size_t at = (rows - 1) * tokens + i;
    log[whole->top_tokens[at]] = whole->top_log_probabilities[at];
  }
}

static void add_candidates(struct plain *p, size_t index) {
  const struct way *w = &p->way[index];
  const size_t tokens = p->s->form.embedding.tokens, text = text_of(p)->q;
  float own[TOKENS_MOST], log[TOKENS_MOST];
  int32_t token[TOKENS_MOST], all[TOKENS_OF_WAY + 400];
  struct arena a;
  arena_init(&a, NULL);
  find_logs(p, w, own, &a);
  memcpy(all, p->r->tokens + text_of(p)->q_row, text * sizeof *all);
  memcpy(all + text, w->token, w->count * sizeof *all);
  const struct stack_past past = {.token = all,
                                  .count = text + w->count,
                                  .chosen = w->count,
                                  .most = p->r->generation->sequence[p->text * p->c->beams].most};
  void *scratch = aligned_alloc(64, size_round_up(stack_choice_scratch(tokens), 64));
  const size_t found = stack_choose_some(p->c, &past, own, 0, tokens, tokens, token, log, scratch);
  free(scratch);
  for (size_t i = 0; i < found; i++)
    p->candidate[p->candidates++] =
        (struct candidate){w->sum + log[i], index, token[i], own[token[i]]};
  arena_free(&a);
}

static int by_sum(const void *x, const void *y) {
  const struct candidate *a = x, *b = y;
  if (a->sum != b->sum) return a->sum < b->sum ? 1 : -1;
  if (a->way != b->way) return a->way < b->way ? -1 : 1;
  return a->token < b->token ? -1 : 1;
}

static int by_score(const void *x, const void *y) {
  const struct way *a = x, *b = y;
  if (a->score != b->score) return a->score < b->score ? 1 : -1;
  return a->order < b->order ? -1 : 1;
}

static struct way longer(const struct plain *p, const struct candidate *c) {
  struct way w = p->way[c->way];
  w.token[w.count] = c->token;
  w.log[w.count++] = c->log;
  w.sum = c->sum;
  w.score = c->sum / pow((double)w.count, p->c->length_penalty);
  return w;
}

static size_t ends_of(const struct stack_choice *c) {
  bool ends[TOKENS_MOST] = {false};
  size_t count = 0;
  for (size_t i = 0; i < c->ends; i++) ends[c->end[i]] = true;
  for (size_t i = 0; i < c->stops; i++) ends[c->stop[i]] = true;
  for (size_t i = 0; i < TOKENS_MOST; i++) count += ends[i];
  return count;
}

/* False: the search is over. */
static bool plain_step(struct plain *p, size_t step, size_t most) {
  const struct stack_choice *c = p->c;
  struct way next[BEAMS_MOST];
  size_t ways = 0;
  p->candidates = 0;
  for (size_t i = 0; i < p->ways; i++) add_candidates(p, i);
  qsort(p->candidate, p->candidates, sizeof *p->candidate, by_sum);
  const size_t ranks = size_min(p->candidates, size_max(2, 1 + ends_of(c)) * c->beams);
  for (size_t rank = 0; rank < ranks; rank++) {
    struct way w = longer(p, &p->candidate[rank]);
    w.finish = stack_choice_finish(c, p->candidate[rank].token, step + 1, most);
    w.order = p->dones;
    if (w.finish == STACK_FINISH_NOT && ways < c->beams) next[ways++] = w;
    if (w.finish != STACK_FINISH_NOT && rank < c->beams) p->done[p->dones++] = w;
  }
  qsort(p->done, p->dones, sizeof *p->done, by_score);
  p->dones = size_min(p->dones, c->beams);
  for (size_t i = 0; i < p->dones; i++) p->done[i].order = i;
  p->ways = ways;
  memcpy(p->way, next, ways * sizeof *next);
  if (ways == 0) return false;
  if (p->dones < c->beams) return true;
  if (c->early_stopping == STACK_EARLY_YES) return false;
  const size_t length =
      c->early_stopping == STACK_EARLY_NEVER && c->length_penalty > 0 ? most : step + 1;
  return p->way[0].sum / pow((double)length, c->length_penalty) > p->done[c->beams - 1].score;
}

static bool is_sequence(const struct stack_sequence *q, const struct way *w) {
  return stack_sequence_count(q) == w->count && q->finish == w->finish && q->score == w->score &&
         !memcmp(q->token, w->token, w->count * sizeof *w->token) &&
         !memcmp(q->log_probability, w->log, w->count * sizeof *w->log);
}

/* Are the sequences of a text those of the plain search? Returns its steps. */
static size_t is_searched(const struct random_stack *s, const struct stack_run *r,
                          const struct stack_run *as, size_t text) {
  const struct stack_generation *g = r->generation;
  struct plain *p = calloc(1, sizeof *p);
  *p = (struct plain){.s = s, .r = as, .c = &g->choice, .text = text, .ways = 1};
  const struct stack_sequence *q = &g->sequence[text * g->each];
  size_t steps = 0;
  for (bool more = true; more; steps++) {
    more = plain_step(p, steps, q->most);
    assert_int_equal(g->search[text].count[steps], p->ways);
    for (size_t i = 0; i < p->ways; i++) {
      const struct stack_beam *b = &g->search[text].beam[steps * g->each + i];
      assert_true(b->sum == p->way[i].sum && b->token == p->way[i].token[steps]);
      assert_memory_equal(&b->log_probability, &p->way[i].log[steps], sizeof(float));
    }
  }
  assert_int_equal(g->search[text].steps, steps);
  for (size_t i = 0; i < g->each; i++) {
    if (i < p->dones ? !is_sequence(&q[i], &p->done[i]) : stack_sequence_count(&q[i]) > 0)
      fail_msg("way %zu of text %zu", i, text);
  }
  free(p);
  return steps;
}

/* --- searches --- */

static void searches_are_plain(uint64_t seed, size_t times, struct random_stack_kind kind,
                               size_t longest, size_t most) {
  size_t steps = 0;
  for (uint64_t round = 0; round < times; round++) {
    uint64_t state = seed + round;
    struct random_case c;
    const size_t tokens = 2 + random_below(&state, TOKENS_MOST - 1);
    random_case_decoder(&c, state, kind, tokens);
    const size_t texts = 1 + random_below(&c.state, 3);
    struct stack_run *as = random_search(&c.s, &c.state, 0, texts, longest, most, &c.a);
    struct stack_run *r = search_of(&c.s, as, 0, texts, &c.a);
    generate(&c.s, r, random_work(&c.state), &c.a);
    struct error e = {0};
    if (run_fault(&r->run, &e))
      assert_non_null(strstr(e.detail, "every token is banned"));
    else
      for (size_t i = 0; i < texts; i++) steps += is_searched(&c.s, r, as, i);
    random_case_done(&c);
  }
  assert_true(steps > 3 * times);
}

static void searches_are_those_written_plainly(void **unused) {
  (void)unused;
  searches_are_plain(100, rounds(200), some, 30, 12);
}

/* Across many blocks of keys. */
static void long_searches_share_blocks(void **unused) {
  (void)unused;
  searches_are_plain(5000, rounds(12), far, 200, 150);
}

/* More beams than there are ways at first: those that begin to be followed behind a block's last
 * row have that block, too. */
static void ways_may_begin_behind_a_block(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(40); round++) {
    struct random_case c;
    random_case_decoder(&c, 7000 + round, far, 2 + round % 2);
    struct stack_run *as = random_search(&c.s, &c.state, 33 + round % 32, 1, 63, 7, &c.a);
    while (as->geometry.item[0].q < 59)
      as = random_search(&c.s, &c.state, 33 + round % 32, 1, 63, 7, &c.a);
    as->generation->choice.banned_count = as->generation->choice.no_repeat_ngram = 0;
    as->generation->choice.ends = as->generation->choice.stops = 0;
    struct stack_run *r = search_of(&c.s, as, 0, 1, &c.a);
    generate(&c.s, r, random_work(&c.state), &c.a);
    is_searched(&c.s, r, as, 0);
    random_case_done(&c);
  }
}

/* The sequences of a text, and those of a run that has it alone. */
static void same_ways(const struct stack_run *x, size_t text, const struct stack_run *y) {
  const size_t each = x->generation->each;
  for (size_t i = 0; i < each; i++) same_sequence(x, text * each + i, y, i);
}

/* Texts together, alone, and merged with other searches. */
static void company_changes_no_bit(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < rounds(30); round++) {
    uint64_t state = 9000 + round;
    struct random_case c;
    const size_t tokens = 2 + random_below(&state, 30);
    random_case_decoder(&c, state, round % 4 ? some : far, tokens);
    struct stack_run *as = random_search(&c.s, &c.state, 0, 3, 30, round % 4 ? 20 : 100, &c.a);
    as->generation->choice.banned_count = as->generation->choice.no_repeat_ngram = 0;
    struct stack_run *together = search_of(&c.s, as, 0, 3, &c.a), *one[3];
    generate(&c.s, together, random_work(&c.state), &c.a);
    for (size_t i = 0; i < 3; i++) {
      struct stack_run *alone = search_of(&c.s, as, i, 1, &c.a);
      generate(&c.s, alone, random_work(&c.state), &c.a);
      same_ways(together, i, alone);
      one[i] = search_of(&c.s, as, i, 1, &c.a);
      prepare_run(&c.s, one[i], &c.a);
    }
    compute_rounds(&c.s, one, 3, random_work(&c.state));
    for (size_t i = 0; i < 3; i++) same_ways(together, i, one[i]);
    random_case_done(&c);
  }
}

static void computed_by(size_t workers, size_t seats) {
  enum { JOBS = 7 };
  struct random_case c;
  struct arena own[JOBS];
  struct stack_run *run[JOBS], *alone[JOBS];
  struct run *first[JOBS];
  random_case_decoder(&c, 1700 + workers, far, 30);
  for (size_t i = 0; i < JOBS; i++) {
    run[i] = random_search(&c.s, &c.state, 0, 1 + i % 3, i % 3 ? 10 : 100, 90, &c.a);
    run[i]->generation->choice.banned_count = run[i]->generation->choice.no_repeat_ngram = 0;
    alone[i] = search_of(&c.s, run[i], 0, 1, &c.a);
    generate(&c.s, alone[i], 1e12, &c.a);
    arena_init(&own[i], NULL);
    first[i] = prepare_chain(&c.s, run[i], &own[i]);
  }
  pooled_compute(workers, seats, chain_scratch_bytes(&c.s), first, JOBS);
  for (size_t i = 0; i < JOBS; i++) {
    same_ways(run[i], 0, alone[i]);
    arena_free(&own[i]);
  }
  random_case_done(&c);
}

static void workers_change_no_bit(void **unused) {
  (void)unused;
  for (size_t workers = 1; workers <= 4; workers *= 2) computed_by(workers, 0);
  computed_by(2, 2);
}

/* --- faults --- */

static void a_score_may_be_beyond_float32(void **unused) {
  (void)unused;
  static const double penalty[] = {-300, -1e4, 1e308};
  for (size_t i = 0; i < 3; i++) {
    struct random_case c;
    struct error e = {0};
    random_case_decoder(&c, 8000, some, 20);
    struct stack_run *r = random_search(&c.s, &c.state, 3, 1, 9, 9, &c.a);
    const struct stack_choice plain = {.top_p = 1,
                                       .repetition_penalty = 1,
                                       .forced_begin = -1,
                                       .forced_end = -1,
                                       .beams = 3,
                                       .length_penalty = penalty[i]};
    r->generation->choice = plain;
    for (size_t k = 0; k < 3; k++) r->generation->sequence[k].most = 9;
    generate(&c.s, r, 1e6, &c.a);
    const enum status status = run_fault(&r->run, &e);
    if (penalty[i] < 0)
      assert_non_null(
          strstr(e.detail, "the score of a sequence of item 0 exceeds the float32 range"));
    else /* they are 0 */
      assert_int_equal(status, STATUS_OK);
    random_case_done(&c);
  }
}

/* --- memory --- */

/* A text takes its memory once, and each way on a block and what it may become. */
static void a_text_is_kept_once(void **unused) {
  (void)unused;
  struct random_case c;
  random_case_decoder(&c, 8100, far, 20);
  struct stack_run *r = random_search(&c.s, &c.state, 16, 1, 350, 1, &c.a);
  while (r->geometry.item[0].q < 300) r = random_search(&c.s, &c.state, 16, 1, 350, 1, &c.a);
  r->source = random_source(&c.s, c.state, 1, &c.a);
  prepare_run(&c.s, r, &c.a);
  const struct layer_shape *h = &c.s.form.kind->self, *x = &c.s.form.cross;
  const size_t row = h->kv_heads * (h->key_head_size + h->value_head_size) * c.s.form.layers * 4;
  const size_t across = x->kv_heads * (x->key_head_size + x->value_head_size) * c.s.form.layers * 4;
  const size_t source = r->source ? r->source->geometry.q_rows * across : 0;
  const size_t rows = r->geometry.item[0].k; /* as many as will be kept, at most */
  assert_in_range(r->generation->kept_bytes, rows * row + source,
                  (rows + 16 * 3 * KERNEL_KEYS) * row + source);
  random_case_done(&c);
}

static void any_budget_may_be_too_small(void **unused) {
  (void)unused;
  for (uint64_t round = 0; round < 4; round++) {
    struct random_case c;
    random_case_decoder(&c, 700 + round, some, 20);
    struct stack_run *as = random_search(&c.s, &c.state, 0, 2, 20, 9, &c.a);
    as->generation->choice.banned_count = 0;
    struct arena a;
    struct short_memory m = {.arena = &a};
    while (short_memory_next(&m, 1001 + m.limit / 8)) {
      struct error e = {0};
      struct stack_run *r = search_of(&c.s, as, 0, 2, &c.a);
      prepare_source(&c.s, r, &c.a);
      const enum status status = stack_prepare(c.s.stack, r, &a, &e);
      if (!short_memory_is_enough(&m, status, &e)) continue;
      compute_rounds(&c.s, &r, 1, 1e6);
      for (size_t i = 0; !atomic_load(&r->run.fault) && i < 2; i++) is_searched(&c.s, r, as, i);
    }
    random_case_done(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(searches_are_those_written_plainly),
      cmocka_unit_test(long_searches_share_blocks),
      cmocka_unit_test(ways_may_begin_behind_a_block),
      cmocka_unit_test(company_changes_no_bit),
      cmocka_unit_test(workers_change_no_bit),
      cmocka_unit_test(a_score_may_be_beyond_float32),
      cmocka_unit_test(a_text_is_kept_once),
      cmocka_unit_test(any_budget_may_be_too_small),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
