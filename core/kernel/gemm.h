/* gemm: y = x W^T + b with a matrix W that is prepared once. The only caller of BLAS.
 *
 * There are two engines. `packed` is our own kernel over weights packed at load: a row's bits do
 * not depend on the other rows, so rows of different requests may share a tile. `openblas` is
 * cblas_sgemm: a row's bits depend on how many rows are computed together, so a tile has rows of
 * one item only.
 *
 * `packed` also multiplies quantized rows with quantized weights (core/kernel/quantized.h). The
 * rows are quantized first, once for all columns: gemm_input. */
#ifndef CORE_GEMM_H
#define CORE_GEMM_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/status.h"
#include "core/kernel/kernel.h"

/* How the matrices of a model are multiplied. */
enum compute {
  COMPUTE_FLOAT32,
  COMPUTE_INT8,       /* weights and rows in bytes: a scale for each column and each row */
  COMPUTE_INT8_BLOCK, /* a scale for each 32 numbers of a column and of a row */
  COMPUTE_COUNT
};
extern const char *const compute_names[COMPUTE_COUNT + 1]; /* "float32" ..., NULL */

enum gemm_engine {
  GEMM_AUTO,
  GEMM_PACKED,
  GEMM_NARROW, /* packed, in 16 bits if that is exact (core/kernel/narrow.h): same bits */
  GEMM_OPENBLAS,
  GEMM_UNIFORM,   /* packed, with the kernels of quantized matrices: same bits at every level */
  GEMM_INT8,      /* packed, in bytes: a scale for each column */
  GEMM_INT8_BLOCK /* packed, in bytes: a scale for each 32 numbers of a column */
};

/* The engine for this way of computing; `exact` is the one for float32. */
static inline enum gemm_engine gemm_engine_for(enum compute compute, enum gemm_engine exact) {
  return compute == COMPUTE_INT8         ? GEMM_INT8
         : compute == COMPUTE_INT8_BLOCK ? GEMM_INT8_BLOCK
                                         : exact;
}

static inline bool gemm_is_quantized(enum gemm_engine engine) { return engine >= GEMM_INT8; }

/* The kernels of everything that is computed with matrices of this engine: from GEMM_UNIFORM on,
 * the results have the same bits at every level. */
static inline const struct kernel *gemm_kernel(enum gemm_engine engine) {
  return kernel_best(engine >= GEMM_UNIFORM ? KERNEL_UNIFORM : KERNEL_FASTEST);
}

struct gemm; /* one prepared matrix; immutable */

/* Prepares a matrix; the caller frees it with gemm_free. `weight` is [out, in / groups] row-major,
 * `bias` [out] or NULL; both are copied. With several groups the matrix is block-diagonal: part i
 * of the columns reads only part i of the inputs. `groups` divides both. A team packs it together
 * (core/base/team.h). NULL with STATUS_OUT_OF_MEMORY, or with STATUS_CONFIG if a matrix cannot be
 * quantized. */
struct gemm *gemm_new(size_t out, size_t in, size_t groups, const float *weight, const float *bias,
                      enum gemm_engine engine, struct error *e);
void gemm_free(struct gemm *g);

size_t gemm_bytes(const struct gemm *g); /* of the stored weights */
size_t gemm_quantized_bytes(size_t out, size_t in, enum compute compute); /* of such a matrix */
enum kernel_form gemm_form(const struct gemm *g); /* of weights that are not quantized */
bool gemm_quantizes(const struct gemm *g);        /* whether rows and weights are quantized */
const char *gemm_engine_name(const struct gemm *g);

/* The kernels of what is computed with its products. */
const struct kernel *gemm_kernel_of(const struct gemm *g);

/* Whether rows of different items may share a tile. */
bool gemm_rows_independent(const struct gemm *g);

/* Copies the weights [in] of column `out`, of a packed matrix with one group. */
void gemm_weights_of(const struct gemm *g, size_t out, float *weights);

/* A product is computed in stripes of columns, so that its result is still in cache. A stripe has
 * room for gemm_stripe(g) columns, a multiple of the vector width. The one at column `first` holds
 * gemm_columns(g, first) columns, followed by undefined numbers; the next one begins after these
 * columns. */
size_t gemm_stripe(const struct gemm *g);
size_t gemm_columns(const struct gemm *g, size_t first);

/* Rows as a matrix reads them: as they are, or quantized. */
struct gemm_input {
  size_t rows;
  const float *x;
  size_t x_stride;
  const float *quantized; /* see core/kernel/quantized.h */
  bool no_bias;           /* the products are without it */
};

/* Makes the input of all products of `rows` rows x [rows, in], with row stride x_stride, with this
 * matrix, and with others that have as many inputs and groups, and the same engine. Memory for
 * gemm_input_floats(g, rows) floats, a multiple of 64 bytes, holds quantized rows. */
size_t gemm_input_floats(const struct gemm *g, size_t rows);
struct gemm_input gemm_input(const struct gemm *g, size_t rows, const float *x, size_t x_stride,
                             float *memory);

/* Floats of a stripe of products of `rows` rows, and of the memory of their input behind it. */
size_t gemm_scratch_floats(const struct gemm *g, size_t rows);

/* Computes the stripe at `first` of x W^T + b: y [rows, stripe] with row stride gemm_stripe(g). */
void gemm_run(const struct gemm *g, size_t first, const struct gemm_input *x, float *y);

/* Compute the same in parts of the depth, if nothing is quantized: gemm_start sets the rows to b,
 * or zeros; gemm_add adds the products of the inputs from .. from + depth - 1, with one group. `x`
 * is the whole row. */
void gemm_start(const struct gemm *g, size_t first, size_t rows, bool bias, float *y);
void gemm_add(const struct gemm *g, size_t first, size_t rows, const float *x, size_t x_stride,
              size_t from, size_t depth, float *y);

/* Properties of the BLAS library, for the log and for the refusal to start. */
struct gemm_blas {
  const char *core;   /* the processor that OpenBLAS has detected */
  const char *better; /* the right value of OPENBLAS_CORETYPE if it took a new processor for an old
                         one; NULL: `core` is right */
  const char *config; /* build options */
  bool threadsafe;    /* false for the serial flavour */
};
void gemm_blas_init(void); /* one BLAS thread; call once, before the first gemm_new */
struct gemm_blas gemm_blas(void);

#endif
