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

#include "core/base/status.h"
#include "core/kernel/kernel_form.h"

enum gemm_engine {
  GEMM_AUTO,
  GEMM_PACKED,
  GEMM_NARROW, /* packed, in 16 bits where that loses nothing (core/kernel/narrow.h): same bits */
  GEMM_OPENBLAS
};

struct gemm; /* one prepared matrix; immutable */

/* `weight` is [out, in / groups] row-major, `bias` [out] or NULL; both are copied. With more than
 * one group the matrix is made of blocks: the i-th part of the columns is made of the i-th part of
 * the inputs alone. `groups` divides both. A team packs it together (core/base/team.h). */
struct gemm *gemm_new(size_t out, size_t in, size_t groups, const float *weight, const float *bias,
                      enum gemm_engine engine, struct error *e);
void gemm_free(struct gemm *g);

size_t gemm_bytes(const struct gemm *g); /* of the weights as they are kept */
enum kernel_form gemm_form(const struct gemm *g);
const char *gemm_engine_name(const struct gemm *g);

/* May rows of different items share a tile? */
bool gemm_rows_independent(const struct gemm *g);

/* The weights [in] that make column `out`: as they came. Of a packed matrix of one group. */
void gemm_weights_of(const struct gemm *g, size_t out, float *weights);

/* The product is made a stripe of columns at a time, so that what follows finds it in cache. A
 * stripe has room for gemm_stripe(g) columns, a multiple of the vector width; the one that begins
 * at column `first` holds gemm_columns(g, first), and what lies behind them means nothing. The next
 * one begins behind these. */
size_t gemm_stripe(const struct gemm *g);
size_t gemm_columns(const struct gemm *g, size_t first);

/* The stripe at `first` of x W^T + b for `rows` rows: x [rows, in] with row stride x_stride,
 * y [rows, stripe] with row stride gemm_stripe(g). */
void gemm_run(const struct gemm *g, size_t first, size_t rows, const float *x, size_t x_stride,
              float *y);

/* The same in parts of the depth: the rows of b, or zeros; then, of a matrix of one group, what the
 * inputs from .. from + depth - 1 add to it. `x` is the whole row still. */
void gemm_start(const struct gemm *g, size_t first, size_t rows, bool bias, float *y);
void gemm_add(const struct gemm *g, size_t first, size_t rows, const float *x, size_t x_stride,
              size_t from, size_t depth, float *y);

/* What BLAS this is, for the log and for the refusal to start. */
struct gemm_blas {
  const char *core;   /* what OpenBLAS took the processor for */
  const char *better; /* what OPENBLAS_CORETYPE should tell it at the start of the program, where it
                         took a new processor for an old one; NULL: it knows */
  const char *config; /* its build */
  bool threadsafe;    /* false for the serial flavour */
};
void gemm_blas_init(void); /* one BLAS thread; call once, before the first gemm_new */
struct gemm_blas gemm_blas(void);

#endif
