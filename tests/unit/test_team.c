/* test_team: jobs and pieces that several threads share out: each is done once, the error is the
 * first one's, and large jobs have one turn. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "core/base/team.h"
#include "tests/support/patience.h"

enum { JOBS = 40, PIECES = 50, THREADS = 4 };

struct world {
  atomic_uint done[JOBS], piece[JOBS][PIECES];
  atomic_uint ticks, turns;
  atomic_bool crowded;           /* two jobs had the turn at once */
  size_t jobs_fail, pieces_fail; /* from this index on all fail */
  struct world_piece {
    struct world *w;
    size_t job;
  } of[JOBS];
};

static void count_tick(void *of) { atomic_fetch_add(&((struct world *)of)->ticks, 1); }

static enum status do_piece(void *of, size_t index, struct error *e) {
  const struct world_piece *p = of;
  atomic_fetch_add(&p->w->piece[p->job][index], 1);
  if (index >= p->w->pieces_fail) error_set(e, STATUS_CONFIG, "piece %zu", index);
  return e->status;
}

/* A job in three is large. */
static enum status do_job(void *of, size_t index, struct error *e) {
  struct world *w = of;
  const bool large = index % 3 == 0;
  w->of[index] = (struct world_piece){w, index};
  atomic_fetch_add(&w->done[index], 1);
  if (large) team_turn_begin();
  if (large && atomic_fetch_add(&w->turns, 1) != 0) atomic_store(&w->crowded, true);
  team_split(PIECES, do_piece, &w->of[index], e);
  if (large) atomic_fetch_sub(&w->turns, 1);
  if (large) team_turn_end();
  if (index >= w->jobs_fail) error_set(e, STATUS_CONFIG, "job %zu", index);
  return e->status;
}

static struct world *world_new(void) {
  struct world *w = calloc(1, sizeof *w);
  assert_non_null(w);
  w->jobs_fail = w->pieces_fail = SIZE_MAX;
  return w;
}

static enum status do_jobs(struct world *w, size_t threads, struct error *e) {
  struct team *t = team_new(threads, count_tick, w);
  assert_non_null(t);
  team_each(t, JOBS, do_job, w, e);
  team_free(t);
  assert_false(w->crowded);
  return e->status;
}

static void all_is_done_once(void **unused) {
  (void)unused;
  for (size_t threads = 1; threads <= THREADS; threads++) {
    struct world *w = world_new();
    struct error e = {0};
    assert_int_equal(do_jobs(w, threads, &e), STATUS_OK);
    for (size_t i = 0; i < JOBS; i++) {
      assert_int_equal(w->done[i], 1);
      for (size_t j = 0; j < PIECES; j++) assert_int_equal(w->piece[i][j], 1);
    }
    assert_int_equal(w->ticks, JOBS * (PIECES + 1));
    free(w);
  }
}

static void the_first_job_that_fails_is_told(void **unused) {
  (void)unused;
  for (size_t threads = 1; threads <= THREADS; threads++) {
    struct world *w = world_new();
    struct error e = {0};
    w->jobs_fail = 17;
    assert_int_equal(do_jobs(w, threads, &e), STATUS_CONFIG);
    assert_string_equal(e.detail, "job 17");
    for (size_t i = 0; i <= 17; i++) assert_int_equal(w->done[i], 1);
    if (threads == 1) assert_int_equal(w->done[18], 0);
    free(w);
  }
}

static void the_first_piece_that_fails_is_told(void **unused) {
  (void)unused;
  for (size_t threads = 1; threads <= THREADS; threads++) {
    struct world *w = world_new();
    struct error e = {0};
    w->pieces_fail = 23;
    assert_int_equal(do_jobs(w, threads, &e), STATUS_CONFIG);
    assert_string_equal(e.detail, "piece 23");
    assert_int_equal(w->done[0], 1);
    if (threads == 1) assert_int_equal(w->piece[0][24], 0);
    free(w);
  }
}

/* --- who does it --- */

/* Each who comes waits for another. */
struct meeting {
  pthread_mutex_t lock;
  pthread_cond_t came;
  unsigned here, wanted;
};

static enum status meet(void *of, size_t index, struct error *e) {
  struct meeting *m = of;
  struct timespec until;
  (void)index;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += (time_t)(PATIENCE_NS / 1000000000u);
  pthread_mutex_lock(&m->lock);
  m->here++;
  pthread_cond_broadcast(&m->came);
  while (m->here < m->wanted && !pthread_cond_timedwait(&m->came, &m->lock, &until)) continue;
  if (m->here < m->wanted) error_set(e, STATUS_SYSTEM, "none came");
  pthread_mutex_unlock(&m->lock);
  return e->status;
}

static void ignore_tick(void *of) { (void)of; }

static void meeting_of(struct meeting *m, unsigned wanted) {
  pthread_mutex_init(&m->lock, NULL);
  pthread_cond_init(&m->came, NULL);
  m->here = 0;
  m->wanted = wanted;
}

static void jobs_are_done_side_by_side(void **unused) {
  (void)unused;
  struct error e = {0};
  struct meeting m;
  struct team *t = team_new(THREADS, ignore_tick, NULL);
  meeting_of(&m, THREADS);
  assert_int_equal(team_each(t, THREADS, meet, &m, &e), STATUS_OK);
  team_free(t);
}

static enum status split_meeting(void *of, size_t index, struct error *e) {
  struct meeting *m = (struct meeting *)of + index;
  team_turn_begin();
  team_split(2, meet, m, e);
  team_turn_end();
  return e->status;
}

/* The other thread has a job, too, and waits for its own turn, or has none any more. */
static void pieces_are_done_side_by_side(void **unused) {
  (void)unused;
  struct error e = {0};
  struct meeting m[2];
  struct team *t = team_new(2, ignore_tick, NULL);
  meeting_of(&m[0], 2);
  meeting_of(&m[1], 2);
  assert_int_equal(team_each(t, 2, split_meeting, m, &e), STATUS_OK);
  team_free(t);
}

static void a_thread_without_a_team_does_all_alone(void **unused) {
  (void)unused;
  struct world *w = world_new();
  struct error e = {0};
  struct world_piece all = {w, 0};
  team_turn_begin();
  assert_int_equal(team_split(PIECES, do_piece, &all, &e), STATUS_OK);
  team_turn_end();
  for (size_t j = 0; j < PIECES; j++) assert_int_equal(w->piece[0][j], 1);
  assert_int_equal(w->ticks, 0);
  free(w);
  team_free(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_is_done_once),
      cmocka_unit_test(the_first_job_that_fails_is_told),
      cmocka_unit_test(the_first_piece_that_fails_is_told),
      cmocka_unit_test(jobs_are_done_side_by_side),
      cmocka_unit_test(pieces_are_done_side_by_side),
      cmocka_unit_test(a_thread_without_a_team_does_all_alone),
  };
  cmocka_set_message_output(CM_OUTPUT_TAP);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
