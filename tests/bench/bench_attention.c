/* bench_attention: the kinds of attention on one thread, each against its yardstick in the same
 * run: the additive score against a plain loop, other scores, masked heads and measures against the
 * plain layer. Best of several turns of each, taken alternately. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/cpu.h"
#include "tests/support/random_call.h"

enum { TURNS = 7, TURN_MS = 150 };

struct bench {
  struct layer_shape shape;
  struct layer *layer;
  struct layer_run *asked;
  struct arena arena;
  void *scratch;
  double best;  /* milliseconds */
  size_t bytes; /* that the prepared call takes, its inputs apart */
};

static float *numbers(struct arena *a, uint64_t *state, size_t count, float size) {
  struct error e = {0};
  float *x = arena_alloc(a, count, sizeof *x, &e);
  for (size_t i = 0; i < count; i++) x[i] = size * random_float(state);
  return x;
}

static void make_layer(struct bench *b, uint64_t *state, size_t d, size_t heads, enum score score,
                       bool projected) {
  const size_t size = d / heads;
  const float spread = sqrtf(3.0f / (float)d), shared = sqrtf(3.0f / (float)size);
  struct layer_matrix m[ROLE_COUNT] = {{0}};
  struct error e = {0};
  b->shape = plain_shape(heads, size);
  b->shape.score = score;
  b->shape.score_size = score == SCORE_ADDITIVE ? size : 0;
  for (unsigned role = 0; projected && role < ROLE_PROJECTIONS; role++)
    m[role].weight = numbers(&b->arena, state, d * d, spread);
  if (score == SCORE_ADDITIVE) {
    m[ROLE_SCORE_QUERY].weight = numbers(&b->arena, state, size * size, shared);
    m[ROLE_SCORE_KEY].weight = numbers(&b->arena, state, size * size, shared);
    m[ROLE_SCORE_VECTOR].weight = numbers(&b->arena, state, size, shared);
  }
  if (score == SCORE_BILINEAR)
    m[ROLE_SCORE_WEIGHT].weight = numbers(&b->arena, state, size * size, shared);
  b->layer = layer_new(&b->shape, m, GEMM_AUTO, &e);
  must(b->layer != NULL);
}

static struct bench bench_new(size_t d, size_t heads, enum score score, bool projected,
                              size_t items, size_t rows, const struct layer_run *asked) {
  struct bench b = {.best = INFINITY};
  struct error e = {0};
  uint64_t state = 7;
  arena_init(&b.arena, NULL);
  make_layer(&b, &state, d, heads, score, projected);
  b.scratch = aligned_alloc(64, (layer_scratch_bytes(b.layer) + 63) / 64 * 64);
  b.asked = arena_alloc(&b.arena, 1, sizeof *b.asked, &e);
  *b.asked = *asked;
  b.asked->geometry.items = items;
  b.asked->geometry.window_left = b.asked->geometry.window_right = -1;
  b.asked->geometry.item = arena_alloc(&b.arena, items, sizeof *b.asked->geometry.item, &e);
  for (size_t i = 0; i < items; i++)
    b.asked->geometry.item[i] =
        (struct item){.q = rows, .k = rows, .q_row = i * rows, .k_row = i * rows};
  b.asked->geometry.q_rows = b.asked->geometry.k_rows = items * rows;
  b.asked->call.queries = numbers(&b.arena, &state, items * rows * d, 1);
  b.asked->call.keys = numbers(&b.arena, &state, items * rows * d, 1);
  b.asked->call.values = numbers(&b.arena, &state, items * rows * d, 1);
  b.bytes = b.arena.bytes;
  must(layer_prepare(b.layer, b.asked, &b.arena, &e) == STATUS_OK);
  b.bytes = b.arena.bytes - b.bytes + layer_scratch_bytes(b.layer);
  return b;
}

static void bench_free(struct bench *b) {
  free(b->scratch);
  layer_free(b->layer);
  arena_free(&b->arena);
}

static void turn(struct bench *b) {
  for (uint64_t until = clock_now() + TURN_MS * CLOCK_MS; clock_now() < until;) {
    const uint64_t start = clock_now();
    run_compute(&b->asked->run, 1e7, b->scratch);
    b->best = fmin(b->best, (double)(clock_now() - start) / 1e6);
  }
}

static void compare(const char *what, struct bench *ours, struct bench *yardstick, bool speed,
                    const char *wanted) {
  for (int i = 0; i < TURNS; i++) turn(ours), turn(yardstick);
  printf("%s | %.2f ms | %.2f ms | %.2f | %s\n", what, ours->best, yardstick->best,
         speed ? yardstick->best / ours->best : ours->best / yardstick->best, wanted);
}

/* The additive score, the softmax and the sum of values as a textbook writes them, over heads that
 * have been projected: that part is a gift to the yardstick. */
static double plain_additive(size_t items, size_t heads, size_t rows, size_t size) {
  struct arena a;
  uint64_t state = 9;
  arena_init(&a, NULL);
  const size_t count = items * heads * rows * size;
  const float *q = numbers(&a, &state, count, 1), *k = numbers(&a, &state, count, 1),
              *v = numbers(&a, &state, count, 1), *w = numbers(&a, &state, size, 1);
  float *out = numbers(&a, &state, count, 1), *s = numbers(&a, &state, rows, 1);
  const uint64_t start = clock_now();
  for (size_t plane = 0; plane < items * heads; plane++)
    for (size_t i = 0; i < rows; i++) {
      const float *query = q + (plane * rows + i) * size;
      float top = -INFINITY, sum = 0, *y = out + (plane * rows + i) * size;
      for (size_t j = 0; j < rows; j++) {
        const float *key = k + (plane * rows + j) * size;
        s[j] = 0;
        for (size_t x = 0; x < size; x++) s[j] += w[x] * tanhf(query[x] + key[x]);
        top = fmaxf(top, s[j]);
      }
      for (size_t j = 0; j < rows; j++) sum += s[j] = expf(s[j] - top);
      memset(y, 0, size * sizeof *y);
      for (size_t j = 0; j < rows; j++)
        for (size_t x = 0; x < size; x++) y[x] += s[j] / sum * v[(plane * rows + j) * size + x];
    }
  const double ms = (double)(clock_now() - start) / 1e6;
  arena_free(&a);
  return ms;
}

static void additive(void) {
  struct bench b = bench_new(512, 8, SCORE_ADDITIVE, false, 8, 64, &(struct layer_run){0});
  double plain = INFINITY;
  for (int i = 0; i < TURNS; i++) turn(&b), plain = fmin(plain, plain_additive(8, 8, 64, 64));
  printf("additive b8 q64 k64 a64 h8 | %.2f ms | plain loop with tanhf %.1f ms | %.1f times faster "
         "| >= 20\n",
         b.best, plain, plain / b.best);
  bench_free(&b);
}

static void scores(void) {
  const struct layer_run plain = {0};
  struct bench yardstick = bench_new(512, 8, SCORE_DOT, true, 8, 64, &plain);
  struct bench dot = bench_new(512, 8, SCORE_DOT, true, 8, 64, &plain);
  struct bench bilinear = bench_new(512, 8, SCORE_BILINEAR, true, 8, 64, &plain);
  struct bench projected = bench_new(512, 8, SCORE_ADDITIVE, true, 8, 64, &plain);
  compare("dot b8 q64 k64 d512 h8 | against scaled_dot", &dot, &yardstick, true,
          ">= 0.9 of its speed");
  compare("bilinear, the same", &bilinear, &yardstick, true, ">= 0.9");
  compare("additive a64, the same", &projected, &yardstick, true, "-");
  bench_free(&yardstick), bench_free(&dot), bench_free(&bilinear), bench_free(&projected);
}

static void heads(void) {
  static const float half[] = {1, 0, 1, 0, 0, 1, 0, 1};
  const struct layer_run plain = {0}, masked = {.call.head_mask = half},
                         measured = {.call.want_measures = true};
  struct bench yardstick = bench_new(512, 8, SCORE_DOT, true, 1, 2048, &plain);
  struct bench four = bench_new(512, 8, SCORE_DOT, true, 1, 2048, &masked);
  struct bench all = bench_new(512, 8, SCORE_DOT, true, 1, 2048, &measured);
  compare("b1 q2048 k2048 d512 h8, 4 heads masked | against none", &four, &yardstick, false,
          "<= 0.65 of its time");
  compare("measures of the heads, the same", &all, &yardstick, false, "<= 2.5 of its time");
  printf("measuring it takes beside the inputs | %.1f MB | | | <= 64 MB\n",
         (double)all.bytes / 1e6);
  bench_free(&yardstick), bench_free(&four), bench_free(&all);
}

int main(void) {
  gemm_blas_init();
  printf("# cpu level %s\n", cpu_level_name(cpu_level()));
  additive();
  scores();
  heads();
  return 0;
}
