/* gemm: y = x W^T + b with W prepared once. The only caller of BLAS.
 *
 * Two engines. `packed` is a kernel of our own over weights packed at load: any number of rows
 * gives each row the same bits, so rows of different requests may share a tile. `openblas` is
 * cblas_sgemm: a row's bits depend on how many rows are given together, so a tile never crosses
 * from one item to another. */
#ifndef CORE_GEMM_H
#define CORE_GEMM_H

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"

enum gemm_engine { GEMM_AUTO, GEMM_PACKED, GEMM_OPENBLAS };

struct gemm; /* one prepared matrix; immutable */

/* `weight` is [out, in] row-major, `bias` [out] or NULL; both are copied. */
struct gemm *gemm_new(size_t out, size_t in, const float *weight, const float *bias,
                      enum gemm_engine engine, struct error *e);
void gemm_free(struct gemm *g);

const char *gemm_engine_name(const struct gemm *g);

/* May rows of different items share a tile? */
bool gemm_rows_independent(const struct gemm *g);

/* The product is made a stripe of columns at a time, so that what follows finds it in cache.
 * A stripe is gemm_stripe(g) columns wide (a multiple of the vector width; the last one may reach
 * beyond `out`: those columns are zero). */
size_t gemm_stripe(const struct gemm *g);

/* Columns first .. first + stripe - 1 of x W^T + b for `rows` rows: x [rows, in] with row stride
 * x_stride, y [rows, stripe], row stride gemm_stripe(g). `first` is a multiple of the stripe. */
void gemm_run(const struct gemm *g, size_t first, size_t rows, const float *x, size_t x_stride,
              float *y);

/* The part that some of the inputs have in those columns, without b: the columns from .. from +
 * depth - 1 of x times as many rows of W^T. */
void gemm_run_slice(const struct gemm *g, size_t first, size_t rows, const float *x,
                    size_t x_stride, size_t from, size_t depth, float *y);

/* What BLAS this is, for the log and for the refusal to start. */
struct gemm_blas {
  const char *core;   /* what OpenBLAS took the processor for */
  const char *config; /* its build */
  bool threadsafe;    /* false for the serial flavour */
};
void gemm_blas_init(void); /* one BLAS thread; call once, before the first gemm_new */
struct gemm_blas gemm_blas(void);

#endif
