/* test_pool: the queue and its workers: every job is done once, with the bits it would have alone,
 * whatever else runs; full, late, abandoned and left by its client. */
#include <float.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/run/pool.h"
#include "tests/support/patience.h"
#include "tests/support/random_call.h"

enum { PIECES = 3 };

struct work {
  struct job job;
  struct layer_run *asked;
  struct layer_run *alone; /* the same call, computed by itself */
  struct arena arena;
  atomic_int done;
  int place;         /* among all that are done */
  pthread_t done_by; /* the thread */
  atomic_int written[PIECES];
  bool left;
};

static void write_piece(struct job *job, size_t piece) {
  atomic_fetch_add(&((struct work *)job)->written[piece], 1);
}

static bool has_left(struct job *job) { return ((struct work *)job)->left; }

static atomic_int ended;

static void count_done(struct job *job) {
  struct work *w = (struct work *)job;
  w->place = atomic_fetch_add(&ended, 1);
  w->done_by = pthread_self();
  atomic_fetch_add(&w->done, 1);
}

static struct pool *make_seated_pool(const struct layer *l, size_t workers, size_t seats,
                                     size_t max_queue, bool merge) {
  struct error e = {0};
  struct pool *p = pool_new(&(struct pool_options){.workers = workers,
                                                   .seats = seats,
                                                   .max_queue = max_queue,
                                                   .scratch_bytes = layer_scratch_bytes(l),
                                                   .merge = merge},
                            &e);
  assert_non_null(p);
  return p;
}

/* Without seats: whatever the size of a job, it takes the way through the queue. */
static struct pool *make_pool(const struct layer *l, size_t workers, size_t max_queue, bool merge) {
  return make_seated_pool(l, workers, 0, max_queue, merge);
}

static void work_init(struct work *w, struct layer_run *asked) {
  w->asked = asked;
  w->job = (struct job){.run = &asked->run,
                        .pieces = PIECES,
                        .write = write_piece,
                        .gone = has_left,
                        .done = count_done};
}

/* A job of a call that is in the work's arena, and the same call computed here. */
static void work_of(struct work *w, const struct random_layer *l, struct layer_run *alone) {
  struct error e = {0};
  w->alone = alone;
  work_init(w, call_again(w->alone, &w->arena));
  assert_int_equal(layer_prepare(l->layer, w->asked, &w->arena, &e), STATUS_OK);
  void *scratch = aligned_alloc(64, (layer_scratch_bytes(l->layer) + 64) / 64 * 64);
  run_compute(&w->alone->run, 1e12, scratch);
  free(scratch);
}

static void work_clear(struct work *w) {
  memset(w, 0, sizeof *w);
  arena_init(&w->arena, NULL);
}

static void work_random(struct work *w, const struct random_layer *l, uint64_t *state,
                        size_t most) {
  work_clear(w);
  work_of(w, l, random_call(l, state, most, &w->arena));
}

static void work_check(const struct work *w, const struct random_layer *l) {
  assert_int_equal(atomic_load(&w->done), 1);
  assert_int_equal(w->job.error.status, STATUS_OK);
  for (size_t i = 0; i < PIECES; i++)
    assert_int_equal(atomic_load(&w->written[i]), i < w->job.pieces ? 1 : 0);
  assert_memory_equal(w->asked->call.outputs, w->alone->call.outputs,
                      w->asked->geometry.q_rows * l->shape.output_size * sizeof(float));
  if (w->asked->call.weight_count)
    assert_memory_equal(w->asked->call.weights, w->alone->call.weights,
                        w->asked->call.weight_count * sizeof(float));
  assert_true(w->job.submitted <= w->job.started && w->job.started <= w->job.computed &&
              w->job.computed <= w->job.finished);
}

struct submitter {
  pthread_t thread;
  struct pool *pool;
  struct work *work;
  size_t first, step, count;
};

static void *submit_some(void *argument) {
  struct submitter *s = argument;
  for (size_t i = s->first; i < s->count; i += s->step) pool_submit(s->pool, &s->work[i].job);
  return NULL;
}

static void many_jobs_from_many_threads(size_t workers, size_t seats, bool merge) {
  enum { JOBS = 240, THREADS = 3, LAYERS = 2 };
  uint64_t state = 100 + workers;
  struct random_layer l[LAYERS];
  for (int i = 0; i < LAYERS; i++) random_layer_init(&l[i], &state, GEMM_AUTO);
  struct work *work = calloc(JOBS, sizeof *work);
  for (size_t i = 0; i < JOBS; i++) {
    work_random(&work[i], &l[i % LAYERS], &state, i % 20 == 0 ? 150 : 8);
    if (i % 3) work[i].job.pieces = 1;
  }
  const bool second = layer_scratch_bytes(l[1].layer) > layer_scratch_bytes(l[0].layer);
  struct pool *p = make_seated_pool(l[second].layer, workers, seats, JOBS, merge);
  struct submitter s[THREADS];
  for (size_t i = 0; i < THREADS; i++) {
    s[i] = (struct submitter){.pool = p, .work = work, .first = i, .step = THREADS, .count = JOBS};
    assert_int_equal(pthread_create(&s[i].thread, NULL, submit_some, &s[i]), 0);
  }
  for (size_t i = 0; i < THREADS; i++) pthread_join(s[i].thread, NULL);
  assert_true(pool_drain(p, clock_now() + PATIENCE_NS));
  assert_int_equal(pool_waiting(p), 0);
  assert_int_equal(pool_running(p), 0);
  pool_free(p);
  for (size_t i = 0; i < JOBS; i++) {
    work_check(&work[i], &l[i % LAYERS]);
    arena_free(&work[i].arena);
  }
  free(work);
  for (int i = 0; i < LAYERS; i++) random_layer_done(&l[i]);
}

static void every_job_is_done_once_with_its_bits(void **unused) {
  (void)unused;
  many_jobs_from_many_threads(1, 0, true);
  many_jobs_from_many_threads(2, 0, true);
  many_jobs_from_many_threads(5, 0, true);
}

static void the_same_without_merging(void **unused) {
  (void)unused;
  many_jobs_from_many_threads(3, 0, false);
}

static void the_same_with_seats_for_tiny_ones(void **unused) {
  (void)unused;
  many_jobs_from_many_threads(2, 1, true);
  many_jobs_from_many_threads(2, 3, true);
}

/* --- a worker held busy, so that others wait for certain --- */

struct gate {
  struct work work;
  pthread_mutex_t lock;
  pthread_cond_t cond;
  bool entered, open;
  struct pool *pool;
};

static void wait_at_gate(struct job *job, size_t piece) {
  struct gate *g = (struct gate *)job;
  pthread_mutex_lock(&g->lock);
  g->entered = true;
  pthread_cond_broadcast(&g->cond);
  while (!g->open) pthread_cond_wait(&g->cond, &g->lock);
  pthread_mutex_unlock(&g->lock);
  write_piece(job, piece);
}

struct held {
  struct random_layer layer;
  struct gate gate;
  struct pool *pool;
  uint64_t state;
};

static void held_init(struct held *h, size_t max_queue) {
  memset(h, 0, sizeof *h);
  h->state = 77;
  plain_layer_init(&h->layer, &h->state, 2, 8, GEMM_AUTO);
  pthread_mutex_init(&h->gate.lock, NULL);
  pthread_cond_init(&h->gate.cond, NULL);
  work_random(&h->gate.work, &h->layer, &h->state, 6);
  h->gate.work.job.write = wait_at_gate;
  h->gate.work.job.pieces = 1;
  h->pool = make_pool(h->layer.layer, 1, max_queue, true);
  pool_submit(h->pool, &h->gate.work.job);
  pthread_mutex_lock(&h->gate.lock);
  while (!h->gate.entered) pthread_cond_wait(&h->gate.cond, &h->gate.lock);
  pthread_mutex_unlock(&h->gate.lock);
}

static void held_open(struct held *h) {
  pthread_mutex_lock(&h->gate.lock);
  h->gate.open = true;
  pthread_cond_broadcast(&h->gate.cond);
  pthread_mutex_unlock(&h->gate.lock);
  assert_true(pool_drain(h->pool, clock_now() + PATIENCE_NS));
  assert_int_equal(atomic_load(&h->gate.work.done), 1);
}

static void held_done(struct held *h) {
  pool_free(h->pool);
  arena_free(&h->gate.work.arena);
  random_layer_done(&h->layer);
}

static void a_full_queue_ends_the_job_at_once(void **unused) {
  (void)unused;
  struct held h;
  struct work w[3];
  held_init(&h, 2);
  for (int i = 0; i < 3; i++) {
    work_random(&w[i], &h.layer, &h.state, 6);
    pool_submit(h.pool, &w[i].job);
  }
  assert_int_equal(pool_waiting(h.pool), 2);
  assert_int_equal(atomic_load(&w[2].done), 1);
  assert_int_equal(w[2].job.error.status, STATUS_QUEUE_FULL);
  held_open(&h);
  for (int i = 0; i < 2; i++) work_check(&w[i], &h.layer);
  held_done(&h);
  for (int i = 0; i < 3; i++) arena_free(&w[i].arena);
}

/* A job that ends in front of a full queue: what it then brings has a place, what comes has none.
 */
static struct follow {
  struct pool *pool;
  struct work *fills, *refused, *next;
} follow;

static void end_and_go_on(struct job *job) {
  count_done(job);
  pool_submit(follow.pool, &follow.fills->job);
  pool_submit(follow.pool, &follow.refused->job);
  pool_submit_next(follow.pool, &follow.next->job);
}

static void what_had_a_place_has_one_in_a_full_queue(void **unused) {
  (void)unused;
  struct held h;
  struct work w[4];
  held_init(&h, 1);
  for (int i = 0; i < 4; i++) work_random(&w[i], &h.layer, &h.state, 6);
  follow = (struct follow){h.pool, &w[1], &w[2], &w[3]};
  w[0].job.done = end_and_go_on;
  pool_submit(h.pool, &w[0].job);
  held_open(&h);
  assert_int_equal(w[2].job.error.status, STATUS_QUEUE_FULL);
  work_check(&w[1], &h.layer);
  work_check(&w[3], &h.layer);
  held_done(&h);
  for (int i = 0; i < 4; i++) arena_free(&w[i].arena);
}

static void who_left_or_is_late_is_not_computed(void **unused) {
  (void)unused;
  struct held h;
  struct work w[3];
  held_init(&h, 10);
  for (int i = 0; i < 3; i++) work_random(&w[i], &h.layer, &h.state, 6);
  w[0].left = true;
  w[1].job.deadline = clock_now();
  w[2].job.deadline = clock_now() + PATIENCE_NS;
  for (int i = 0; i < 3; i++) pool_submit(h.pool, &w[i].job);
  held_open(&h);
  assert_int_equal(w[0].job.error.status, STATUS_GONE);
  assert_int_equal(w[1].job.error.status, STATUS_DEADLINE);
  assert_int_equal(atomic_load(&w[0].done) + atomic_load(&w[1].done), 2);
  assert_true(w[0].job.started == 0 && w[1].job.started == 0);
  work_check(&w[2], &h.layer);
  held_done(&h);
  for (int i = 0; i < 3; i++) arena_free(&w[i].arena);
}

static void abandoning_ends_what_waits(void **unused) {
  (void)unused;
  struct held h;
  struct work w[2];
  held_init(&h, 10);
  for (int i = 0; i < 2; i++) {
    work_random(&w[i], &h.layer, &h.state, 6);
    pool_submit(h.pool, &w[i].job);
  }
  assert_false(pool_drain(h.pool, clock_now() + 20ull * CLOCK_MS));
  pool_abandon(h.pool);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(atomic_load(&w[i].done), 1);
    assert_int_equal(w[i].job.error.status, STATUS_DRAINING);
  }
  held_open(&h);
  assert_int_equal(h.gate.work.job.error.status, STATUS_OK);
  held_done(&h);
  for (int i = 0; i < 2; i++) arena_free(&w[i].arena);
}

/* --- a large job, and what ends it --- */

struct large {
  struct random_layer layer;
  struct work work;
  struct pool *pool;
};

enum { LARGE_ROWS = 9000, LARGE_HEADS = 4, UNTOUCHED = -7 };

/* As many queries and keys, seconds of work; which of the rows were computed, the pointers tell. */
static void large_init(struct large *g) {
  uint64_t state = 5;
  struct error e = {0};
  memset(g, 0, sizeof *g);
  plain_layer_init(&g->layer, &state, LARGE_HEADS, 64, GEMM_AUTO);
  arena_init(&g->work.arena, NULL);
  work_init(&g->work,
            plain_call(&g->layer, &state, 1, LARGE_ROWS, LARGE_ROWS, WEIGHTS_NONE, &g->work.arena));
  struct layer_run *c = g->work.asked;
  c->call.want_pointers = true;
  assert_int_equal(layer_prepare(g->layer.layer, c, &g->work.arena, &e), STATUS_OK);
  for (size_t i = 0; i < (size_t)LARGE_ROWS * LARGE_HEADS; i++) c->call.pointers[i] = UNTOUCHED;
  g->pool = make_pool(g->layer.layer, 2, 10, true);
}

static size_t large_computed(const struct large *g) {
  size_t computed = 0;
  for (size_t i = 0; i < (size_t)LARGE_ROWS * LARGE_HEADS; i++)
    computed += g->work.asked->call.pointers[i] != UNTOUCHED;
  return computed;
}

/* Stopped between tiles: long before all of them have been computed. */
static void is_stopped(bool abandon, enum status ends) {
  struct large g;
  large_init(&g);
  if (!abandon) g.work.job.deadline = clock_now() + 30ull * CLOCK_MS;
  pool_submit(g.pool, &g.work.job);
  if (abandon) {
    while (!pool_running(g.pool)) usleep(1000);
    usleep(30000);
    assert_int_equal(pool_running(g.pool), 1);
    pool_abandon(g.pool);
  }
  assert_true(pool_drain(g.pool, clock_now() + PATIENCE_NS));
  assert_int_equal(g.work.job.error.status, ends);
  assert_int_equal(atomic_load(&g.work.written[0]), 0);
  assert_true(large_computed(&g) < (size_t)LARGE_ROWS * LARGE_HEADS / 2);
  pool_free(g.pool);
  arena_free(&g.work.arena);
  random_layer_done(&g.layer);
}

static void a_deadline_stops_a_running_job(void **unused) {
  (void)unused;
  is_stopped(false, STATUS_DEADLINE);
}

static void abandoning_stops_a_running_job(void **unused) {
  (void)unused;
  is_stopped(true, STATUS_DRAINING);
}

/* A small job that is submitted behind three large waiting ones is done before any of them; a late
 * one ends with its error while the others still compute. */
static void small_jobs_pass_large_ones(void **unused) {
  (void)unused;
  struct held h;
  struct work large[3], small, late;
  held_init(&h, 10);
  for (int i = 0; i < 3; i++) {
    memset(&large[i], 0, sizeof large[i]);
    arena_init(&large[i].arena, NULL);
    work_init(&large[i],
              plain_call(&h.layer, &h.state, 1, 3000, 3000, WEIGHTS_NONE, &large[i].arena));
    pool_submit(h.pool, &large[i].job);
  }
  work_random(&small, &h.layer, &h.state, 6);
  pool_submit(h.pool, &small.job);
  memset(&late, 0, sizeof late);
  arena_init(&late.arena, NULL);
  work_init(&late, plain_call(&h.layer, &h.state, 1, 3000, 3000, WEIGHTS_NONE, &late.arena));
  late.job.deadline = clock_now() + 10ull * CLOCK_MS;
  pool_submit(h.pool, &late.job);
  held_open(&h);
  work_check(&small, &h.layer);
  for (int i = 0; i < 3; i++) {
    assert_true(small.place < large[i].place);
    assert_int_equal(large[i].job.error.status, STATUS_OK);
  }
  assert_int_equal(late.job.error.status, STATUS_DEADLINE);
  assert_true(late.place < large[2].place);
  held_done(&h);
  for (int i = 0; i < 3; i++) arena_free(&large[i].arena);
  arena_free(&small.arena);
  arena_free(&late.arena);
}

static void a_closed_pool_takes_nothing(void **unused) {
  (void)unused;
  struct held h;
  struct work w;
  held_init(&h, 10);
  held_open(&h);
  pool_abandon(h.pool);
  work_random(&w, &h.layer, &h.state, 6);
  pool_submit(h.pool, &w.job);
  assert_int_equal(atomic_load(&w.done), 1);
  assert_int_equal(w.job.error.status, STATUS_DRAINING);
  held_done(&h);
  arena_free(&w.arena);
}

static void a_job_without_pieces_or_items_is_done(void **unused) {
  (void)unused;
  uint64_t state = 6;
  struct random_layer l;
  struct work w;
  plain_layer_init(&l, &state, 1, 4, GEMM_AUTO);
  memset(&w, 0, sizeof w);
  arena_init(&w.arena, NULL);
  work_init(&w, plain_call(&l, &state, 0, 0, 0, WEIGHTS_NONE, &w.arena));
  w.job.pieces = 0;
  struct pool *p = make_pool(l.layer, 2, 10, true);
  pool_submit(p, &w.job);
  assert_true(pool_drain(p, clock_now() + PATIENCE_NS));
  assert_int_equal(w.job.error.status, STATUS_OK);
  pool_free(p);
  arena_free(&w.arena);
  random_layer_done(&l);
}

/* --- tiny jobs --- */

struct seated {
  struct random_layer layer;
  struct pool *pool;
  uint64_t state;
};

static void seated_init(struct seated *s, size_t seats) {
  s->state = 78;
  plain_layer_init(&s->layer, &s->state, 2, 8, GEMM_AUTO);
  s->pool = make_seated_pool(s->layer.layer, 1, seats, 10, true);
}

static void seated_done(struct seated *s) {
  assert_true(pool_drain(s->pool, clock_now() + PATIENCE_NS));
  pool_free(s->pool);
  random_layer_done(&s->layer);
}

static void work_tiny(struct work *w, struct seated *s) {
  work_random(w, &s->layer, &s->state, 6);
  w->job.pieces = 1;
}

static bool done_here(const struct work *w) {
  return atomic_load(&w->done) && pthread_equal(w->done_by, pthread_self());
}

static void a_tiny_job_is_done_where_it_is_submitted(void **unused) {
  (void)unused;
  struct seated s;
  struct work tiny, pieces, large;
  seated_init(&s, 100); /* more than there can be */
  work_tiny(&tiny, &s);
  pool_submit(s.pool, &tiny.job);
  assert_true(done_here(&tiny));
  work_check(&tiny, &s.layer);
  work_random(&pieces, &s.layer, &s.state, 6); /* an answer worth sharing out */
  work_clear(&large);
  work_of(&large, &s.layer,
          plain_call(&s.layer, &s.state, 1, 300, 300, WEIGHTS_NONE, &large.arena));
  large.job.pieces = 1;
  pool_submit(s.pool, &pieces.job);
  pool_submit(s.pool, &large.job);
  assert_true(pool_drain(s.pool, clock_now() + PATIENCE_NS));
  assert_false(done_here(&pieces));
  assert_false(done_here(&large));
  work_check(&pieces, &s.layer);
  work_check(&large, &s.layer);
  seated_done(&s);
  arena_free(&tiny.arena);
  arena_free(&pieces.arena);
  arena_free(&large.arena);
}

static void a_tiny_job_ends_like_any_other(void **unused) {
  (void)unused;
  struct seated s;
  struct work w[4];
  seated_init(&s, 1);
  for (int i = 0; i < 4; i++) work_tiny(&w[i], &s);
  w[0].left = true;
  w[1].job.deadline = clock_now();
  for (int i = 0; i < 3; i++) pool_submit(s.pool, &w[i].job);
  assert_int_equal(w[0].job.error.status, STATUS_GONE);
  assert_int_equal(w[1].job.error.status, STATUS_DEADLINE);
  assert_int_equal(atomic_load(&w[0].written[0]) + atomic_load(&w[1].written[0]), 0);
  work_check(&w[2], &s.layer);
  pool_abandon(s.pool);
  pool_submit(s.pool, &w[3].job);
  assert_int_equal(w[3].job.error.status, STATUS_DRAINING);
  for (int i = 0; i < 4; i++) {
    assert_true(done_here(&w[i]));
    assert_int_equal(atomic_load(&w[i].done), 1);
    arena_free(&w[i].arena);
  }
  seated_done(&s);
}

static void a_tiny_job_may_have_no_answer(void **unused) {
  (void)unused;
  struct seated s;
  struct work faulty, bare;
  seated_init(&s, 1);
  memset(&faulty, 0, sizeof faulty);
  arena_init(&faulty.arena, NULL);
  struct layer_run *c = plain_call(&s.layer, &s.state, 1, 3, 3, WEIGHTS_NONE, &faulty.arena);
  float *queries = (float *)c->call.queries;
  for (size_t i = 0; i < c->geometry.q_rows * s.layer.shape.query_size; i++) queries[i] = FLT_MAX;
  work_init(&faulty, c);
  faulty.job.pieces = 1;
  work_tiny(&bare, &s);
  bare.job.pieces = 0;
  pool_submit(s.pool, &faulty.job);
  pool_submit(s.pool, &bare.job);
  assert_true(done_here(&faulty) && done_here(&bare));
  assert_int_equal(faulty.job.error.status, STATUS_NOT_FINITE);
  assert_int_equal(atomic_load(&faulty.written[0]), 0);
  work_check(&bare, &s.layer);
  seated_done(&s);
  arena_free(&faulty.arena);
  arena_free(&bare.arena);
}

static void *submit_gate(void *argument) {
  struct gate *g = argument;
  pool_submit(g->pool, &g->work.job);
  return NULL;
}

static void without_a_free_seat_a_tiny_job_waits_like_any_other(void **unused) {
  (void)unused;
  struct seated s;
  struct gate g = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
  struct work w;
  pthread_t thread;
  seated_init(&s, 1);
  work_tiny(&g.work, &s);
  work_tiny(&w, &s);
  g.work.job.write = wait_at_gate;
  g.pool = s.pool;
  assert_int_equal(pthread_create(&thread, NULL, submit_gate, &g), 0);
  pthread_mutex_lock(&g.lock);
  while (!g.entered) pthread_cond_wait(&g.cond, &g.lock);
  pthread_mutex_unlock(&g.lock);
  assert_int_equal(pool_running(s.pool), 1);
  pool_submit(s.pool, &w.job);
  assert_true(pool_drain(s.pool, clock_now() + PATIENCE_NS));
  work_check(&w, &s.layer);
  assert_false(done_here(&w));
  pthread_mutex_lock(&g.lock);
  g.open = true;
  pthread_cond_broadcast(&g.cond);
  pthread_mutex_unlock(&g.lock);
  pthread_join(thread, NULL);
  work_check(&g.work, &s.layer);
  seated_done(&s);
  arena_free(&g.work.arena);
  arena_free(&w.arena);
}

/* --- layers that come later --- */

/* Each layer needs more scratch than the one before, which still computes when that is reserved. */
static void scratch_grows_while_jobs_run(size_t seats) {
  enum { LEVELS = 4, JOBS = 30 };
  static const size_t sizes[LEVELS] = {8, 32, 64, 512};
  uint64_t state = 31;
  struct random_layer l[LEVELS];
  struct submitter s[LEVELS];
  struct work *work = calloc(LEVELS * JOBS, sizeof *work);
  struct error e = {0};
  for (size_t i = 0; i < LEVELS; i++) {
    plain_layer_init(&l[i], &state, 2, sizes[i], GEMM_AUTO);
    assert_true(i == 0 || layer_scratch_bytes(l[i].layer) > layer_scratch_bytes(l[i - 1].layer));
    for (size_t j = 0; j < JOBS; j++) {
      work_random(&work[i * JOBS + j], &l[i], &state, 12);
      if (j % 3) work[i * JOBS + j].job.pieces = 1;
    }
  }
  struct pool *p = make_seated_pool(l[0].layer, 2, seats, LEVELS * JOBS, true);
  for (size_t i = 0; i < LEVELS; i++) {
    assert_int_equal(pool_reserve(p, layer_scratch_bytes(l[i].layer), &e), STATUS_OK);
    s[i] = (struct submitter){.pool = p, .work = work + i * JOBS, .step = 1, .count = JOBS};
    assert_int_equal(pthread_create(&s[i].thread, NULL, submit_some, &s[i]), 0);
  }
  for (size_t i = 0; i < LEVELS; i++) pthread_join(s[i].thread, NULL);
  assert_true(pool_drain(p, clock_now() + PATIENCE_NS));
  /* Nothing is given up for what needs less. */
  assert_int_equal(pool_reserve(p, 0, &e), STATUS_OK);
  pool_free(p);
  for (size_t i = 0; i < LEVELS * JOBS; i++) {
    work_check(&work[i], &l[i / JOBS]);
    arena_free(&work[i].arena);
  }
  free(work);
  for (size_t i = 0; i < LEVELS; i++) random_layer_done(&l[i]);
}

static void scratch_grows_under_load(void **unused) {
  (void)unused;
  scratch_grows_while_jobs_run(0);
  scratch_grows_while_jobs_run(4);
}

static void scratch_that_cannot_grow_stays(void **unused) {
  (void)unused;
  struct seated s;
  struct work tiny, queued;
  struct error e = {0};
  seated_init(&s, 1);
  work_tiny(&tiny, &s);
  work_random(&queued, &s.layer, &s.state, 6);
  assert_int_equal(pool_reserve(s.pool, SIZE_MAX / 4, &e), STATUS_OUT_OF_MEMORY);
  assert_non_null(strstr(e.detail, "scratch"));
  pool_submit(s.pool, &tiny.job);
  pool_submit(s.pool, &queued.job);
  assert_true(pool_drain(s.pool, clock_now() + PATIENCE_NS));
  work_check(&tiny, &s.layer);
  work_check(&queued, &s.layer);
  seated_done(&s);
  arena_free(&tiny.arena);
  arena_free(&queued.arena);
}

static void batches_are_counted_by_size(void **unused) {
  (void)unused;
  struct held h;
  struct work w[6];
  struct tally_sum sum;
  held_init(&h, 10);
  const size_t held_rows = h.gate.work.asked->geometry.q_rows;
  size_t rows = held_rows;
  for (int i = 0; i < 6; i++) {
    work_random(&w[i], &h.layer, &h.state, 6);
    w[i].left = i == 0; /* is in no batch */
    if (i) rows += w[i].asked->geometry.q_rows;
  }
  pool_batches(h.pool, &sum);
  assert_int_equal(sum.requests.number[0], 1); /* the one that is held */
  assert_int_equal(sum.requests.sum, 1);
  assert_int_equal(sum.rows.sum, held_rows);
  for (int i = 0; i < 6; i++) pool_submit(h.pool, &w[i].job);
  held_open(&h);
  pool_batches(h.pool, &sum);
  size_t batches = 0, of_rows = 0;
  for (size_t i = 0; i < TALLY_CLASSES; i++) {
    batches += sum.requests.number[i];
    of_rows += sum.rows.number[i];
  }
  assert_int_equal(batches, 2); /* what waited ran as one */
  assert_int_equal(of_rows, 2);
  assert_int_equal(sum.requests.number[0], 1);
  assert_int_equal(sum.requests.number[3], 1); /* 5 are over 4 and up to 8 */
  assert_int_equal(sum.requests.sum, 6);
  assert_int_equal(sum.rows.sum, rows);
  held_done(&h);
  for (int i = 0; i < 6; i++) arena_free(&w[i].arena);
}

static void a_tiny_job_counts_as_a_batch(void **unused) {
  (void)unused;
  struct work w;
  struct seated s;
  struct tally_sum sum;
  seated_init(&s, 2);
  for (size_t i = 0; i < 3; i++) {
    work_tiny(&w, &s);
    w.left = i == 2; /* is none */
    pool_submit(s.pool, &w.job);
    pool_batches(s.pool, &sum);
    assert_int_equal(sum.requests.number[0], i == 2 ? 2 : i + 1);
    assert_int_equal(sum.requests.sum, sum.requests.number[0]);
    arena_free(&w.arena);
  }
  seated_done(&s);
}

static void sizes_fall_into_their_classes(void **unused) {
  (void)unused;
  static const struct {
    size_t size, class;
  } cases[] = {{0, 0},
               {1, 0},
               {2, 1},
               {3, 2},
               {4, 2},
               {5, 3},
               {8, 3},
               {9, 4},
               {4096, 12},
               {4097, 13},
               {1 << 20, 20},
               {(1 << 20) + 1, 21},
               {SIZE_MAX / 2, 21}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct tally *t = tally_new(3);
    struct tally_sum sum;
    assert_non_null(t);
    tally_batch(&t[1], cases[i].size, 1);
    tally_batch(&t[2], 1, cases[i].size);
    tally_read(t, 3, &sum);
    assert_int_equal(sum.requests.number[cases[i].class], cases[i].class == 0 ? 2 : 1);
    assert_int_equal(sum.rows.number[cases[i].class], cases[i].class == 0 ? 2 : 1);
    assert_true(sum.requests.sum == cases[i].size + 1);
    assert_true(sum.rows.sum == cases[i].size + 1);
    tally_free(t);
  }
  assert_null(tally_new(SIZE_MAX / 2));
}

int main(void) {
  gemm_blas_init();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_job_is_done_once_with_its_bits),
      cmocka_unit_test(the_same_without_merging),
      cmocka_unit_test(the_same_with_seats_for_tiny_ones),
      cmocka_unit_test(a_full_queue_ends_the_job_at_once),
      cmocka_unit_test(what_had_a_place_has_one_in_a_full_queue),
      cmocka_unit_test(who_left_or_is_late_is_not_computed),
      cmocka_unit_test(abandoning_ends_what_waits),
      cmocka_unit_test(a_deadline_stops_a_running_job),
      cmocka_unit_test(abandoning_stops_a_running_job),
      cmocka_unit_test(small_jobs_pass_large_ones),
      cmocka_unit_test(a_closed_pool_takes_nothing),
      cmocka_unit_test(a_job_without_pieces_or_items_is_done),
      cmocka_unit_test(a_tiny_job_is_done_where_it_is_submitted),
      cmocka_unit_test(a_tiny_job_ends_like_any_other),
      cmocka_unit_test(a_tiny_job_may_have_no_answer),
      cmocka_unit_test(without_a_free_seat_a_tiny_job_waits_like_any_other),
      cmocka_unit_test(batches_are_counted_by_size),
      cmocka_unit_test(a_tiny_job_counts_as_a_batch),
      cmocka_unit_test(sizes_fall_into_their_classes),
      cmocka_unit_test(scratch_grows_under_load),
      cmocka_unit_test(scratch_that_cannot_grow_stays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
