/* bench_pool: one large job with 1, 2, 4, ... workers up to the CPU quota, against one worker in
 * the same run; many small jobs, merged or one by one; and how busy workers are that only wait, in
 * rounds of short steps: what the pool itself costs. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "core/base/clock.h"
#include "core/base/cpu.h"
#include "core/run/pool.h"
#include "tests/support/counting.h"
#include "tests/support/random_call.h"

static void ignore(struct job *job) { (void)job; }

static struct pool *make_pool(const struct layer *l, size_t workers, bool merge) {
  struct error e = {0};
  struct pool *p = pool_new(&(struct pool_options){.workers = workers,
                                                   .max_queue = 4096,
                                                   .scratch_bytes = layer_scratch_bytes(l),
                                                   .merge = merge},
                            &e);
  must(p != NULL);
  return p;
}

/* Nanoseconds until `count` jobs, all submitted at once, are done. Best of several turns. */
static double time_jobs(const struct random_layer *l, struct layer_run *const *asked, size_t count,
                        size_t workers, bool merge, int turns) {
  struct pool *p = make_pool(l->layer, workers, merge);
  struct job *job = calloc(count, sizeof *job);
  double best = 1e18;
  for (int turn = 0; turn < turns; turn++) {
    for (size_t i = 0; i < count; i++) job[i] = (struct job){.run = &asked[i]->run, .done = ignore};
    const uint64_t start = clock_now();
    for (size_t i = 0; i < count; i++) pool_submit(p, &job[i]);
    must(pool_drain(p, clock_now() + 60000ull * CLOCK_MS));
    const double time = (double)(clock_now() - start);
    best = time < best ? time : best;
  }
  pool_free(p);
  free(job);
  return best;
}

static void scale(const char *what, const struct random_layer *l, struct layer_run *c, int turns) {
  const double one = time_jobs(l, &c, 1, 1, true, turns);
  for (size_t workers = 2; workers <= cpu_quota(); workers *= 2) {
    const double many = time_jobs(l, &c, 1, workers, true, turns);
    printf("%s, %zu workers | %.2f ms | one worker: %.2f ms | %.2f | %s\n", what, workers,
           many / 1e6, one / 1e6, one / many,
           workers == 2 ? (c->run.rows == 1 ? ">= 1.7" : ">= 1.8") : "-");
  }
}

static struct layer_run *measured(const struct random_layer *l, struct layer_run *c,
                                  struct arena *a) {
  struct error e = {0};
  c->call.want_measures = true;
  must(layer_prepare(l->layer, c, a, &e) == STATUS_OK);
  return c;
}

static void merge_rows(size_t clients, struct arena *a) {
  uint64_t state = 4;
  struct random_layer l;
  struct layer_run *asked[256];
  plain_layer_init(&l, &state, 16, 64, GEMM_AUTO);
  for (size_t i = 0; i < clients; i++) asked[i] = plain_call(&l, &state, 1, 1, 1, WEIGHTS_NONE, a);
  const double merged = time_jobs(&l, asked, clients, 1, true, 20);
  const double single = time_jobs(&l, asked, clients, 1, false, 20);
  printf("%zu jobs of one row, d1024 h16, merged | %.2f ms | one by one: %.2f ms | %.2f | >= 4\n",
         clients, merged / 1e6, single / 1e6, single / merged);
  random_layer_done(&l);
}

/* --- short steps --- */

enum { STEPS = 30, SPANS = 16, SPAN_NS = 5000, ROUNDS = 200, BUSIEST_WORKERS = 16 };

/* What the pool calls. The linker puts these in between (--wrap, in the Makefile); they count while
 * they are told to, for counting is contention of its own. */
static struct {
  atomic_bool on;
  atomic_size_t locks, wakes;
} calls;

int __real_pthread_mutex_lock(pthread_mutex_t *m);
int __real_pthread_cond_signal(pthread_cond_t *c);
int __real_pthread_cond_broadcast(pthread_cond_t *c);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_cond_signal(pthread_cond_t *c);
int __wrap_pthread_cond_broadcast(pthread_cond_t *c);

static void count_call(atomic_size_t *number) {
  if (atomic_load_explicit(&calls.on, memory_order_relaxed)) atomic_fetch_add(number, 1);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *m) {
  count_call(&calls.locks);
  return __real_pthread_mutex_lock(m);
}

int __wrap_pthread_cond_signal(pthread_cond_t *c) {
  count_call(&calls.wakes);
  return __real_pthread_cond_signal(c);
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *c) {
  count_call(&calls.wakes);
  return __real_pthread_cond_broadcast(c);
}

static void wait_a_span(struct counting_run *r) {
  (void)r;
  for (const uint64_t until = clock_now() + SPAN_NS; clock_now() < until;) continue;
}

static double sleeps(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)usage.ru_nvcsw;
}

/* Nanoseconds of a job of ROUNDS rounds, each a span for every unit of every step. */
static double time_rounds(struct pool *p) {
  struct counting c;
  struct counting_run r;
  counting_init(&c, STEPS, true);
  counting_run_init(&r, &c, SPANS, ROUNDS);
  r.run.work = r.run.whole = 2e7 * STEPS * SPANS; /* so much that no span has two units */
  r.at_unit = wait_a_span;
  r.job.done = ignore;
  const uint64_t start = clock_now();
  pool_submit(p, &r.job);
  must(pool_drain(p, start + 60000ull * CLOCK_MS) && counting_is_right(&r));
  return (double)(clock_now() - start);
}

static void short_steps(size_t workers) {
  struct error e = {0};
  struct pool *p =
      pool_new(&(struct pool_options){.workers = workers, .max_queue = 10, .merge = true}, &e);
  must(p != NULL);
  const double steps = (double)STEPS * ROUNDS, slept = sleeps();
  double best = 1e18;
  for (int turn = 0; turn < 5; turn++) best = fmin(best, time_rounds(p));
  const double slept_a_step = (sleeps() - slept) / (5 * steps);
  const bool cores = workers <= cpu_quota();
  const double busy = steps * SPANS * SPAN_NS / (best * (double)workers);
  atomic_store(&calls.locks, 0);
  atomic_store(&calls.wakes, 0);
  atomic_store(&calls.on, true);
  time_rounds(p);
  atomic_store(&calls.on, false);
  printf("steps of %d spans of 5 us, %zu workers%s | %.2f us a step | locks, wakes, sleeps a step: "
         "%.1f, %.2f, %.2f | %.2f busy | %s\n",
         SPANS, workers, cores ? "" : " (on fewer cores)", best / steps / 1e3,
         (double)atomic_load(&calls.locks) / steps, (double)atomic_load(&calls.wakes) / steps,
         slept_a_step, busy, cores && workers == BUSIEST_WORKERS ? ">= 0.7" : "-");
  pool_free(p);
}

/* One row through a matrix of 100 MB: its columns are shared out. */
static void scale_one_row(void) {
  enum { SIZE = 512, COLUMNS = 50000 };
  struct error e = {0};
  struct arena a;
  uint64_t state = 5;
  struct random_layer l = {.shape = plain_shape(1, SIZE)};
  arena_init(&a, NULL);
  l.shape.output_size = COLUMNS;
  for (unsigned role = 0; role < ROLE_PROJECTIONS; role++) {
    const size_t count = SIZE * (role == ROLE_OUTPUT ? COLUMNS : SIZE);
    float *weight = arena_alloc(&a, count, sizeof *weight, &e);
    must(weight != NULL);
    for (size_t i = 0; i < count; i++) weight[i] = random_float(&state) / SIZE;
    l.matrix[role].weight = weight;
  }
  l.layer = layer_new(&l.shape, l.matrix, GEMM_AUTO, &e);
  must(l.layer != NULL);
  scale("b1 q1 k1 d512 h1, 50000 columns", &l, plain_call(&l, &state, 1, 1, 1, WEIGHTS_NONE, &a),
        30);
  layer_free(l.layer);
  arena_free(&a);
}

int main(void) {
  gemm_blas_init();
  uint64_t state = 3;
  struct random_layer l;
  struct arena a;
  arena_init(&a, NULL);
  plain_layer_init(&l, &state, 8, 64, GEMM_AUTO);
  scale("b32 q128 k128 d512 h8", &l, plain_call(&l, &state, 32, 128, 128, WEIGHTS_NONE, &a), 10);
  scale("b8 q64 k64 d512 h8", &l, plain_call(&l, &state, 8, 64, 64, WEIGHTS_NONE, &a), 20);
  scale("b1 q2048 k2048 d512 h8", &l, plain_call(&l, &state, 1, 2048, 2048, WEIGHTS_NONE, &a), 5);
  scale("b1 q2048 k2048 d512 h8, measured", &l,
        measured(&l, plain_call(&l, &state, 1, 2048, 2048, WEIGHTS_NONE, &a), &a), 5);
  scale_one_row();
  merge_rows(64, &a);
  for (size_t workers = 1; workers <= BUSIEST_WORKERS; workers *= 2)
    if (workers != 8) short_steps(workers);
  arena_free(&a);
  random_layer_done(&l);
  return 0;
}
