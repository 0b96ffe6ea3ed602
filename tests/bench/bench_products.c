/* bench_products: rows through matrices that come from memory: fourteen layers of GPT-2's shapes,
 * 396 MB in a cycle, with one and two threads. A product can take no less than reading the weights
 * once and no less than multiplying: the ratio is the greater of these, over what it takes. Many
 * rows are told against sgemm.
 *
 * Time is a thread's own (neighbours may take the core away), of two that of the slower one: both
 * begin together, and neither waits. Each is the best of some turns, taken alternately with the
 * yardsticks. Thread i runs on processor i, and takes its part of the columns.
 *
 *   bench_products [ROWS ...]
 *
 * To look for better plans: PASS (rows at once) and AHEAD (bytes) in the environment replace what
 * the kernel would choose (struct kernel_plan); PLAN=0 asks for nothing and goes down whole panels;
 * HUGE=0 does without huge pages; THREADS=1 leaves two out. */
#include <cblas.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "core/base/size.h"
#include "core/kernel/gemm.h"
#include "core/kernel/kernel.h"

enum {
  LAYERS = 14,
  SHAPES = 4,
  ROWS_MAX = 1024,
  STRIP = 128, /* rows that go through a matrix together */
  STRIPE = KERNEL_PANEL_MAX,
  THREADS_MAX = 2,
  TURNS = 7,
  PAGE = 2 << 20
};

static const size_t shapes[SHAPES][2] = {{768, 2304}, {768, 768}, {768, 3072}, {3072, 768}};

struct matrix {
  size_t in, out; /* out: a multiple of STRIPE */
  const float *weights;
};

/* What all threads work on. */
struct bench {
  const struct kernel *kernel;
  struct matrix matrix[LAYERS * SHAPES];
  size_t matrices, numbers; /* of these together */
  size_t rows, times;       /* so many times over */
  const struct kernel_plan *plan;
  float *x, *zero;                /* [ROWS_MAX, 3072] without gaps, [STRIPE] */
  float *stripe[THREADS_MAX], *y; /* [STRIP, STRIPE], [ROWS_MAX, 3072] */
  _Atomic uint64_t sum;           /* what was read */
};

/* --- one thread's part --- */

typedef void work_fn(struct bench *b, size_t thread, size_t threads);

/* Columns first .. first + STRIPE - 1 for some rows, as gemm.c asks for them, and on to their
 * place. */
static void multiply_stripe(const struct bench *b, const struct matrix *m, size_t first, size_t row,
                            float *stripe) {
  const size_t width = kernel_panel(b->kernel), rows = size_min(b->rows - row, STRIP);
  const struct kernel_weights w = {.panels = STRIPE / width,
                                   .panel_step = width * m->in,
                                   .more = first + STRIPE < m->out,
                                   .plan = b->plan,
                                   .first = {.rows = rows,
                                             .depth = m->in,
                                             .vectors = b->kernel->vectors,
                                             .a = b->x + row * m->in,
                                             .a_row = m->in,
                                             .a_step = 1,
                                             .b = m->weights + first * m->in,
                                             .b_row = width,
                                             .start = b->zero,
                                             .c = stripe,
                                             .c_row = STRIPE}};
  b->kernel->weights(&w);
  b->kernel->carry(rows, STRIPE, stripe, STRIPE, b->y + row * m->out + first, m->out);
}

static void multiply_all(struct bench *b, size_t thread, size_t threads) {
  for (size_t i = 0; i < b->times * b->matrices; i++) {
    const struct matrix *m = &b->matrix[i % b->matrices];
    const size_t stripes = m->out / STRIPE;
    for (size_t row = 0; row < b->rows; row += STRIP)
      for (size_t s = stripes * thread / threads; s < stripes * (thread + 1) / threads; s++)
        multiply_stripe(b, m, s * STRIPE, row, b->stripe[thread]);
  }
}

static void sgemm_all(struct bench *b, size_t thread, size_t threads) {
  for (size_t i = 0; i < b->matrices; i++) {
    const struct matrix *m = &b->matrix[i];
    const size_t first = m->out / threads * thread;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)b->rows,
                (blasint)(m->out / threads), (blasint)m->in, 1, b->x, (blasint)m->in,
                m->weights + first, (blasint)m->out, 0, b->y + first, (blasint)m->out);
  }
}

static void read_all(struct bench *b, size_t thread, size_t threads) {
  typedef uint64_t two __attribute__((vector_size(16)));
  const size_t bytes = b->numbers * sizeof(float) / threads / 128 * 128;
  const two *at = (const two *)(const void *)((const char *)b->matrix[0].weights + thread * bytes);
  two sum[8] = {{0}};
  for (size_t i = 0; i < bytes / 16; i += 8)
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) sum[j] += at[i + (size_t)j];
  for (int j = 1; j < 8; j++) sum[0] += sum[j];
  b->sum += sum[0][0] + sum[0][1];
}

/* --- all threads --- */

struct runner {
  pthread_t thread;
  struct bench *bench;
  work_fn *work;
  size_t number, threads;
  pthread_barrier_t *barrier;
  double taken;
};

static double now(void) { /* milliseconds */
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void *runner_main(void *at) {
  struct runner *r = at;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(r->number, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
  const unsigned mode = kernel_enter();
  pthread_barrier_wait(r->barrier);
  const double start = now();
  r->work(r->bench, r->number, r->threads);
  r->taken = now() - start;
  kernel_leave(mode);
  return NULL;
}

/* Milliseconds that the slowest of the threads takes. */
static double time_of(struct bench *b, work_fn *work, size_t threads) {
  struct runner r[THREADS_MAX];
  pthread_barrier_t barrier;
  double taken = 0;
  pthread_barrier_init(&barrier, NULL, (unsigned)threads);
  for (size_t i = 0; i < threads; i++) {
    r[i] = (struct runner){.bench = b, .work = work, .number = i, .threads = threads};
    r[i].barrier = &barrier;
    pthread_create(&r[i].thread, NULL, runner_main, &r[i]);
  }
  for (size_t i = 0; i < threads; i++) {
    pthread_join(r[i].thread, NULL);
    taken = fmax(taken, r[i].taken);
  }
  pthread_barrier_destroy(&barrier);
  return taken;
}

/* Two stripes of the first matrix for each thread, which stay in its cache, as often as makes all
 * the numbers: by the plan, or with nothing asked for, whichever is quicker. */
static double multiply_alone(const struct bench *b, size_t threads) {
  struct bench small = *b;
  double best = INFINITY;
  small.matrices = 1;
  small.matrix[0].out = threads * 2 * STRIPE;
  small.times = b->numbers / (small.matrix[0].in * small.matrix[0].out);
  for (int asks = 0; asks < 2; asks++) {
    small.plan = asks ? b->plan : NULL;
    best = fmin(best, time_of(&small, multiply_all, threads));
  }
  return best;
}

/* --- figures --- */

static const char *name_of(const struct bench *b, size_t threads) {
  static char name[96];
  snprintf(name, sizeof name, "%zu row%s through %.0f MB of weights, %zu thread%s", b->rows,
           b->rows > 1 ? "s" : "", 4e-6 * (double)b->numbers, threads, threads > 1 ? "s" : "");
  return name;
}

static void against_reading(struct bench *b, size_t threads, double wanted) {
  double best = INFINITY, read = INFINITY, alone = INFINITY;
  char want[32] = "-";
  for (int turn = 0; turn < TURNS; turn++) {
    read = fmin(read, time_of(b, read_all, threads));
    best = fmin(best, time_of(b, multiply_all, threads));
    alone = fmin(alone, multiply_alone(b, threads));
  }
  if (wanted > 0) snprintf(want, sizeof want, ">= %.2f", wanted);
  printf("%s | %.1f ms, %.1f GFLOP/s | read in %.1f ms, multiplied in %.1f | %.2f | %s\n",
         name_of(b, threads), best, 2e-6 * (double)(b->numbers * b->rows) / best, read, alone,
         fmax(read, alone) / best, want);
  fflush(stdout);
}

/* One layer's matrices: a cycle of all would take seconds. */
static void against_sgemm(struct bench *all, size_t threads, double wanted) {
  struct bench b = *all;
  double best = INFINITY, yardstick = INFINITY;
  b.matrices = SHAPES, b.numbers /= LAYERS;
  for (int turn = 0; turn < TURNS; turn++) {
    yardstick = fmin(yardstick, time_of(&b, sgemm_all, threads));
    best = fmin(best, time_of(&b, multiply_all, threads));
  }
  printf("%s | %.1f ms, %.1f GFLOP/s | sgemm: %.1f ms | %.2f | >= %.2f\n", name_of(&b, threads),
         best, 2e-6 * (double)(b.numbers * b.rows) / best, yardstick, yardstick / best, wanted);
  fflush(stdout);
}

/* --- what is varied --- */

static size_t number_of(const char *name, size_t otherwise) {
  const char *text = getenv(name);
  return text ? strtoull(text, NULL, 0) : otherwise;
}

static const struct kernel_plan *plan_of(const struct bench *b) {
  static struct kernel_plan plan;
  plan = *kernel_plan(b->kernel, size_min(b->rows, STRIP), SIZE_MAX);
  plan.pass = number_of("PASS", plan.pass);
  plan.ahead = number_of("AHEAD", plan.ahead);
  const bool sound = plan.pass >= 1 && plan.pass <= KERNEL_PASS_MAX && plan.ahead >= 4 * STRIPE;
  if (!sound) fprintf(stderr, "PASS is 1 .. %d, AHEAD at least %d\n", KERNEL_PASS_MAX, 4 * STRIPE);
  if (!sound) exit(2);
  return number_of("PLAN", 1) ? &plan : NULL;
}

static void figures(struct bench *b, size_t rows) {
  static const double wanted[][2] = {{1, 0.95}, {8, 0.92}, {16, 0.87}, {32, 0.8}};
  double want = 0;
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
    if ((size_t)wanted[i][0] == rows) want = wanted[i][1];
  b->rows = rows;
  b->plan = plan_of(b);
  for (size_t threads = 1; threads <= number_of("THREADS", THREADS_MAX); threads++)
    if (rows > STRIP)
      against_sgemm(b, threads, 0.95);
    else
      against_reading(b, threads, want);
}

/* --- all of it --- */

static float *numbers(size_t count, bool huge) {
  const size_t bytes = (count * sizeof(float) + PAGE - 1) / PAGE * PAGE;
  float *x = aligned_alloc(PAGE, bytes);
  uint32_t state = 1;
  if (!x) exit(2);
  madvise(x, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  for (size_t i = 0; i < count; i++) {
    state = state * 1664525u + 1013904223u;
    x[i] = (float)(int32_t)state * 0x1p-31f;
  }
  return x;
}

static void bench_init(struct bench *b) {
  const bool huge = number_of("HUGE", 1);
  b->kernel = kernel_best(KERNEL_FASTEST);
  b->matrices = LAYERS * SHAPES, b->times = 1;
  for (size_t i = 0; i < b->matrices; i++)
    b->numbers += shapes[i % SHAPES][0] * shapes[i % SHAPES][1];
  const float *at = numbers(b->numbers, huge);
  for (size_t i = 0; i < b->matrices; i++) {
    const size_t in = shapes[i % SHAPES][0], out = shapes[i % SHAPES][1];
    b->matrix[i] = (struct matrix){in, out, at};
    at += in * out;
  }
  b->x = numbers(ROWS_MAX * 3072, huge);
  b->y = numbers(ROWS_MAX * 3072, huge);
  b->zero = calloc(STRIPE, sizeof(float));
  for (size_t i = 0; i < THREADS_MAX; i++) b->stripe[i] = numbers(STRIP * STRIPE, false);
}

int main(int argc, char **argv) {
  static const size_t usual[] = {1, 4, 8, 16, 32, ROWS_MAX};
  static struct bench b;
  gemm_blas_init();
  bench_init(&b);
  printf("# cpu level %s; OpenBLAS core %s\n", cpu_level_name(cpu_level()), gemm_blas().core);
  for (int i = 1; i < argc; i++) {
    const size_t rows = strtoull(argv[i], NULL, 10);
    if (rows >= 1 && rows <= ROWS_MAX) figures(&b, rows);
  }
  for (size_t i = 0; argc < 2 && i < sizeof usual / sizeof *usual; i++) figures(&b, usual[i]);
  return 0;
}
