/* layer: one multi-head attention layer: projections, heads, output projection.
 *
 * A layer is immutable once made and shared by all threads. A batch is a chain of prepared calls
 * of one layer. It is computed in phases; each phase is cut into spans that any threads may
 * run in any order, and ends when all its spans have been run. The bits of a call's answer depend
 * on the layer and the call alone: not on its neighbours in the batch, nor on how it was cut. */
#ifndef CORE_LAYER_H
#define CORE_LAYER_H

#include "core/attention/call.h"
#include "core/kernel/gemm.h"
#include "core/run/arena.h"
#include "core/run/status.h"

/* The matrices of a layer. The first four make the heads and the output; the others are the
 * parameters of its score, shared by the heads. */
enum role {
  ROLE_QUERY,
  ROLE_KEY,
  ROLE_VALUE,
  ROLE_OUTPUT,
  ROLE_PROJECTIONS,
  ROLE_SCORE_QUERY = ROLE_PROJECTIONS,
  ROLE_SCORE_KEY,
  ROLE_SCORE_VECTOR,
  ROLE_SCORE_WEIGHT,
  ROLE_RELATIVE, /* the table of relative positions */
  ROLE_COUNT
};

/* How a query q and a key k of one head are compared. */
enum score {
  SCORE_DOT,      /* scale q.k */
  SCORE_ADDITIVE, /* v.tanh(W_q q + W_k k) */
  SCORE_BILINEAR  /* k.(W q) */
};

struct layer_shape {
  size_t heads, kv_heads; /* H, G; G divides H */
  size_t head_size;       /* d of a query */
  size_t key_head_size;   /* of a key: d, and only with SCORE_ADDITIVE and SCORE_BILINEAR another */
  size_t value_head_size; /* d_v */
  size_t query_size, key_size, value_size, output_size;
  enum score score;
  float scale;       /* of SCORE_DOT, usually 1/sqrt(d); 1 with the others */
  size_t score_size; /* a: rows of W_q and W_k of SCORE_ADDITIVE, else 0 */
  bool sigmoid;      /* each key weighs 1/(1 + e^-score) on its own: no softmax */
  bool grouped; /* head i is made of slice i of the input columns alone: the matrices of query, key
                   and value have in / H, in / G and in / G columns */

  /* Positions: the query in row i of an item stands at i + its offset, the key in row j at j. */

  /* Rotary: each head of queries and keys is turned, pair (t, t + d/2) by the position times
   * rope_base^(-2t/d). Only with SCORE_DOT and an even d; 0: not. */
  double rope_base;
  /* T5's: to each score that head's number of the bucket is added in which the distance from query
   * to key falls. Of one direction's buckets, the first half are of one distance each; the others
   * widen, such that the one behind the last would begin at relative_distance. 0 buckets: not. */
  size_t relative_buckets, relative_distance;
  /* Half of the buckets, which are even, are for keys after the query; else these are all in the
   * first. */
  bool relative_both;
};

/* One matrix y = x W^T + b. Without a weight the role is not projected: the input's columns are
 * taken as they are. */
struct layer_matrix {
  const float *weight; /* [out, in] row-major, or NULL */
  const float *bias;   /* [out], or NULL */
};

/* A layer from its shape and its matrices, which are copied (packed). The sizes must agree:
 * query [H d, query_size], key [G d_k, key_size], value [G d_v, value_size],
 * output [output_size, H d_v]; without a weight the two sizes of a role must be equal. With
 * SCORE_ADDITIVE score query [a, d], score key [a, d_k], score vector [1, a]; with SCORE_BILINEAR
 * score weight [d_k, d]; relative [relative_buckets, H], where there are any. These have no bias,
 * and what the score does not use has no weight. The caller has checked that; all numbers are
 * finite. NULL with an error if memory runs out. */
struct layer *layer_new(const struct layer_shape *shape,
                        const struct layer_matrix matrix[ROLE_COUNT], enum gemm_engine engine,
                        struct error *e);
void layer_free(struct layer *l);

const char *layer_engine(const struct layer *l); /* "packed" or "openblas" */

/* Scratch bytes that one thread needs to run spans of this layer. */
size_t layer_scratch_bytes(const struct layer *l);

/* Checks nothing: the call's request part is already right. Takes from the arena all memory that
 * computing will need, and does nothing else that grows with the request. Fills the answer part
 * and `work`. After this nothing can fail but the arithmetic. */
enum status layer_prepare(const struct layer *l, struct call *c, struct arena *a, struct error *e);

enum phase {
  PHASE_LOOK,    /* which keys each query may see */
  PHASE_PROJECT, /* queries, keys and values that somebody needs */
  PHASE_ATTEND,
  PHASE_OUTPUT,
  PHASE_MEASURE, /* the heads, tile by tile, where that is wanted */
  PHASE_SUM,     /* the measures of all tiles */
  PHASE_DONE
};

/* A place in the work of a batch: every phase walks its calls in order. */
struct cursor {
  struct call *first, *call; /* call NULL: the phase has nothing left */
  enum phase phase;
  unsigned role;          /* PHASE_PROJECT: which matrix */
  size_t round;           /* PHASE_MEASURE: of those that must follow each other */
  size_t item, head, row; /* where in the call */
};

/* A piece of work: so many units (tiles) from a place on. */
struct span {
  struct cursor from;
  size_t units;
};

/* The beginning of the first phase, and of what follows once all spans of what came before have
 * been run: the next phase, or the next round of this one. Its `call` is NULL if there is nothing
 * to do there. */
struct cursor layer_begin(const struct layer *l, struct call *first);
struct cursor layer_next(const struct layer *l, const struct cursor *at);

/* Cuts the next span of about `work` floating-point operations and moves the cursor behind it; its
 * `call` is then NULL if nothing is left. False if there was nothing to cut. What is cancelled or
 * at fault counts as no work. */
bool layer_cut(const struct layer *l, struct cursor *at, double work, struct span *out);

/* Computes a span. `scratch` is 64-byte aligned, of layer_scratch_bytes, and the thread's own. */
void layer_run(const struct layer *l, const struct span *span, void *scratch);

/* STATUS_OK, or STATUS_NOT_FINITE saying what is beyond float32 and where. A score counts as beyond
 * where its sums on the way are, which may happen a little before it is. A head that head_mask
 * masks with 0 is looked at only where its weights, pointers or measures are wanted. Call it
 * between phases or after the last. */
enum status layer_fault(const struct call *c, struct error *e);

/* All phases of a chain of calls on the calling thread, in spans of `work`: for what is not worth
 * sharing out. The calls' faults are left to layer_fault. */
void layer_compute(const struct layer *l, struct call *first, double work, void *scratch);

#endif
