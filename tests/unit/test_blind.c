/* test_blind: a query that sees nothing may get the mean of all values: made once for each tile. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/attention/layer_parts.h"
#include "core/base/size.h"
#include "tests/support/random_call.h"

enum { HEADS = 2, SIZE = 64, ROWS = 300 };

/* Memory of which one page can be read at a time: going from one to another is counted. */
static struct {
  char *memory, *open; /* the page that can be read, or NULL */
  size_t bytes, page;
  volatile sig_atomic_t turns;
} watched;

static void turn_page(int number, siginfo_t *info, void *context) {
  (void)context;
  char *at = info->si_addr;
  if (at < watched.memory || at >= watched.memory + watched.bytes) {
    signal(number, SIG_DFL); /* not ours: it happens again, for good */
    return;
  }
  if (watched.open) mprotect(watched.open, watched.page, PROT_NONE);
  watched.open = watched.memory + (size_t)(at - watched.memory) / watched.page * watched.page;
  mprotect(watched.open, watched.page, PROT_READ);
  watched.turns++;
}

/* A copy of some numbers, watched from now on. */
static float *watch(const float *numbers, size_t count) {
  struct sigaction action = {.sa_sigaction = turn_page, .sa_flags = SA_SIGINFO};
  watched.page = (size_t)sysconf(_SC_PAGESIZE);
  watched.bytes = size_round_up(count * sizeof *numbers, watched.page);
  watched.memory =
      mmap(NULL, watched.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(watched.memory != MAP_FAILED);
  memcpy(watched.memory, numbers, count * sizeof *numbers);
  assert_int_equal(mprotect(watched.memory, watched.bytes, PROT_NONE), 0);
  assert_int_equal(sigaction(SIGSEGV, &action, NULL), 0);
  return (float *)watched.memory;
}

static void unwatch(void) {
  signal(SIGSEGV, SIG_DFL);
  munmap(watched.memory, watched.bytes);
}

static struct layer_run *blind_call(const struct random_layer *l, uint64_t *state,
                                    struct arena *a) {
  struct error e = {0};
  struct layer_run *c = plain_call(l, state, 1, ROWS, ROWS, WEIGHTS_NONE, a);
  int32_t *lens = arena_alloc(a, ROWS, sizeof *lens, &e);
  assert_non_null(lens);
  memset(lens, 0, ROWS * sizeof *lens);
  c->geometry.lens = lens;
  c->call.uniform_rows = true;
  assert_int_equal(layer_prepare(l->layer, c, a, &e), STATUS_OK);
  return c;
}

/* The steps before STEP_ATTEND; returns the beginning of it. */
static struct cursor run_until_attend(struct layer_run *c, void *scratch) {
  struct cursor step, at;
  struct span span;
  for (run_begin(&step, &c->run); step.step != STEP_ATTEND; run_next(&step)) {
    assert_true(run_has_units(&step));
    for (at = step; run_cut(&at, 1e12, &span);) run_span(&span, scratch);
  }
  return step;
}

static void the_mean_is_made_once_for_each_tile(void **unused) {
  (void)unused;
  uint64_t state = 3;
  struct random_layer l;
  struct arena arena;
  arena_init(&arena, NULL);
  plain_layer_init(&l, &state, HEADS, SIZE, GEMM_AUTO);
  void *scratch = aligned_alloc(64, size_round_up(layer_scratch_bytes(l.layer) + 64, 64));
  struct layer_run *c = blind_call(&l, &state, &arena);
  struct cursor at = run_until_attend(c, scratch);
  struct span span;
  struct unit unit;
  size_t tiles = 0;
  for (struct cursor walk = at; run_cut(&walk, 1e12, &span);)
    while (run_next_unit(&span, &unit)) tiles += unit.heads;
  assert_in_range(tiles, HEADS, HEADS * ROWS / 16);
  c->call.space->projected[ROLE_VALUE] =
      watch(c->call.space->projected[ROLE_VALUE], ROWS * HEADS * SIZE);
  const size_t pages = watched.bytes / watched.page;
  while (run_cut(&at, 1e12, &span)) run_span(&span, scratch);
  /* Each head's values lie in a part of the pages, and parts may share one. */
  assert_in_range(watched.turns, pages, tiles * (pages / HEADS + 1));
  unwatch();
  free(scratch);
  arena_free(&arena);
  random_layer_done(&l);
}

int main(void) {
  gemm_blas_init();
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_mean_is_made_once_for_each_tile)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
