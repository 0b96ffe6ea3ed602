/* bench_pool: one large job with 1, 2, 4, ... workers up to the CPU quota, against one worker in
 * the same run; and many small jobs, merged or one by one. */
#include <stdio.h>
#include <stdlib.h>

#include "core/run/clock.h"
#include "core/run/cpu.h"
#include "core/run/pool.h"
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
static double time_jobs(const struct random_layer *l, struct call *const *call, size_t count,
                        size_t workers, bool merge, int turns) {
  struct pool *p = make_pool(l->layer, workers, merge);
  struct job *job = calloc(count, sizeof *job);
  double best = 1e18;
  for (int turn = 0; turn < turns; turn++) {
    for (size_t i = 0; i < count; i++) job[i] = (struct job){.run = &call[i]->run, .done = ignore};
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

static void scale(const char *what, const struct random_layer *l, struct call *c, int turns) {
  const double one = time_jobs(l, &c, 1, 1, true, turns);
  for (size_t workers = 2; workers <= cpu_quota(); workers *= 2) {
    const double many = time_jobs(l, &c, 1, workers, true, turns);
    printf("%s, %zu workers | %.2f ms | one worker: %.2f ms | %.2f | %s\n", what, workers,
           many / 1e6, one / 1e6, one / many, workers == 2 ? ">= 1.8" : "-");
  }
}

static struct call *measured(const struct random_layer *l, struct call *c, struct arena *a) {
  struct error e = {0};
  c->want_measures = true;
  must(layer_prepare(l->layer, c, a, &e) == STATUS_OK);
  return c;
}

static void merge_rows(size_t clients, struct arena *a) {
  uint64_t state = 4;
  struct random_layer l;
  struct call *call[256];
  plain_layer_init(&l, &state, 16, 64, GEMM_AUTO);
  for (size_t i = 0; i < clients; i++) call[i] = plain_call(&l, &state, 1, 1, 1, WEIGHTS_NONE, a);
  const double merged = time_jobs(&l, call, clients, 1, true, 20);
  const double single = time_jobs(&l, call, clients, 1, false, 20);
  printf("%zu jobs of one row, d1024 h16, merged | %.2f ms | one by one: %.2f ms | %.2f | >= 4\n",
         clients, merged / 1e6, single / 1e6, single / merged);
  random_layer_done(&l);
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
  merge_rows(64, &a);
  arena_free(&a);
  random_layer_done(&l);
  return 0;
}
