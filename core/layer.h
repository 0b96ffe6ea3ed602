/* layer: one multi-head attention layer: projections, heads, output projection.
 *
 * A layer is immutable once made and shared by all threads. A batch is a chain of prepared calls
 * of one layer. It is computed in three phases; each phase is cut into spans that any threads may
 * run in any order, and ends when all its spans have been run. The bits of a call's answer depend
 * on the layer and the call alone: not on its neighbours in the batch, nor on how it was cut. */
#ifndef CORE_LAYER_H
#define CORE_LAYER_H

#include "core/arena.h"
#include "core/call.h"
#include "core/gemm.h"
#include "core/status.h"

enum role { ROLE_QUERY, ROLE_KEY, ROLE_VALUE, ROLE_OUTPUT, ROLE_COUNT };

struct layer_shape {
  size_t heads, kv_heads; /* H, G; G divides H */
  size_t head_size;       /* d */
  size_t value_head_size; /* d_v */
  size_t query_size, key_size, value_size, output_size;
  float scale; /* of the scores, usually 1/sqrt(d) */
};

/* One matrix y = x W^T + b. Without a weight the role is not projected: the input's columns are
 * taken as they are. */
struct layer_matrix {
  const float *weight; /* [out, in] row-major, or NULL */
  const float *bias;   /* [out], or NULL */
};

/* A layer from its shape and its matrices, which are copied (packed). The sizes must agree:
 * query [H d, query_size], key [G d, key_size], value [G d_v, value_size],
 * output [output_size, H d_v]; without a weight the two sizes of a role must be equal. The caller
 * has checked that; all numbers are finite. NULL with an error if memory runs out. */
struct layer *layer_new(const struct layer_shape *shape,
                        const struct layer_matrix matrix[ROLE_COUNT], enum gemm_engine engine,
                        struct error *e);
void layer_free(struct layer *l);

const char *layer_engine(const struct layer *l); /* "packed" or "openblas" */

/* Scratch bytes that one thread needs to run spans of this layer. */
size_t layer_scratch_bytes(const struct layer *l);

/* Checks nothing: the call's request part is already right. Works out what each item's keys are
 * seen by and takes from the arena all memory that computing will need. Fills the answer part and
 * `work`. After this nothing can fail but the arithmetic. */
enum status layer_prepare(const struct layer *l, struct call *c, struct arena *a, struct error *e);

enum phase { PHASE_PROJECT, PHASE_ATTEND, PHASE_OUTPUT, PHASE_DONE };

/* A place in the work of a batch: every phase walks its calls in order. */
struct cursor {
  struct call *first, *call; /* call NULL: the phase has nothing left */
  enum phase phase;
  unsigned role;          /* PHASE_PROJECT: which matrix */
  size_t item, head, row; /* where in the call */
};

/* A piece of work: so many units (tiles) from a place on. */
struct span {
  struct cursor from;
  size_t units;
};

/* The beginning of a phase; its `call` is NULL if the phase has nothing to do. */
struct cursor layer_begin(const struct layer *l, struct call *first, enum phase phase);

/* Cuts the next span of about `work` floating-point operations and moves the cursor behind it; its
 * `call` is then NULL if nothing is left. False if there was nothing to cut. What is cancelled or
 * at fault counts as no work. */
bool layer_cut(const struct layer *l, struct cursor *at, double work, struct span *out);

/* Computes a span. `scratch` is 64-byte aligned, of layer_scratch_bytes, and the thread's own. */
void layer_run(const struct layer *l, const struct span *span, void *scratch);

/* STATUS_OK, or STATUS_NOT_FINITE saying what is beyond float32 and where. Call it between phases
 * or after the last. */
enum status layer_fault(const struct call *c, struct error *e);

/* All phases of a chain of calls on the calling thread, in spans of `work`: for tests and
 * benchmarks. The calls' faults are left to layer_fault. */
void layer_compute(const struct layer *l, struct call *first, double work, void *scratch);

#endif
