/* sgemm: the yardstick of products: cblas_sgemm of 2048^3. */
#include "tests/bench/sgemm.h"

#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "core/base/cpu.h"
#include "core/kernel/gemm.h"
#include "tests/support/random_call.h"

enum { SIZE = 2048, COUNT = SIZE * SIZE };

void sgemm_correct_kernels(char **argv) {
  const struct gemm_blas blas = gemm_blas();
  const char *right = cpu_level() == CPU_AVX2 ? "HASWELL" : blas.better;
  const char *told = getenv("OPENBLAS_CORETYPE");
  if (!right || !strcasecmp(blas.core, right) || (told && !strcasecmp(told, right))) return;
  printf("# OpenBLAS computes as for %s: starting again with OPENBLAS_CORETYPE=%s\n", blas.core,
         right);
  fflush(stdout);
  setenv("OPENBLAS_CORETYPE", right, 1);
  execv("/proc/self/exe", argv);
}

static float *draw_square(uint64_t *state) {
  float *x = aligned_alloc(64, COUNT * sizeof *x);
  must(x != NULL);
  for (size_t i = 0; i < COUNT; i++) x[i] = random_float(state);
  return x;
}

void sgemm_multiply(void *context) {
  static float *a, *b, *c;
  (void)context;
  if (!a) {
    uint64_t state = 2048;
    a = draw_square(&state), b = draw_square(&state), c = draw_square(&state);
  }
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIZE, SIZE, SIZE, 1, a, SIZE, b, SIZE, 0,
              c, SIZE);
}

double sgemm_rate(double time) { return 2.0 * SIZE * SIZE * SIZE / time; }
