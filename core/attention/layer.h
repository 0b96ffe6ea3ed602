/* layer: one multi-head attention layer: projections, heads, output projection.
 *
 * A layer is immutable once made and shared by all threads. It holds the programs of runs that are
 * one call to it: such a run, once prepared, is computed by run_compute or by the pool; run_fault
 * describes its fault. Programs of several layers are made with layer_program.h. */
#ifndef CORE_LAYER_H
#define CORE_LAYER_H

#include "core/attention/call.h"
#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/kernel/gemm.h"
#include "core/run/run.h"

/* The matrices of a layer. The first four make the heads and the output; the others are the
 * parameters of its score and of the norm before it, shared by the heads. */
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
  ROLE_RELATIVE,   /* the table of relative positions */
  ROLE_NORM_QUERY, /* factors of the norm of each head */
  ROLE_NORM_KEY,
  ROLE_COUNT
};

/* How a query q and a key k of one head are compared. */
enum score {
  SCORE_DOT,      /* scale q.k */
  SCORE_ADDITIVE, /* v.tanh(W_q q + W_k k) */
  SCORE_BILINEAR  /* k.(W q) */
};

/* Rotary angles for texts that are longer than those a model was made of: they are divided by
 * `factor`. With `positions` above 0 only those that turn slowly: fewer than `low` times in so many
 * positions; those that turn more than `high` times stay, and in between it goes over. */
struct layer_stretch {
  double factor; /* 0 is read as 1 */
  double low, high, positions;
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

  /* With ROLE_NORM_QUERY or ROLE_NORM_KEY each of these heads is divided by the root of its mean
   * square plus this, before positions turn it. Only with SCORE_DOT. */
  float norm_epsilon;

  /* The query in row i of an item has the position i + its offset, the key in row j has j. */

  /* Rotary: each head of queries and keys is turned, pair (t, t + d/2) by the position times
   * rope_base^(-2t/d). Only with SCORE_DOT and an even d; 0: not. */
  double rope_base;
  struct layer_stretch rope_stretch;
  /* T5's relative positions: the distance from query to key falls into a bucket, whose number for
   * the head is added to the score. In one direction the first half of the buckets have one
   * distance each; the others widen, so that one behind the last would begin at relative_distance.
   * 0 buckets: not. */
  size_t relative_buckets, relative_distance;
  /* The second half of the buckets, whose number is even, is for keys after the query; without,
   * these keys fall into the first bucket. */
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
 * score weight [d_k, d]; relative [relative_buckets, H], where there are buckets. These have no
 * bias, and what the score does not use has no weight; nor have norm query [1, d] and norm key
 * [1, d] of heads that are taken as they are. The caller has checked that, and that all
 * numbers are finite. NULL with an error if memory runs out. */
struct layer *layer_new(const struct layer_shape *shape,
                        const struct layer_matrix matrix[ROLE_COUNT], enum gemm_engine engine,
                        struct error *e);
void layer_free(struct layer *l);

/* "packed", "openblas" or, without matrices, "none". */
const char *layer_engine(const struct layer *l);

/* The bytes of its matrices, and the forms in which they are kept, a bit 1 << form each. */
size_t layer_bytes(const struct layer *l);
unsigned layer_forms(const struct layer *l);

/* Scratch bytes that one thread needs to compute spans of this layer. */
size_t layer_scratch_bytes(const struct layer *l);

/* One call to a layer, over a geometry of its own. */
struct layer_run {
  struct run run; /* the first member */
  struct geometry geometry;
  struct call call;
};

/* Prepares a run whose geometry and call are right as far as they are the request: nothing is
 * checked here. Reserves in the arena all memory that computing will need, and does nothing else
 * that grows with the request. Sets the run, the call's geometry and the answer part. After this
 * nothing can fail but the arithmetic: the run's fault is STATUS_NOT_FINITE, and says what is
 * beyond float32 and where. A score counts as beyond where its sums on the way are, which may
 * happen a little before it is. A head that head_mask masks with 0 can be at fault only where its
 * weights, pointers or measures are wanted, or a trace of it. */
enum status layer_prepare(const struct layer *l, struct layer_run *r, struct arena *a,
                          struct error *e);

#endif
