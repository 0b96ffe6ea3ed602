/* bench_heads: what measuring the heads costs: the layer alone and with it, on one thread, in one
 * run. Best of several turns of each, taken alternately. */
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/cpu.h"
#include "tests/support/random_call.h"

struct shape {
  size_t b, q, k, d, h;
  const char *wanted;
};

static struct call *make_call(const struct shape *s, const struct random_layer *l, bool measures,
                              struct arena *a) {
  struct error e = {0};
  uint64_t state = 1;
  struct call *c = call_again(plain_call(l, &state, s->b, s->q, s->k, WEIGHTS_NONE, a), a);
  c->want_measures = measures;
  c->gradients = measures ? c->queries : NULL;
  must(layer_prepare(l->layer, c, a, &e) == STATUS_OK);
  return c;
}

static double seconds(const struct random_layer *l, struct call *c, void *scratch) {
  const uint64_t start = clock_now();
  layer_compute(l->layer, c, 1e7, scratch);
  return (double)(clock_now() - start) * 1e-9;
}

static void measure(const struct shape *s) {
  struct random_layer l;
  struct arena a;
  uint64_t state = 1;
  arena_init(&a, NULL);
  plain_layer_init(&l, &state, s->h, s->d / s->h, GEMM_AUTO);
  struct call *plain = make_call(s, &l, false, &a), *heads = make_call(s, &l, true, &a);
  void *scratch = aligned_alloc(64, (layer_scratch_bytes(l.layer) + 63) / 64 * 64);
  double best[2] = {1e9, 1e9};
  for (uint64_t until = clock_now() + 1000 * CLOCK_MS; clock_now() < until;) {
    const double turn[2] = {seconds(&l, plain, scratch), seconds(&l, heads, scratch)};
    for (int i = 0; i < 2; i++) best[i] = turn[i] < best[i] ? turn[i] : best[i];
  }
  printf("heads measured b%zu q%zu k%zu d%zu h%zu, one worker | %.3f ms | layer alone: %.3f ms | "
         "%.2f | %s\n",
         s->b, s->q, s->k, s->d, s->h, best[1] * 1e3, best[0] * 1e3, best[1] / best[0], s->wanted);
  free(scratch);
  random_layer_done(&l);
  arena_free(&a);
}

int main(void) {
  gemm_blas_init();
  printf("# cpu level %s\n", cpu_level_name(cpu_level()));
  const struct shape shapes[] = {{1, 16, 16, 512, 8, "-"},
                                 {32, 128, 128, 512, 8, "-"},
                                 {1, 512, 512, 768, 12, "-"},
                                 {1, 256, 256, 1024, 64, "-"},
                                 {1, 2048, 2048, 512, 8, "<= 2.5"}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) measure(&shapes[i]);
  return 0;
}
