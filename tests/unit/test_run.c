/* test_run: how a batch of runs is walked: every unit of every step once, in the order that the
 * program says, however it is cut; which fault is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/run/run.h"

enum { STEPS = 5, RUNS = 3, UNITS_MOST = 40, COLUMNS = 70, SEEN_MOST = 4096 };

/* A run of so many units in each step; a step of columns goes through them once for each part. */
struct counted_run {
  struct run run;
  size_t units[STEPS], passes[STEPS];
};

struct counted_step {
  struct step step;
  unsigned number;
  size_t part; /* columns at a time; 0: all */
};

static struct seen {
  unsigned step;
  const struct run *run;
  size_t pass, row, column;
} seen[SEEN_MOST];
static size_t seen_count;

static const struct counted_step *counted(const struct step *s) {
  return (const struct counted_step *)s;
}

static bool next_unit(const struct step *s, struct cursor *at, struct unit *u) {
  const struct counted_run *r = (const struct counted_run *)u->run;
  if (at->row >= r->units[counted(s)->number]) return false;
  u->row = at->row++;
  u->rows = 1;
  return true;
}

static double ten(const struct step *s, const struct unit *u) {
  (void)s, (void)u;
  return 10;
}

static size_t passes_of(const struct step *s, const struct run *r) {
  return ((const struct counted_run *)r)->passes[counted(s)->number];
}

static size_t share_of(const struct step *s, const struct run *first) {
  (void)first;
  return counted(s)->part;
}

static void see_units(const struct step *s, const struct span *span, void *scratch) {
  struct span left = *span;
  struct unit u;
  (void)scratch;
  while (run_next_unit(&left, &u)) {
    assert_int_equal(u.step, counted(s)->number);
    assert_true(seen_count < SEEN_MOST);
    seen[seen_count++] = (struct seen){u.step, u.run, span->from.pass, u.row, u.column};
  }
}

static enum status say_place(const struct step *s, const struct run *r, uint64_t place,
                             struct error *e) {
  (void)r;
  return error_set(e, STATUS_SYSTEM, "step %u place %llu", counted(s)->number,
                   (unsigned long long)place);
}

/* Steps 1 and 2 join step 0; step 3 has passes; step 4 shares out columns. */
static struct fixture {
  struct counted_step step[STEPS];
  const struct step *list[STEPS];
  struct program program;
  struct counted_run run[RUNS];
} f;

static int set_up(void **state) {
  static const size_t units[RUNS][STEPS] = {{3, 0, 5, 2, 4}, {0, 0, 0, 0, 0}, {7, 0, 1, 3, 2}};
  (void)state;
  memset(&f, 0, sizeof f);
  seen_count = 0;
  for (unsigned i = 0; i < STEPS; i++) {
    f.step[i] = (struct counted_step){.step = {.joins = i == 1 || i == 2,
                                               .unit = next_unit,
                                               .work = ten,
                                               .passes = i == 3 ? passes_of : NULL,
                                               .share = share_of,
                                               .columns = i == 4 ? COLUMNS : 0,
                                               .compute = see_units,
                                               .fault = say_place},
                                      .number = i,
                                      .part = i == 4 ? 30 : 0};
    f.list[i] = &f.step[i].step;
  }
  f.program = (struct program){.step = f.list, .steps = STEPS};
  for (size_t i = 0; i < RUNS; i++) {
    f.run[i].run.program = &f.program;
    memcpy(f.run[i].units, units[i], sizeof units[i]);
    if (i) f.run[i - 1].run.next = &f.run[i].run;
  }
  f.run[0].passes[3] = 2, f.run[2].passes[3] = 1;
  return 0;
}

/* What must be seen, in order. */
static void expect(size_t *at, unsigned step, size_t run, size_t pass, size_t row, size_t column) {
  assert_true(*at < seen_count);
  const struct seen *s = &seen[(*at)++];
  assert_int_equal(s->step, step);
  assert_ptr_equal(s->run, &f.run[run].run);
  assert_int_equal(s->pass, pass);
  assert_int_equal(s->row, row);
  assert_int_equal(s->column, column);
}

static void expect_all(void) {
  size_t at = 0;
  for (unsigned step = 0; step < 3; step++)
    for (size_t run = 0; run < RUNS; run++)
      for (size_t row = 0; row < f.run[run].units[step]; row++) expect(&at, step, run, 0, row, 0);
  for (size_t pass = 0; pass < 2; pass++)
    for (size_t run = 0; run < RUNS; run++)
      for (size_t row = 0; row < f.run[run].units[3]; row++) expect(&at, 3, run, pass, row, 0);
  for (size_t column = 0; column < COLUMNS; column += 30)
    for (size_t run = 0; run < RUNS; run++)
      for (size_t row = 0; row < f.run[run].units[4]; row++) expect(&at, 4, run, 0, row, column);
  assert_int_equal(at, seen_count);
}

static void every_unit_is_computed_once_however_it_is_cut(void **state) {
  for (double work = 1; work < 2000; work *= 3) {
    set_up(state);
    run_compute(&f.run[0].run, work, NULL);
    expect_all();
  }
}

/* Spans of joined steps are handed out without waiting for each other, each of one step. */
static void joined_steps_do_not_wait(void **state) {
  (void)state;
  struct span span;
  struct cursor at;
  run_begin(&at, &f.run[0].run);
  size_t units[STEPS] = {0};
  while (run_cut(&at, 25, &span)) units[span.from.step] += span.units;
  assert_int_equal(units[0], 10);
  assert_int_equal(units[2], 6);
  assert_int_equal(units[3], 0);
  run_next(&at);
  assert_int_equal(at.step, 3);
  assert_false(run_is_done(&at));
}

static void empty_runs_are_done_at_once(void **state) {
  (void)state;
  struct span span;
  f.run[1].run.next = NULL;
  size_t steps = 0;
  struct cursor at;
  run_begin(&at, &f.run[1].run);
  for (; !run_is_done(&at); run_next(&at), steps++) assert_false(run_cut(&at, 1, &span));
  assert_in_range(steps, 1, STEPS);
}

/* It is walked, so that spans agree, but not computed; and it counts as no work. */
static void what_is_cancelled_is_passed_over(void **state) {
  (void)state;
  struct span span;
  atomic_store(&f.run[0].run.cancelled, true);
  struct cursor at;
  run_begin(&at, &f.run[0].run);
  assert_true(run_cut(&at, 15, &span));
  assert_int_equal(span.units, 3 + 2);
  run_compute(&f.run[0].run, 15, NULL);
  for (size_t i = 0; i < seen_count; i++) assert_ptr_equal(seen[i].run, &f.run[2].run);
}

static void the_first_place_of_the_first_step_is_kept(void **state) {
  (void)state;
  static const struct {
    unsigned step;
    uint64_t place;
    const char *kept;
  } notes[] = {{3, 0, "step 3 place 0"}, {2, 7, "step 2 place 7"},
               {2, 9, "step 2 place 7"}, {2, 5, "step 2 place 5"},
               {4, 0, "step 2 place 5"}, {0, (uint64_t)1 << 47, "step 0 place 140737488355328"}};
  struct run *r = &f.run[0].run;
  struct error none = {0};
  assert_int_equal(run_fault(r, &none), STATUS_OK);
  for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
    struct error e = {0};
    run_record_fault(r, notes[i].step, notes[i].place);
    assert_int_equal(run_fault(r, &e), STATUS_SYSTEM);
    assert_string_equal(e.detail, notes[i].kept);
  }
}

static void a_fault_stops_later_steps_and_not_its_own(void **state) {
  (void)state;
  run_record_fault(&f.run[0].run, 2, 0);
  assert_false(run_is_over(&f.run[0].run, 0));
  assert_false(run_is_over(&f.run[0].run, 2));
  assert_true(run_is_over(&f.run[0].run, 3));
  run_compute(&f.run[0].run, 1e9, NULL);
  for (size_t i = 0; i < seen_count; i++)
    if (seen[i].run == &f.run[0].run) assert_in_range(seen[i].step, 0, 2);
  assert_int_equal(seen_count, 10 + 6 + 3 + 3 * 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(every_unit_is_computed_once_however_it_is_cut, set_up),
      cmocka_unit_test_setup(joined_steps_do_not_wait, set_up),
      cmocka_unit_test_setup(empty_runs_are_done_at_once, set_up),
      cmocka_unit_test_setup(what_is_cancelled_is_passed_over, set_up),
      cmocka_unit_test_setup(the_first_place_of_the_first_step_is_kept, set_up),
      cmocka_unit_test_setup(a_fault_stops_later_steps_and_not_its_own, set_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
