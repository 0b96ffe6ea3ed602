/* test_pool_again: jobs that go again: every one goes through all its rounds, in any company,
 * beside newcomers and other programs, and ends once, however it ends. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "tests/support/counting.h"
#include "tests/support/number_draw.h"
#include "tests/support/patience.h"

struct work {
  struct counting_run run;
  atomic_int done, written;
  int place; /* among all that are done */
  pthread_t done_by;
  size_t leaves_at; /* the round in which its client leaves; SIZE_MAX: none */
};

static atomic_int ended;

static size_t draw_below(uint64_t *state, size_t n) { return draw(state) % n; }

static struct work *work_of(struct job *job) { return (struct work *)counting_of(job); }

static void write_piece(struct job *job, size_t piece) {
  (void)piece;
  atomic_fetch_add(&work_of(job)->written, 1);
}

static bool has_left(struct job *job) {
  const struct work *w = work_of(job);
  return w->run.round >= w->leaves_at;
}

static void count_done(struct job *job) {
  struct work *w = work_of(job);
  w->place = atomic_fetch_add(&ended, 1);
  w->done_by = pthread_self();
  atomic_fetch_add(&w->done, 1);
}

static void work_init(struct work *w, struct counting *c, size_t units, size_t rounds) {
  memset(w, 0, sizeof *w);
  counting_run_init(&w->run, c, units, rounds);
  w->run.run.whole = 1e9;
  w->leaves_at = SIZE_MAX;
  w->run.job.write = write_piece;
  w->run.job.gone = has_left;
  w->run.job.done = count_done;
}

static void work_check(const struct work *w) {
  const struct job *job = &w->run.job;
  assert_int_equal(atomic_load(&w->done), 1);
  assert_int_equal(job->error.status, STATUS_OK);
  assert_int_equal(atomic_load(&w->written), job->pieces);
  assert_int_equal(w->run.asked, w->run.run.program->next_round ? w->run.rounds : 0);
  assert_true(counting_is_right(&w->run));
  assert_true(job->submitted <= job->started && job->started <= job->computed &&
              job->computed <= job->finished);
}

static struct pool *make_pool(size_t workers, size_t seats, size_t max_queue, bool merge) {
  struct error e = {0};
  struct pool *p = pool_new(&(struct pool_options){.workers = workers,
                                                   .seats = seats,
                                                   .max_queue = max_queue,
                                                   .merge = merge,
                                                   .byte_work = 4},
                            &e);
  assert_non_null(p);
  return p;
}

static void drain(struct pool *p) { assert_true(pool_drain(p, clock_now() + PATIENCE_NS)); }

static void drain_and_free(struct pool *p) {
  drain(p);
  assert_int_equal(pool_waiting(p), 0);
  assert_int_equal(pool_running(p), 0);
  pool_free(p);
}

static uint64_t batches_of(const struct pool *p, size_t least_class) {
  struct tally_sum sum;
  uint64_t number = 0;
  pool_batches(p, &sum);
  for (size_t i = least_class; i < TALLY_CLASSES; i++) number += sum.requests.number[i];
  return number;
}

/* --- many jobs of all kinds --- */

enum { STEPS = 4, UNITS = 6, PROGRAMS = 3, JOBS = 150, THREADS = 3 };

struct submitter {
  pthread_t thread;
  struct pool *pool;
  struct work *work;
  size_t first;
};

static void *submit_some(void *argument) {
  struct submitter *s = argument;
  for (size_t i = s->first; i < JOBS; i += THREADS) {
    if (i % 7 == 0) usleep(1000);
    pool_submit(s->pool, &s->work[i].run.job);
  }
  return NULL;
}

/* The last program does not go again. */
static void work_random(struct work *w, struct counting *programs, uint64_t *state) {
  const size_t program = draw_below(state, PROGRAMS), of = draw_below(state, 20);
  size_t rounds = 1 + draw_below(state, of == 0 ? 2000 : of < 10 ? 100 : 5);
  if (program + 1 == PROGRAMS) rounds = 1;
  work_init(w, &programs[program], 1 + draw_below(state, UNITS), rounds);
  w->run.job.pieces = draw_below(state, 4);
  w->run.seed = draw_below(state, 2) ? 0 : 1 + draw_below(state, 1000);
  w->run.run.rows = 1 + draw_below(state, 100);
  if (draw_below(state, 4) == 0) w->run.run.work = 7e8 * (double)draw_below(state, 2);
  if (draw_below(state, 3) == 0) w->run.run.whole = w->run.run.work;
  switch (draw_below(state, 12)) {
  case 0:
    w->run.fault_at = draw_below(state, rounds);
    break;
  case 1:
    w->leaves_at = draw_below(state, rounds);
    break;
  case 2:
    w->run.job.deadline = clock_now() + draw_below(state, 20) * CLOCK_MS;
    break;
  default:
    break;
  }
}

static void work_check_end(const struct work *w) {
  const enum status status = w->run.job.error.status;
  assert_int_equal(atomic_load(&w->done), 1);
  if (status == STATUS_OK) {
    work_check(w);
    assert_true(w->run.fault_at == SIZE_MAX);
    return;
  }
  assert_int_equal(atomic_load(&w->written), 0);
  assert_true(w->run.asked < w->run.rounds || status != STATUS_SYSTEM);
  if (status == STATUS_SYSTEM) assert_int_equal(w->run.round, w->run.fault_at);
  assert_true(status == STATUS_SYSTEM || (status == STATUS_GONE && w->leaves_at != SIZE_MAX) ||
              (status == STATUS_DEADLINE && w->run.job.deadline));
}

static void many_jobs(size_t workers, size_t seats, bool merge) {
  uint64_t state = 40 + workers + seats;
  struct counting programs[PROGRAMS];
  for (size_t i = 0; i < PROGRAMS; i++) counting_init(&programs[i], STEPS, i + 1 < PROGRAMS);
  struct work *work = calloc(JOBS, sizeof *work);
  for (size_t i = 0; i < JOBS; i++) work_random(&work[i], programs, &state);
  struct pool *p = make_pool(workers, seats, JOBS, merge);
  struct submitter s[THREADS];
  for (size_t i = 0; i < THREADS; i++) {
    s[i] = (struct submitter){.pool = p, .work = work, .first = i};
    assert_int_equal(pthread_create(&s[i].thread, NULL, submit_some, &s[i]), 0);
  }
  for (size_t i = 0; i < THREADS; i++) pthread_join(s[i].thread, NULL);
  drain_and_free(p);
  for (size_t i = 0; i < JOBS; i++) work_check_end(&work[i]);
  free(work);
}

static void every_job_goes_through_its_rounds(void **unused) {
  (void)unused;
  many_jobs(1, 0, true);
  many_jobs(2, 0, true);
  many_jobs(5, 0, true);
}

static void the_same_without_merging(void **unused) {
  (void)unused;
  many_jobs(1, 0, false);
  many_jobs(3, 0, false);
}

static void the_same_with_seats(void **unused) {
  (void)unused;
  many_jobs(2, 2, true);
}

/* --- a round that is held, so that others wait for certain --- */

static struct {
  pthread_mutex_t lock;
  pthread_cond_t cond;
  bool entered, open;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

static void wait_at_gate(struct counting_run *r) {
  (void)r;
  pthread_mutex_lock(&gate.lock);
  gate.entered = true;
  pthread_cond_broadcast(&gate.cond);
  while (!gate.open) pthread_cond_wait(&gate.cond, &gate.lock);
  pthread_mutex_unlock(&gate.lock);
}

static void submit_held(struct pool *p, struct work *w) {
  gate.entered = gate.open = false;
  w->run.at_unit = wait_at_gate;
  pool_submit(p, &w->run.job);
  pthread_mutex_lock(&gate.lock);
  while (!gate.entered) pthread_cond_wait(&gate.cond, &gate.lock);
  pthread_mutex_unlock(&gate.lock);
}

static void open_gate(void) {
  pthread_mutex_lock(&gate.lock);
  gate.open = true;
  pthread_cond_broadcast(&gate.cond);
  pthread_mutex_unlock(&gate.lock);
}

/* Newcomers join the job that goes on in its next round, and stay with it. */
static void newcomers_join(size_t workers, double work, size_t bytes) {
  enum { ROUNDS = 200, NEW = 7 };
  struct counting c;
  struct work w[1 + NEW];
  counting_init(&c, STEPS, true);
  c.program.bytes = bytes;
  struct pool *p = make_pool(workers, 0, 10, true);
  work_init(&w[0], &c, 3, ROUNDS);
  w[0].run.run.work = work;
  submit_held(p, &w[0]);
  for (size_t i = 1; i <= NEW; i++) {
    work_init(&w[i], &c, i % UNITS + 1, ROUNDS - 1);
    w[i].run.run.work = work;
    pool_submit(p, &w[i].run.job);
  }
  assert_int_equal(pool_waiting(p), NEW);
  assert_int_equal(pool_running(p), 1);
  open_gate();
  drain(p);
  assert_int_equal(batches_of(p, 0), ROUNDS);
  assert_int_equal(batches_of(p, 3), ROUNDS - 1); /* of more than four */
  drain_and_free(p);
  for (size_t i = 0; i <= NEW; i++) work_check(&w[i]);
  assert_true(w[0].run.job.started <= w[1].run.job.submitted);
}

static void newcomers_join_those_that_go_on(void **unused) {
  (void)unused;
  newcomers_join(1, 1e6, 0);
  newcomers_join(3, 1e6, 0);
  newcomers_join(2, 4e8, 80 << 20); /* reading the matrices costs a tenth of them all */
}

/* As many as fill a batch go on together, and newcomers are not computed before these end; but a
 * job of another program is. */
static void newcomers_wait_for_room(void **unused) {
  (void)unused;
  enum { ROUNDS = 50, FULL = 4, ALL = 3 * FULL };
  struct counting c, others;
  struct work first, other, w[ALL];
  counting_init(&c, STEPS, true);
  counting_init(&others, STEPS, false);
  struct pool *p = make_pool(1, 0, 100, true);
  work_init(&first, &c, 1, 1);
  submit_held(p, &first);
  for (size_t i = 0; i < ALL; i++) {
    work_init(&w[i], &c, 2, ROUNDS);
    w[i].run.run.work = 1.5e8;
    w[i].run.run.whole = ROUNDS * 1.5e8;
    w[i].run.run.rows = 64;
    pool_submit(p, &w[i].run.job);
  }
  work_init(&other, &others, 2, 1);
  other.run.run.work = 1e6;
  pool_submit(p, &other.run.job);
  open_gate();
  drain(p);
  assert_int_equal(batches_of(p, 0), 2 + 3 * ROUNDS);
  drain_and_free(p);
  work_check(&other);
  for (size_t i = 0; i < ALL; i++) {
    work_check(&w[i]);
    assert_true(other.place < w[i].place);
    if (i >= FULL) assert_true(w[i].run.job.started >= w[i - FULL].run.job.computed);
  }
}

/* A newcomer that is too large to fit beside a job that goes on and on is computed all the same. */
static void a_newcomer_does_not_wait_for_ever(bool merge) {
  struct counting c;
  struct work w[2];
  counting_init(&c, STEPS, true);
  struct pool *p = make_pool(1, 0, 10, merge);
  for (size_t i = 0; i < 2; i++) {
    work_init(&w[i], &c, 2, i ? 1 : 300);
    w[i].run.run.work = i ? 5e8 : 3e8;
    w[i].run.run.whole = i ? 5e8 : 300 * 3e8;
  }
  submit_held(p, &w[0]);
  pool_submit(p, &w[1].run.job);
  open_gate();
  drain_and_free(p);
  for (size_t i = 0; i < 2; i++) work_check(&w[i]);
  assert_true(w[1].place < w[0].place);
}

static void no_newcomer_waits_for_ever(void **unused) {
  (void)unused;
  a_newcomer_does_not_wait_for_ever(true);
  a_newcomer_does_not_wait_for_ever(false);
}

/* --- as many workers as units --- */

enum { TOGETHER = 3 };

static struct {
  atomic_size_t begun;
  atomic_bool alone;
} meeting;

/* Waits until all units of the step have been begun. */
static void meet(struct counting_run *r) {
  const size_t all = (atomic_fetch_add(&meeting.begun, 1) / TOGETHER + 1) * TOGETHER;
  const uint64_t until = clock_now() + PATIENCE_NS;
  (void)r;
  while (atomic_load(&meeting.begun) < all && !atomic_load(&meeting.alone)) {
    if (clock_now() > until) atomic_store(&meeting.alone, true);
    usleep(20);
  }
}

/* Each worker computes a unit of each step, in all rounds. */
static void one_job_has_all_workers(void **unused) {
  (void)unused;
  struct counting c;
  struct work w;
  counting_init(&c, STEPS, true);
  struct pool *p = make_pool(TOGETHER, 0, 10, true);
  atomic_store(&meeting.begun, 0);
  atomic_store(&meeting.alone, false);
  work_init(&w, &c, TOGETHER, 50);
  w.run.run.work = 1e7 * STEPS * TOGETHER; /* a unit is a span */
  w.run.at_unit = meet;
  pool_submit(p, &w.run.job);
  drain_and_free(p);
  work_check(&w);
  assert_false(atomic_load(&meeting.alone));
}

/* --- turns --- */

enum { GROUP = 6 };

static struct {
  struct work work[GROUP];
  size_t most_ahead; /* rounds that one of them was ever ahead of another */
} group;

/* On the only worker, so that no other thread moves the runs meanwhile. */
static void look_around(struct counting_run *r) {
  for (size_t i = 0; i < GROUP; i++)
    if (group.work[i].run.round + group.most_ahead < r->round)
      group.most_ahead = r->round - group.work[i].run.round;
}

/* They begin together, and then two of them are a batch. */
static void those_that_do_not_fit_take_turns(void **unused) {
  (void)unused;
  enum { ROUNDS = 40 };
  struct counting c;
  struct work first;
  counting_init(&c, STEPS, true);
  struct pool *p = make_pool(1, 0, 100, true);
  group.most_ahead = 0;
  work_init(&first, &c, 1, 1);
  submit_held(p, &first);
  for (size_t i = 0; i < GROUP; i++) {
    work_init(&group.work[i], &c, 1, ROUNDS);
    group.work[i].run.run.rows = 32;
    group.work[i].run.later = 4e8;
    group.work[i].run.at_unit = look_around;
    pool_submit(p, &group.work[i].run.job);
  }
  open_gate();
  drain(p);
  assert_int_equal(batches_of(p, 0), 1 + 1 + GROUP / 2 * (ROUNDS - 1));
  drain_and_free(p);
  for (size_t i = 0; i < GROUP; i++) work_check(&group.work[i]);
  assert_true(group.most_ahead <= 1);
}

/* A job of thousands of rounds does not keep a large one of another program waiting that has less
 * left. */
static void a_long_job_lets_others_pass(void **unused) {
  (void)unused;
  enum { LONG = 3, LARGE = 3 };
  struct counting c[2];
  struct work longs[LONG], large[LARGE];
  for (int i = 0; i < 2; i++) counting_init(&c[i], STEPS, i == 0);
  struct pool *p = make_pool(1, 0, 100, true);
  for (size_t i = 0; i < LONG; i++) {
    work_init(&longs[i], &c[0], 1, 6000);
    longs[i].run.run.whole = 6e9;
  }
  submit_held(p, &longs[0]);
  for (size_t i = 1; i < LONG; i++) pool_submit(p, &longs[i].run.job);
  for (size_t i = 0; i < LARGE; i++) {
    work_init(&large[i], &c[1], 1, 1);
    large[i].run.run.work = 1e9;
    pool_submit(p, &large[i].run.job);
  }
  open_gate();
  drain_and_free(p);
  for (size_t i = 0; i < LONG; i++) {
    for (size_t j = 0; j < LARGE; j++) assert_true(large[j].place < longs[i].place);
    work_check(&longs[i]);
  }
}

/* What is left of a job counts: others of more work than one of its rounds go before it. */
static void the_least_left_goes_first(void **unused) {
  (void)unused;
  enum { OTHERS = 30, ROUNDS = 1000 };
  struct counting c[2];
  struct work w, other[OTHERS];
  for (int i = 0; i < 2; i++) counting_init(&c[i], STEPS, i == 0);
  struct pool *p = make_pool(1, 0, 100, true);
  work_init(&w, &c[0], 1, ROUNDS);
  w.run.run.work = 1e8;
  w.run.run.whole = 1e8 * ROUNDS;
  submit_held(p, &w);
  for (size_t i = 0; i < OTHERS; i++) {
    work_init(&other[i], &c[1], 1, 1);
    other[i].run.run.work = 7e8;
    pool_submit(p, &other[i].run.job);
  }
  open_gate();
  drain_and_free(p);
  work_check(&w);
  for (size_t i = 0; i < OTHERS; i++) assert_true(other[i].place < w.place);
}

static struct {
  struct work work;
  struct pool *pool;
  atomic_int left; /* how often it is still to come */
} stream;

static void come_back(struct job *job) {
  if (atomic_fetch_sub(&stream.left, 1) <= 1) {
    count_done(job);
    return;
  }
  stream.work.run.asked = stream.work.run.round = 0;
  pool_submit(stream.pool, job);
}

/* Nor is it kept waiting by newcomers of another program, of which there is always one. */
static void a_long_job_is_not_kept_waiting(void **unused) {
  (void)unused;
  struct counting c[2];
  struct work w;
  for (int i = 0; i < 2; i++) counting_init(&c[i], STEPS, true);
  struct pool *p = make_pool(1, 0, 100, true);
  work_init(&w, &c[0], 1, 300);
  submit_held(p, &w);
  work_init(&stream.work, &c[1], 1, 1);
  stream.work.run.job.done = come_back;
  stream.pool = p;
  atomic_store(&stream.left, 3000);
  pool_submit(p, &stream.work.run.job);
  open_gate();
  drain_and_free(p);
  work_check(&w);
  assert_true(w.place < stream.work.place);
}

/* --- how it may end before its last round --- */

enum { FOR_EVER = 1000000000 };

static void wait_for_rounds(struct pool *p, uint64_t batches) {
  const uint64_t until = clock_now() + PATIENCE_NS;
  while (batches_of(p, 0) < batches && clock_now() < until) usleep(200);
}

/* Three jobs that would go on for ever; another one ends as it should meanwhile. */
static void ends(size_t workers, size_t units, enum status how) {
  struct counting c;
  struct work w[3], other;
  counting_init(&c, STEPS, true);
  struct pool *p = make_pool(workers, 0, 100, true);
  for (size_t i = 0; i < 3; i++) {
    work_init(&w[i], &c, units, FOR_EVER);
    if (how == STATUS_DEADLINE) w[i].run.job.deadline = clock_now() + (5 + i) * CLOCK_MS;
    if (how == STATUS_GONE) w[i].leaves_at = 10 + i;
    if (how == STATUS_SYSTEM) w[i].run.fault_at = 10 + i;
    pool_submit(p, &w[i].run.job);
  }
  work_init(&other, &c, units, 30);
  pool_submit(p, &other.run.job);
  if (how == STATUS_DRAINING) {
    wait_for_rounds(p, 100);
    assert_false(pool_drain(p, clock_now() + 2ull * CLOCK_MS));
    pool_abandon(p);
    atomic_store(&c.closed, true);
  }
  drain_and_free(p);
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(atomic_load(&w[i].done), 1);
    assert_int_equal(w[i].run.job.error.status, how);
    assert_int_equal(w[i].run.asked, w[i].run.round);
    if (how == STATUS_SYSTEM) assert_int_equal(w[i].run.round, 10 + i);
    if (how == STATUS_GONE) assert_true(w[i].run.round >= 10 + i);
  }
  if (how != STATUS_DRAINING) work_check(&other);
  assert_int_equal(atomic_load(&c.asked_too_late), 0);
}

static void it_ends(enum status how) {
  ends(1, 1, how);
  ends(2, 5, how);
  ends(3, 3, how);
}

static void it_ends_with_its_deadline(void **unused) {
  (void)unused;
  it_ends(STATUS_DEADLINE);
}

static void it_ends_when_its_client_leaves(void **unused) {
  (void)unused;
  it_ends(STATUS_GONE);
}

static void it_ends_with_its_fault(void **unused) {
  (void)unused;
  it_ends(STATUS_SYSTEM);
}

static void it_ends_with_the_pool(void **unused) {
  (void)unused;
  it_ends(STATUS_DRAINING);
}

static void cancel_itself(struct counting_run *r) {
  if (r->round == 5) atomic_store(&r->run.cancelled, true);
}

static void a_cancelled_run_has_no_more_rounds(void **unused) {
  (void)unused;
  struct counting c;
  struct work w;
  counting_init(&c, STEPS, true);
  struct pool *p = make_pool(1, 0, 10, true);
  work_init(&w, &c, 2, FOR_EVER);
  w.run.at_unit = cancel_itself;
  pool_submit(p, &w.run.job);
  drain_and_free(p);
  assert_int_equal(w.run.asked, 5);
}

static struct pool *to_be_closed;

static bool closes_the_pool(struct job *job) {
  (void)job;
  pool_abandon(to_be_closed);
  return false;
}

/* Its client is asked for while its batch is being formed, without the lock. */
static void the_pool_may_close_while_a_batch_is_formed(void **unused) {
  (void)unused;
  struct counting c;
  struct work w;
  counting_init(&c, STEPS, true);
  struct pool *p = to_be_closed = make_pool(1, 0, 10, true);
  work_init(&w, &c, 2, 1);
  w.run.job.gone = closes_the_pool;
  pool_submit(p, &w.run.job);
  drain_and_free(p);
  assert_int_equal(atomic_load(&w.done), 1);
  assert_int_equal(w.run.job.error.status, STATUS_DRAINING);
  assert_int_equal(w.run.asked, 0);
}

/* --- places and seats --- */

/* It takes no place in the queue, which may be full. */
static void it_needs_no_place(void **unused) {
  (void)unused;
  struct counting c;
  struct work w[3];
  counting_init(&c, STEPS, true);
  struct pool *p = make_pool(2, 0, 1, true);
  for (size_t i = 0; i < 3; i++) work_init(&w[i], &c, 2, 100);
  submit_held(p, &w[0]);
  assert_int_equal(pool_room(p), 1);
  pool_submit(p, &w[1].run.job);
  assert_int_equal(pool_room(p), 0);
  pool_submit(p, &w[2].run.job);
  assert_int_equal(w[2].run.job.error.status, STATUS_QUEUE_FULL);
  open_gate();
  drain(p);
  assert_int_equal(pool_room(p), 1);
  drain_and_free(p);
  for (size_t i = 0; i < 2; i++) work_check(&w[i]);
}

/* A run is tiny by all of its work, and then has all its rounds where it is submitted. */
static void a_tiny_one_has_all_its_rounds_at_once(void **unused) {
  (void)unused;
  struct counting c;
  struct work tiny, whole;
  counting_init(&c, STEPS, true);
  struct pool *p = make_pool(1, 1, 10, true);
  work_init(&tiny, &c, 3, 50);
  work_init(&whole, &c, 3, 50);
  tiny.run.run.work = whole.run.run.work = 1e4;
  tiny.run.run.whole = 5e5;
  whole.run.run.whole = 5e6;
  tiny.run.job.pieces = whole.run.job.pieces = 1;
  pool_submit(p, &tiny.run.job);
  assert_true(pthread_equal(tiny.done_by, pthread_self()));
  assert_int_equal(batches_of(p, 0), 50);
  pool_submit(p, &whole.run.job);
  drain_and_free(p);
  assert_false(pthread_equal(whole.done_by, pthread_self()));
  work_check(&tiny);
  work_check(&whole);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_job_goes_through_its_rounds),
      cmocka_unit_test(the_same_without_merging),
      cmocka_unit_test(the_same_with_seats),
      cmocka_unit_test(newcomers_join_those_that_go_on),
      cmocka_unit_test(newcomers_wait_for_room),
      cmocka_unit_test(no_newcomer_waits_for_ever),
      cmocka_unit_test(one_job_has_all_workers),
      cmocka_unit_test(those_that_do_not_fit_take_turns),
      cmocka_unit_test(a_long_job_lets_others_pass),
      cmocka_unit_test(the_least_left_goes_first),
      cmocka_unit_test(a_long_job_is_not_kept_waiting),
      cmocka_unit_test(it_ends_with_its_deadline),
      cmocka_unit_test(it_ends_when_its_client_leaves),
      cmocka_unit_test(it_ends_with_its_fault),
      cmocka_unit_test(it_ends_with_the_pool),
      cmocka_unit_test(the_pool_may_close_while_a_batch_is_formed),
      cmocka_unit_test(a_cancelled_run_has_no_more_rounds),
      cmocka_unit_test(it_needs_no_place),
      cmocka_unit_test(a_tiny_one_has_all_its_rounds_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
