/* bench_layer: the layer on one thread against cblas_sgemm, in one run: floating-point operations
 * on visible rows and pairs per second. Then what is told against itself: causal attention, one
 * query, self-attention, the exponential.
 *
 * Time is the thread's own (neighbours may take the core away), the best of many turns, taken
 * alternately with the yardstick's. With ATTEND_CPU=avx2 the yardstick is OpenBLAS's Haswell. */
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/cpu.h"
#include "core/kernel/kernel.h"
#include "tests/bench/sgemm.h"
#include "tests/support/random_call.h"

enum { TURNS = 3 };

struct shape {
  size_t b, q, k, d, h;
  bool ragged; /* valid_lens uniform in k/2 .. k */
  bool causal, self, plain /* no projections */, rotary, relative;
  double wanted; /* of sgemm's rate; 0: nothing */
};

static struct shape shape_of(size_t b, size_t q, size_t k, size_t d, size_t h) {
  return (struct shape){.b = b, .q = q, .k = k, .d = d, .h = h};
}

static uint64_t state = 88172645463325252u;

static float *numbers(size_t count, float size) {
  float *x = aligned_alloc(64, (count * sizeof *x + 63) / 64 * 64);
  for (size_t i = 0; i < count; i++) x[i] = size * random_float(&state);
  return x;
}

/* --- time --- */

static double now(void) { /* nanoseconds */
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

typedef void work_fn(void *context);

/* The shortest time of one run in about `ms` milliseconds; short ones are timed some at a time. */
static double shortest(work_fn *work, void *context, double ms) {
  double best = INFINITY;
  int times = 1;
  for (const double end = now() + 1e6 * ms; now() < end;) {
    const double start = now();
    for (int i = 0; i < times; i++) work(context);
    const double taken = (now() - start) / times;
    best = fmin(best, taken);
    times = taken > 2e5 ? 1 : (int)(2e5 / taken) + 1;
  }
  return best;
}

/* --- yardsticks --- */

static double sgemm_time(void) { return shortest(sgemm_multiply, NULL, 300); }

/* --- layers --- */

struct bench {
  struct layer *layer;
  struct layer_run *asked;
  struct arena arena;
  void *scratch;
  double operations; /* on what is visible */
};

static void compute(void *context) {
  const struct bench *b = context;
  run_compute(&b->asked->run, 1e7, b->scratch);
}

static struct layer *make_layer(const struct shape *s) {
  const size_t d = s->d;
  float *w[ROLE_PROJECTIONS];
  struct layer_matrix m[ROLE_COUNT] = {{0}};
  for (int i = 0; i < ROLE_PROJECTIONS; i++) {
    w[i] = numbers(d * d, 0.1f);
    if (!s->plain) m[i].weight = w[i];
  }
  struct layer_shape shape = plain_shape(s->h, d / s->h);
  float *table = numbers(32 * s->h, 1);
  if (s->rotary) shape.rope_base = 10000;
  if (s->relative) {
    shape.relative_buckets = 32, shape.relative_distance = 128, shape.relative_both = true;
    m[ROLE_RELATIVE].weight = table;
  }
  struct error e = {0};
  struct layer *l = layer_new(&shape, m, GEMM_AUTO, &e);
  must(l != NULL);
  for (int i = 0; i < ROLE_PROJECTIONS; i++) free(w[i]);
  free(table);
  return l;
}

/* How many keys an item's queries see, and how many pairs these are. */
static void count_visible(const struct shape *s, size_t length, double *keys, double *pairs) {
  for (size_t r = 0; r < s->q; r++)
    *pairs += (double)(s->causal && r + 1 < length ? r + 1 : length);
  *keys += (double)length;
}

static void bench_init(struct bench *b, const struct shape *s) {
  struct error e = {0};
  arena_init(&b->arena, NULL);
  b->layer = make_layer(s);
  b->scratch = aligned_alloc(64, (layer_scratch_bytes(b->layer) + 63) / 64 * 64);
  struct layer_run *c = b->asked = arena_alloc(&b->arena, 1, sizeof *c, &e);
  *c = (struct layer_run){.geometry.items = s->b,
                          .geometry.q_rows = s->b * s->q,
                          .geometry.k_rows = s->b * s->k};
  c->geometry.window_left = c->geometry.window_right = -1;
  c->geometry.causal = s->causal;
  c->geometry.item = arena_alloc(&b->arena, s->b, sizeof *c->geometry.item, &e);
  int32_t *lens = arena_alloc(&b->arena, c->geometry.q_rows, sizeof *lens, &e);
  double keys = 0, pairs = 0;
  for (size_t i = 0; i < s->b; i++) {
    c->geometry.item[i] = (struct item){.q = s->q, .k = s->k, .q_row = i * s->q, .k_row = i * s->k};
    const size_t length = s->ragged ? s->k / 2 + random_below(&state, s->k / 2 + 1) : s->k;
    for (size_t r = 0; r < s->q; r++) lens[i * s->q + r] = (int32_t)length;
    count_visible(s, length, &keys, &pairs);
  }
  if (s->ragged) c->geometry.lens = lens;
  c->call.queries = numbers(c->geometry.q_rows * s->d, 1);
  c->call.keys = s->self ? c->call.queries : numbers(c->geometry.k_rows * s->d, 1);
  c->call.values = s->self ? c->call.queries : numbers(c->geometry.k_rows * s->d, 1);
  const double d = (double)s->d;
  b->operations = 4 * pairs * d + (s->plain ? 0 : 4 * d * d * ((double)c->geometry.q_rows + keys));
  must(layer_prepare(b->layer, c, &b->arena, &e) == STATUS_OK);
}

static void bench_done(struct bench *b) {
  if (b->asked->call.keys != b->asked->call.queries) free((void *)b->asked->call.keys);
  if (b->asked->call.values != b->asked->call.queries) free((void *)b->asked->call.values);
  free((void *)b->asked->call.queries);
  free(b->scratch);
  layer_free(b->layer);
  arena_free(&b->arena);
}

static const char *name_of(const struct shape *s) {
  static char name[96];
  snprintf(name, sizeof name, "layer b%zu q%zu k%zu d%zu h%zu%s%s%s%s%s%s, one worker", s->b, s->q,
           s->k, s->d, s->h, s->ragged ? " ragged" : "", s->causal ? " causal" : "",
           s->self ? " self" : "", s->plain ? " without projections" : "",
           s->rotary ? " rotary" : "", s->relative ? " relative" : "");
  return name;
}

static void against_sgemm(const struct shape *s) {
  struct bench b;
  double best = INFINITY, yardstick = INFINITY;
  char wanted[32] = "-";
  bench_init(&b, s);
  for (int turn = 0; turn < TURNS; turn++) {
    yardstick = fmin(yardstick, sgemm_time());
    best = fmin(best, shortest(compute, &b, 300));
  }
  const double rate = b.operations / best;
  if (s->wanted > 0) snprintf(wanted, sizeof wanted, ">= %.2f", s->wanted);
  printf("%s | %.4f ms, %.1f GFLOP/s | sgemm 2048: %.1f GFLOP/s | %.2f | %s\n", name_of(s),
         best / 1e6, rate, sgemm_rate(yardstick), rate / sgemm_rate(yardstick), wanted);
  bench_done(&b);
}

/* One layer against another: what its time is of the other's. */
static void against_other(const struct shape *s, const struct shape *other, const char *what,
                          const char *wanted) {
  struct bench b, o;
  double best = INFINITY, yardstick = INFINITY;
  bench_init(&b, s);
  bench_init(&o, other);
  for (int turn = 0; turn < TURNS; turn++) {
    best = fmin(best, shortest(compute, &b, 500));
    yardstick = fmin(yardstick, shortest(compute, &o, 500));
  }
  printf("%s | %.4f ms | %s: %.4f ms | %.2f | %s\n", name_of(s), best / 1e6, what, yardstick / 1e6,
         best / yardstick, wanted);
  bench_done(&b);
  bench_done(&o);
}

/* --- few queries, with nothing projected: against reading keys and values once, and against two
 * calls of sgemv for each head --- */

struct few_queries {
  const struct bench *bench;
  const struct shape *shape;
  float *scores, *out, *scratch, *turned;
};

static void read_once(void *context) {
  const struct few_queries *s = context;
  const struct layer_run *c = s->bench->asked;
  const size_t count = s->shape->k * s->shape->d;
  kernel_best(KERNEL_FASTEST)->peak(count, c->call.keys);
  kernel_best(KERNEL_FASTEST)->peak(count, c->call.values);
}

static void multiply_vectors(void *context) {
  const struct few_queries *s = context;
  const struct layer_run *c = s->bench->asked;
  const blasint d = (blasint)s->shape->d, size = (blasint)(s->shape->d / s->shape->h);
  const blasint k = (blasint)s->shape->k;
  for (blasint at = 0; at < d; at += size) {
    cblas_sgemv(CblasRowMajor, CblasNoTrans, k, size, 0.1f, c->call.keys + at, d,
                c->call.queries + at, 1, 0, s->scores, 1);
    cblas_sgemv(CblasRowMajor, CblasTrans, k, size, 1, c->call.values + at, d, s->scores, 1, 0,
                s->out + at, 1);
  }
}

/* The kernel by itself, head by head: of keys where the inputs have them, or turned in blocks and
 * values head by head. */
static void attend_heads(const struct few_queries *s, bool turned) {
  const struct layer_run *c = s->bench->asked;
  const size_t q = s->shape->q, k = s->shape->k, d = s->shape->d, size = d / s->shape->h;
  int32_t from[16] = {0}, to[16];
  for (size_t i = 0; i < q; i++) to[i] = (int32_t)k;
  struct kernel_tile t = {.queries = q, .keys = k, .head_size = size, .value_head_size = size};
  t.query_row = t.context_row = d, t.scale = 0.1f, t.context_factor = 1;
  t.from = from, t.to = to;
  t.turned = turned, t.key_row = t.value_row = turned ? size : d;
  const unsigned mode = kernel_enter();
  for (size_t at = 0; at < d; at += size) {
    t.query = c->call.queries + at, t.context = s->out + at;
    t.key = turned ? s->turned + at * k : c->call.keys + at;
    t.value = c->call.values + (turned ? at * k : at);
    kernel_best(KERNEL_FASTEST)->attend(1, &t, s->scratch);
  }
  kernel_leave(mode);
}

static void attend_in_place(void *context) { attend_heads(context, false); }
static void attend_turned(void *context) { attend_heads(context, true); }

static void against_reading(const struct few_queries *s, const char *what, work_fn *work,
                            void *context) {
  double best = INFINITY, yardstick = INFINITY;
  for (int turn = 0; turn < TURNS; turn++) {
    best = fmin(best, shortest(work, context, 100));
    yardstick = fmin(yardstick, shortest(read_once, (void *)s, 100));
  }
  printf("%s%s | %.4f ms | reading keys and values once: %.4f ms | %.2f of its rate | -\n",
         name_of(s->shape), what, best / 1e6, yardstick / 1e6, yardstick / best);
}

static void against_vectors(const struct few_queries *s) {
  double best = INFINITY, yardstick = INFINITY;
  for (int turn = 0; turn < TURNS; turn++) {
    best = fmin(best, shortest(compute, (void *)s->bench, 100));
    yardstick = fmin(yardstick, shortest(multiply_vectors, (void *)s, 100));
  }
  printf("%s | %.4f ms | sgemv twice a head, no softmax: %.4f ms | %.2f times faster | -\n",
         name_of(s->shape), best / 1e6, yardstick / 1e6, yardstick / best);
}

static void step_alone(const struct shape *shape) {
  struct bench b;
  bench_init(&b, shape);
  const size_t size = shape->d / shape->h;
  struct few_queries s = {&b,
                          shape,
                          numbers(shape->k, 1),
                          numbers(shape->q * shape->d, 1),
                          numbers(kernel_best(KERNEL_FASTEST)->attend_scratch(size, size), 1),
                          numbers(shape->k * shape->d, 1)};
  against_reading(&s, "", compute, &b);
  against_reading(&s, ", the kernel alone", attend_in_place, &s);
  against_reading(&s, ", the kernel alone, keys turned", attend_turned, &s);
  if (shape->q == 1) against_vectors(&s);
  free(s.scores), free(s.out), free(s.scratch), free(s.turned);
  bench_done(&b);
}

/* Steps of a decoder, by how many keys there are. */
static void steps(void) {
  const size_t queries[] = {1, 4}, keys[] = {512, 4096};
  for (int n = 0; n < 4; n++) {
    struct shape shape = shape_of(1, queries[n / 2], keys[n % 2], 512, 8);
    against_sgemm(&shape);
    shape.plain = true;
    step_alone(&shape);
  }
}

/* --- the exponential --- */

enum { COUNT = 4096 };

struct exponentials {
  const struct kernel *kernel;
  float x[COUNT], y[COUNT];
};

static void exp_of_kernel(void *context) {
  struct exponentials *e = context;
  e->kernel->exp(COUNT, e->x, e->y);
}

static void exp_of_library(void *context) {
  struct exponentials *e = context;
  for (int i = 0; i < COUNT; i++) e->y[i] = expf(e->x[i]);
}

static double ulps_off(float x, float y) {
  int exponent;
  const double right = exp((double)x);
  frexp(right, &exponent);
  return fabs(y - right) / ldexp(1, exponent - 24);
}

/* Among sampled floats of all magnitudes that a softmax meets: one above 0 where maxima are raised
 * lazily. */
static double worst_ulps(struct exponentials *e) {
  double worst = 0;
  for (uint32_t bits = 0x33000000; bits < 0x42a60000;) { /* 3e-8 .. 83 */
    for (int i = 0; i < COUNT; i++, bits += 61) {
      float x;
      memcpy(&x, &bits, sizeof x);
      e->x[i] = i % 8 == 0 && x < 5 ? x : -x;
    }
    exp_of_kernel(e);
    for (int i = 0; i < COUNT; i++) worst = fmax(worst, ulps_off(e->x[i], e->y[i]));
  }
  return worst;
}

static void exponential(const struct kernel *k) {
  static struct exponentials e;
  e.kernel = k;
  const double worst = worst_ulps(&e);
  for (int i = 0; i < COUNT; i++) e.x[i] = 10 * random_float(&state) - 10;
  const unsigned mode = kernel_enter();
  const double ours = COUNT / shortest(exp_of_kernel, &e, 100);
  kernel_leave(mode);
  const double library = COUNT / shortest(exp_of_library, &e, 100);
  printf("exp of the softmax, %s | %.2f numbers/ns, worst %.2f ulp | expf %.2f numbers/ns | %.1f "
         "times faster | <= 2 ulp%s\n",
         cpu_level_name(k->level), ours, worst, library, ours / library,
         k->level == CPU_AVX512 ? ", >= 6 numbers/ns" : "");
}

/* --- all of it --- */

static void layers_against_sgemm(void) {
  const bool narrow = cpu_level() == CPU_AVX2;
  struct shape shapes[] = {shape_of(2, 4, 6, 100, 5),       shape_of(1, 16, 16, 512, 8),
                           shape_of(8, 64, 64, 512, 8),     shape_of(32, 128, 128, 512, 8),
                           shape_of(1, 4096, 4096, 512, 8), shape_of(1, 1, 1024, 512, 8),
                           shape_of(1, 1, 1, 1024, 16)};
  shapes[2].ragged = shapes[3].ragged = true;
  shapes[2].wanted = narrow ? 0.85 : 0;
  shapes[3].wanted = narrow ? 0.85 : 0.9;
  shapes[4].wanted = 0.85;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) against_sgemm(&shapes[i]);
}

static void layers_against_others(void) {
  const struct shape all = shape_of(1, 4096, 4096, 512, 8);
  struct shape other = all;
  other.causal = true;
  against_other(&other, &all, "without causal", "<= 0.66");
  const struct shape inputs[] = {shape_of(1, 1, 1, 1024, 16), shape_of(8, 64, 64, 512, 8)};
  for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
    other = inputs[i];
    other.self = true;
    against_other(&other, &inputs[i], "three inputs", "-");
  }
}

/* What positions cost. */
static void layers_with_positions(void) {
  const struct shape shapes[] = {shape_of(2, 4, 6, 100, 5),       shape_of(1, 16, 16, 512, 8),
                                 shape_of(32, 128, 128, 512, 8),  shape_of(1, 1, 1024, 512, 8),
                                 shape_of(1, 1024, 1024, 512, 8), shape_of(1, 1, 1, 1024, 16)};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int relative = 0; relative < 2; relative++) {
      struct shape other = shapes[i];
      other.rotary = !relative, other.relative = relative;
      against_other(&other, &shapes[i], "without positions", "-");
    }
}

int main(int argc, char **argv) {
  (void)argc;
  gemm_blas_init();
  sgemm_correct_kernels(argv);
  const struct shape toy = {.b = 2, .q = 4, .k = 6, .d = 100, .h = 5};
  struct layer *l = make_layer(&toy);
  printf("# cpu level %s, engine of the layer: %s; OpenBLAS core %s\n", cpu_level_name(cpu_level()),
         layer_engine(l), gemm_blas().core);
  layer_free(l);
  layers_against_sgemm();
  layers_against_others();
  steps();
  layers_with_positions();
  for (int level = (int)cpu_level(); level >= 0; level--)
    if (kernel_at((enum cpu_level)level, KERNEL_FASTEST))
      exponential(kernel_at((enum cpu_level)level, KERNEL_FASTEST));
  return 0;
}
