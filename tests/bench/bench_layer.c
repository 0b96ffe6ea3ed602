/* bench_layer: the layer on one thread against cblas_sgemm, in one run: floating-point operations
 * on visible rows and pairs per second. Best of several turns of each, taken alternately. */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/cpu.h"
#include "core/layer.h"
#include "tests/support/random_call.h"

struct shape {
  size_t b, q, k, d, h;
  bool ragged; /* valid_lens uniform in k/2 .. k */
  const char *wanted;
};

static uint64_t state = 88172645463325252u;

static double uniform(void) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (double)(state >> 11) * 0x1p-53;
}

static float *numbers(size_t count, double size) {
  float *x = aligned_alloc(64, (count * sizeof *x + 63) / 64 * 64);
  for (size_t i = 0; i < count; i++) x[i] = (float)((uniform() - 0.5) * 2 * size);
  return x;
}

static double sgemm_rate(void) {
  static float *a, *b, *c;
  const blasint n = 2048;
  const size_t count = (size_t)n * (size_t)n;
  if (!a) a = numbers(count, 1), b = numbers(count, 1), c = numbers(count, 1);
  const uint64_t start = clock_now();
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a, n, b, n, 0, c, n);
  return 2.0 * (double)n * (double)n * (double)n / (double)(clock_now() - start);
}

static struct layer *make_layer(const struct shape *s) {
  const size_t d = s->d;
  float *w[ROLE_PROJECTIONS];
  struct layer_matrix m[ROLE_COUNT] = {{0}};
  for (int i = 0; i < ROLE_PROJECTIONS; i++) m[i].weight = w[i] = numbers(d * d, 0.1);
  const struct layer_shape shape = plain_shape(s->h, d / s->h);
  struct error e = {0};
  struct layer *l = layer_new(&shape, m, GEMM_AUTO, &e);
  must(l != NULL);
  for (int i = 0; i < ROLE_PROJECTIONS; i++) free(w[i]);
  return l;
}

static struct call *make_call(const struct shape *s, const struct layer *l, struct arena *a,
                              double *flops) {
  struct error e = {0};
  struct call *c = arena_alloc(a, 1, sizeof *c, &e);
  *c = (struct call){.items = s->b, .q_rows = s->b * s->q, .k_rows = s->b * s->k};
  c->window_left = c->window_right = -1;
  c->item = arena_alloc(a, s->b, sizeof *c->item, &e);
  int32_t *lens = arena_alloc(a, c->q_rows, sizeof *lens, &e);
  double seen = 0;
  for (size_t i = 0; i < s->b; i++) {
    c->item[i] = (struct item){.q = s->q, .k = s->k, .q_row = i * s->q, .k_row = i * s->k};
    const size_t len = s->ragged ? s->k / 2 + (size_t)(uniform() * (double)(s->k / 2 + 1)) : s->k;
    for (size_t r = 0; r < s->q; r++) lens[i * s->q + r] = (int32_t)len;
    seen += (double)len;
  }
  c->lens = lens;
  c->queries = numbers(c->q_rows * s->d, 1);
  c->keys = numbers(c->k_rows * s->d, 1);
  c->values = numbers(c->k_rows * s->d, 1);
  const double d = (double)s->d;
  *flops = 2 * d * d * (2.0 * (double)c->q_rows + 2 * seen) + 4.0 * (double)s->q * seen * d;
  must(layer_prepare(l, c, a, &e) == STATUS_OK);
  return c;
}

static void measure(const struct shape *s) {
  struct arena a;
  arena_init(&a, NULL);
  struct layer *l = make_layer(s);
  double flops;
  struct call *c = make_call(s, l, &a, &flops);
  void *scratch = aligned_alloc(64, (layer_scratch_bytes(l) + 63) / 64 * 64);
  double best = 0, yardstick = 0;
  for (int turn = 0; turn < 5; turn++) {
    const double rate = sgemm_rate();
    yardstick = rate > yardstick ? rate : yardstick;
    for (uint64_t until = clock_now() + 200 * CLOCK_MS; clock_now() < until;) {
      const uint64_t start = clock_now();
      layer_compute(l, c, 1e7, scratch);
      const double speed = flops / (double)(clock_now() - start);
      best = speed > best ? speed : best;
    }
  }
  printf("layer b%zu q%zu k%zu d%zu h%zu%s, one worker | %.3f ms, %.1f GFLOP/s | sgemm 2048: %.1f "
         "GFLOP/s | %.2f | %s\n",
         s->b, s->q, s->k, s->d, s->h, s->ragged ? " ragged" : "", flops / best / 1e6, best,
         yardstick, best / yardstick, s->wanted);
  free((void *)c->queries), free((void *)c->keys), free((void *)c->values), free(scratch);
  layer_free(l);
  arena_free(&a);
}

int main(void) {
  gemm_blas_init();
  printf("# cpu level %s, engine of the layer: packed weights; OpenBLAS core %s\n",
         cpu_level_name(cpu_level()), gemm_blas().core);
  const struct shape shapes[] = {{2, 4, 6, 100, 5, false, "-"},
                                 {1, 16, 16, 512, 8, false, "-"},
                                 {8, 64, 64, 512, 8, true, "-"},
                                 {32, 128, 128, 512, 8, true, ">= 0.75"},
                                 {1, 2048, 2048, 512, 8, false, "-"}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) measure(&shapes[i]);
  return 0;
}
