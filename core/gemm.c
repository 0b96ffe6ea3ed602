/* gemm: y = x W^T + b with W prepared once. The only caller of BLAS. */
#include "core/gemm.h"

#include <cblas.h>
#include <stdlib.h>
#include <string.h>

#include "core/kernel.h"
#include "core/size.h"

struct gemm {
  size_t out, in, stripe;
  const struct kernel *kernel; /* NULL: the engine is OpenBLAS */
  float *bias;                 /* [out rounded up to stripes], zeros without one */
  /* packed: for each stripe [in, width], one after the other, where the last stripe is only as many
   * vectors wide as it needs. OpenBLAS: W^T [in, stripe]. */
  float *weight;
};

void gemm_blas_init(void) { openblas_set_num_threads(1); }

struct gemm_blas gemm_blas(void) {
  return (struct gemm_blas){.core = openblas_get_corename(),
                            .config = openblas_get_config(),
                            .threadsafe = openblas_get_parallel() != 0};
}

/* Vectors of columns that the stripe at column `first` really has. */
static size_t stripe_vectors(const struct gemm *g, size_t first) {
  const size_t columns = size_min(g->stripe, g->out - first);
  return (columns + g->kernel->lanes - 1) / g->kernel->lanes;
}

static void pack(struct gemm *g, const float *weight) {
  for (size_t first = 0; first < g->out; first += g->stripe) {
    const size_t width = g->kernel ? stripe_vectors(g, first) * g->kernel->lanes : g->stripe;
    const size_t columns = size_min(width, g->out - first);
    float *to = g->weight + first * g->in;
    for (size_t j = 0; j < columns; j++)
      for (size_t k = 0; k < g->in; k++) to[k * width + j] = weight[(first + j) * g->in + k];
  }
}

struct gemm *gemm_new(size_t out, size_t in, const float *weight, const float *bias,
                      enum gemm_engine engine, struct error *e) {
  struct gemm *g = calloc(1, sizeof *g);
  if (!g) goto no_memory;
  const bool packed = engine == GEMM_PACKED || (engine == GEMM_AUTO && cpu_level() != CPU_PORTABLE);
  g->out = out, g->in = in;
  g->kernel = packed ? kernel_best() : NULL;
  g->stripe = packed ? kernel_panel(g->kernel) : size_round_up(out, 16);
  const size_t columns = (out + g->stripe - 1) / g->stripe * g->stripe;
  size_t count;
  if (!size_mul(columns, in, &count) || count > SIZE_MAX / 8) goto no_memory;
  g->bias = calloc(columns, sizeof(float));
  g->weight = aligned_alloc(64, size_round_up(count * sizeof(float) + 1, 64));
  if (!g->bias || !g->weight) goto no_memory;
  if (bias) memcpy(g->bias, bias, out * sizeof(float));
  memset(g->weight, 0, count * sizeof(float));
  pack(g, weight);
  return g;
no_memory:
  gemm_free(g);
  error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a weight of %zu times %zu", out, in);
  return NULL;
}

void gemm_free(struct gemm *g) {
  if (!g) return;
  free(g->bias);
  free(g->weight);
  free(g);
}

size_t gemm_stripe(const struct gemm *g) { return g->stripe; }
bool gemm_rows_independent(const struct gemm *g) { return g->kernel != NULL; }
const char *gemm_engine_name(const struct gemm *g) { return g->kernel ? "packed" : "openblas"; }

static void run_openblas(const struct gemm *g, size_t rows, const float *x, size_t x_stride,
                         size_t from, size_t depth, const float *bias, float *y) {
  for (size_t i = 0; bias && i < rows; i++)
    memcpy(y + i * g->stripe, bias, g->stripe * sizeof(float));
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)rows, (blasint)g->out,
              (blasint)depth, 1.0f, x + from, (blasint)x_stride, g->weight + from * g->stripe,
              (blasint)g->stripe, bias ? 1.0f : 0.0f, y, (blasint)g->stripe);
}

static void run_packed(const struct gemm *g, size_t first, size_t rows, const float *x,
                       size_t x_stride, size_t from, size_t depth, const float *start, float *y) {
  const size_t vectors = stripe_vectors(g, first), width = vectors * g->kernel->lanes;
  g->kernel->product(&(struct kernel_product){.rows = rows,
                                              .depth = depth,
                                              .vectors = vectors,
                                              .a = x + from,
                                              .a_row = x_stride,
                                              .a_step = 1,
                                              .b = g->weight + first * g->in + from * width,
                                              .b_row = width,
                                              .start = start,
                                              .c = y,
                                              .c_row = g->stripe});
}

void gemm_run(const struct gemm *g, size_t first, size_t rows, const float *x, size_t x_stride,
              float *y) {
  if (g->kernel)
    run_packed(g, first, rows, x, x_stride, 0, g->in, g->bias + first, y);
  else
    run_openblas(g, rows, x, x_stride, 0, g->in, g->bias, y);
}

void gemm_run_slice(const struct gemm *g, size_t first, size_t rows, const float *x,
                    size_t x_stride, size_t from, size_t depth, float *y) {
  static const float zero[KERNEL_PANEL_MAX] = {0};
  if (g->kernel)
    run_packed(g, first, rows, x, x_stride, from, depth, zero, y);
  else
    run_openblas(g, rows, x, x_stride, from, depth, NULL, y);
}
