/* bench_quantized: quantized products beside those of float32, on one thread: 16 to 128 rows with a
 * matrix of BERT-base, which stays in the cache, and all products of a step of GPT-2 124M, whose
 * matrices come from memory. Their baseline is float32; their share is that of the rate at which
 * the processor multiplies bytes in registers, and does nothing else.
 *
 * Time is the thread's own, the best of some turns, which the engines take alternately. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/cpu.h"
#include "core/kernel/gemm.h"
#include "tests/support/random_call.h"

enum { LAYERS = 12, WIDTH = 768, TOKENS = 50257, ROWS_MAX = 128, TURNS = 5 };

static const size_t bert[][2] = {{WIDTH, WIDTH}, {WIDTH, 4 * WIDTH}, {4 * WIDTH, WIDTH}};
static const size_t gpt2[][2] = {
    {WIDTH, 3 * WIDTH}, {WIDTH, WIDTH}, {WIDTH, 4 * WIDTH}, {4 * WIDTH, WIDTH}};

static const struct {
  const char *name;
  enum gemm_engine engine;
} engines[] = {{"float32", GEMM_PACKED}, {"int8", GEMM_INT8}, {"int8-block", GEMM_INT8_BLOCK}};
enum { ENGINES = sizeof engines / sizeof *engines };

struct matrix {
  size_t in, out;
  struct gemm *gemm[ENGINES];
};

struct products {
  const char *name;
  struct matrix matrix[4 * LAYERS + 1];
  size_t matrices;
};

static double now(void) { /* nanoseconds */
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* --- the rate of bytes in registers --- */

#if defined(__x86_64__)

/* Twelve sums, so that no instruction waits for another one. */
#define EACH_SUM(f) \
  f("0") f("1") f("2") f("3") f("4") f("5") f("6") f("7") f("8") f("9") f("10") f("11")
#define FOURS_512(i) "vpdpbusd %%zmm15, %%zmm14, %%zmm" i "\n"
#define FOURS_256(i) "%{vex%} vpdpbusd %%ymm15, %%ymm14, %%ymm" i "\n"
#define PAIRS_512(i) "vpmaddwd %%zmm15, %%zmm14, %%zmm13\n vpaddd %%zmm13, %%zmm" i ", %%zmm" i "\n"
#define PAIRS_256(i) "vpmaddwd %%ymm15, %%ymm14, %%ymm13\n vpaddd %%ymm13, %%ymm" i ", %%ymm" i "\n"
#define IN_REGISTERS(name, f)                                                                \
  static void name(size_t times) {                                                           \
    __asm__ volatile("1:\n" EACH_SUM(f) "dec %0\n jnz 1b\n vzeroupper"                       \
                     : "+r"(times)                                                           \
                     :                                                                       \
                     : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", \
                       "xmm8", "xmm9", "xmm10", "xmm11", "xmm13", "xmm14", "xmm15");         \
  }
IN_REGISTERS(fours_512, FOURS_512)
IN_REGISTERS(fours_256, FOURS_256)
IN_REGISTERS(pairs_512, PAIRS_512)
IN_REGISTERS(pairs_256, PAIRS_256)

static const struct rate {
  const char *word, *instruction;
  double operations; /* of an instruction: 2 for each product of a sum */
  void (*run)(size_t times);
} rates[] = {{"avx512vnni", "vpdpbusd zmm", 128, fours_512},
             {"avx512", "vpmaddwd and vpaddd zmm", 64, pairs_512},
             {"avx2vnni", "vpdpbusd ymm", 64, fours_256},
             {"avx2", "vpmaddwd and vpaddd ymm", 32, pairs_256}};

static const struct rate *rate_here(void) {
  for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
    if (!strcmp(cpu_word()->name, rates[i].word)) return &rates[i];
  return NULL;
}

/* Operations per nanosecond; 0: none are known. */
static double byte_rate(void) {
  enum { TIMES = 100000 };
  const struct rate *r = rate_here();
  if (!r) return 0;
  const double start = now();
  r->run(TIMES);
  return 12 * r->operations * TIMES / (now() - start);
}

static const char *byte_instruction(void) { return rate_here() ? rate_here()->instruction : "-"; }

#else

static double byte_rate(void) { return 0; }
static const char *byte_instruction(void) { return "-"; }

#endif

/* --- products --- */

static float *numbers(size_t count) {
  static uint64_t state = 88172645463325252u;
  float *x = aligned_alloc(64, (count * sizeof *x + 63) / 64 * 64);
  must(x != NULL);
  for (size_t i = 0; i < count; i++) x[i] = random_float(&state);
  return x;
}

/* Quantizes the rows, if the matrix is. The stripes of a product lie in the same place, one after
 * the other. */
static void multiply(const struct matrix *m, const struct gemm *g, size_t rows) {
  enum { ROOM = ROWS_MAX * 4 * WIDTH };
  static float *x, *quantized, *y;
  if (!x) x = numbers(ROOM), quantized = numbers(ROOM), y = numbers(ROOM);
  must(gemm_stripe(g) <= 4 * WIDTH && gemm_input_floats(g, rows) <= ROOM);
  const struct gemm_input input = gemm_input(g, rows, x, m->in, quantized);
  for (size_t first = 0; first < m->out; first += gemm_columns(g, first))
    gemm_run(g, first, &input, y);
}

static void add_matrix(struct products *p, size_t in, size_t out) {
  static float *weights;
  struct error e = {0};
  if (!weights) weights = numbers(TOKENS * WIDTH);
  struct matrix *m = &p->matrix[p->matrices++];
  *m = (struct matrix){.in = in, .out = out};
  for (size_t i = 0; i < ENGINES; i++) {
    m->gemm[i] = gemm_new(out, in, 1, weights, NULL, engines[i].engine, &e);
    must(m->gemm[i] != NULL);
  }
}

static void products_free(struct products *p) {
  for (size_t i = 0; i < p->matrices; i++)
    for (size_t j = 0; j < ENGINES; j++) gemm_free(p->matrix[i].gemm[j]);
}

/* Nanoseconds of all products of an engine, a number of times over. */
static double time_of(const struct products *p, size_t engine, size_t rows, size_t times) {
  const double start = now();
  for (size_t i = 0; i < times * p->matrices; i++) {
    const struct matrix *m = &p->matrix[i % p->matrices];
    multiply(m, m->gemm[engine], rows);
  }
  return (now() - start) / (double)times;
}

static void measure(const struct products *p, size_t rows) {
  double operations = 0, bytes[ENGINES] = {0}, best[ENGINES], most = 0;
  for (size_t i = 0; i < p->matrices; i++) {
    operations += 2.0 * (double)rows * (double)p->matrix[i].in * (double)p->matrix[i].out;
    for (size_t j = 0; j < ENGINES; j++) bytes[j] += (double)gemm_bytes(p->matrix[i].gemm[j]);
  }
  for (size_t i = 0; i < ENGINES; i++) best[i] = INFINITY;
  for (int turn = 0; turn < TURNS; turn++) {
    most = fmax(most, byte_rate());
    for (size_t i = 0; i < ENGINES; i++)
      best[i] = fmin(best[i], time_of(p, i, rows, 1 + (size_t)(1e9 / operations)));
  }
  for (size_t i = 0; i < ENGINES; i++) {
    const double rate = operations / best[i];
    printf("%s, %zu row%s, %s | %.3f ms, %.1f GOP/s, weights at %.1f GB/s", p->name, rows,
           rows > 1 ? "s" : "", engines[i].name, best[i] / 1e6, rate, bytes[i] / best[i]);
    if (i > 0 && most > 0) printf(", %.2f of the bytes' %.0f GOP/s", rate / most, most);
    if (i > 0)
      printf(" | float32: %.3f ms | %.2f | -\n", best[0] / 1e6, best[0] / best[i]);
    else
      printf(" | - | - | -\n");
  }
  fflush(stdout);
}

int main(void) {
  static const size_t few[] = {1, 2, 4, 8, 16}, many[] = {16, 32, 64, 128};
  gemm_blas_init();
  printf("# cpu level %s; bytes in registers: %s, %.0f GOP/s\n", cpu_word()->name,
         byte_instruction(), byte_rate());
  for (size_t i = 0; i < sizeof bert / sizeof *bert; i++) {
    char name[32];
    snprintf(name, sizeof name, "product %zu -> %zu", bert[i][0], bert[i][1]);
    struct products p = {.name = name};
    add_matrix(&p, bert[i][0], bert[i][1]);
    for (size_t j = 0; j < sizeof many / sizeof *many; j++) measure(&p, many[j]);
    products_free(&p);
  }
  struct products p = {.name = "step of gpt2-base"};
  for (size_t i = 0; i < 4 * LAYERS; i++) add_matrix(&p, gpt2[i % 4][0], gpt2[i % 4][1]);
  add_matrix(&p, WIDTH, TOKENS);
  for (size_t i = 0; i < sizeof few / sizeof *few; i++) measure(&p, few[i]);
  products_free(&p);
  return 0;
}
