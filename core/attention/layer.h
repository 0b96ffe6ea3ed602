/* layer: one multi-head attention layer: projections, heads, output projection.
 *
 * A layer is immutable once made and shared by all threads. It owns the programs of runs that
 * consist of one call to it: after layer_prepare, run_compute or the pool computes such a run, and
 * run_fault describes its fault. Programs of several layers are made with layer_program.h. */
#ifndef CORE_LAYER_H
#define CORE_LAYER_H

#include "core/attention/call.h"
#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/kernel/gemm.h"
#include "core/run/run.h"

/* The matrices of a layer. The first four compute the heads and the output; the others are
 * parameters of the score and of the norm before it, shared by the heads. */
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
  ROLE_RELATIVE,   /* table of relative positions */
  ROLE_NORM_QUERY, /* factors of the norm of each head */
  ROLE_NORM_KEY,
  ROLE_POSITION,     /* table of disentangled positions */
  ROLE_POSITION_KEY, /* its projections, if they are not those of keys and queries */
  ROLE_POSITION_QUERY,
  ROLE_COUNT
};

/* How a query q and a key k of one head are compared. */
enum score {
  SCORE_DOT,      /* scale q.k */
  SCORE_ADDITIVE, /* v.tanh(W_q q + W_k k) */
  SCORE_BILINEAR  /* k.(W q) */
};

/* Context extension of rotary positions: angles are divided by `factor`. If `positions` is above 0,
 * only slow pairs are: those with fewer than `low` rotations in that many positions. Pairs with
 * more than `high` rotations stay; between these bounds the two are interpolated.
 *
 * If `trained` is above 0, the base follows the length of an item instead. Of an item with n keys,
 * where n is above `trained`, it is base (factor n / trained - (factor - 1))^(d / (d - 2)). Such a
 * layer has no KV cache, whose keys would have to be made again with each new row; d is above 2. */
struct layer_stretch {
  double factor; /* 0 is read as 1 */
  double low, high, positions;
  size_t trained;
};

struct layer_shape {
  size_t heads, kv_heads; /* H, G; G divides H */
  size_t head_size;       /* d of a query */
  size_t key_head_size; /* d_k of a key; differs from d only with SCORE_ADDITIVE, SCORE_BILINEAR */
  size_t value_head_size; /* d_v */
  size_t query_size, key_size, value_size, output_size;
  enum score score;
  float scale; /* of SCORE_DOT, usually 1/sqrt(d); 1 with the others */
  float cap;   /* above 0: a score s becomes cap tanh(s / cap) before biases; only with SCORE_DOT */
  size_t score_size; /* a: rows of W_q and W_k of SCORE_ADDITIVE, else 0 */
  bool sigmoid;      /* the weight of a key is 1/(1 + e^-score), without softmax */
  bool grouped; /* head i reads only slice i of the input: the matrices of query, key and value have
                   in / H, in / G and in / G columns */

  /* With ROLE_NORM_QUERY or ROLE_NORM_KEY each of these heads is divided by the root of its mean
   * square plus this epsilon, before rotary positions. Only with SCORE_DOT. */
  float norm_epsilon;

  /* The query in row i of an item has the position i + its offset, the key in row j has j. */

  /* Rotary positions: each head of queries and keys is rotated, pair (t, t + d/2) by the position
   * times rope_base^(-2t/d). Only with SCORE_DOT and an even d; 0: none. */
  double rope_base;
  struct layer_stretch rope_stretch;
  /* T5's relative positions: the distance from query to key falls into a bucket, whose number for
   * the head is added to the score. In one direction the first half of the buckets hold one
   * distance each; the others grow, such that one more bucket would begin at relative_distance. 0
   * buckets: none. */
  size_t relative_buckets, relative_distance;
  /* Whether the second half of the buckets (an even number) is for keys after the query; otherwise
   * these keys are in the first bucket. */
  bool relative_both;
  /* ALiBi: the score of a key falls by its distance from the query, in either direction, times a
   * slope that only depends on the head and the number of heads. Not with buckets. */
  bool alibi;

  /* DeBERTa's disentangled attention: the distance from key to query has a row of ROLE_POSITION,
   * which is projected like a key and like a query. These products are added to q.k before it is
   * scaled: the query's with the position key, and the key's with the position query. Only with
   * SCORE_DOT, d_k = d and matrices that are not grouped. */
  bool position_keys, position_queries;
  /* S: distance r has row r + S, or the nearest one of 2 S rows. 0: none. */
  size_t position_span;
  /* Above 0, distances of more than S / 2, which is whole, share rows: S / 2 + c is for those of up
   * to S / 2 ((position_reach - 1) / (S / 2))^(c / (S / 2 - 1)). It is at least S / 2 + 2.
   * Both are below 2^30. */
  size_t position_reach;
};

/* Whether scores depend on distances. */
static inline bool layer_is_relative(const struct layer_shape *s) {
  return s->relative_buckets != 0 || s->alibi;
}

/* One matrix y = x W^T + b. A role without a weight is not projected: the input's columns are used
 * directly. */
struct layer_matrix {
  const float *weight; /* [out, in] row-major, or NULL */
  const float *bias;   /* [out], or NULL */
};

/* Makes a layer from its shape and matrices, which are copied (packed). The sizes must agree: query
 * [H d, query_size], key [G d_k, key_size], value [G d_v, value_size], output [output_size, H d_v];
 * without a weight the two sizes of a role must be equal. With SCORE_ADDITIVE score query [a, d],
 * score key [a, d_k], score vector [1, a]; with SCORE_BILINEAR score weight [d_k, d]; relative
 * [relative_buckets, H], if there are buckets; norm query [1, d] and norm key [1, d], if heads are
 * normalized; position [2 S, query_size], if S is not 0. These have no bias; matrices that the
 * shape does not use have no weight. Position key [G d, query_size] and position query
 * [H d, query_size] without a weight are those of keys and queries: then key_size is query_size.
 * The caller has checked all this, and that all numbers are finite. Returns NULL with
 * STATUS_OUT_OF_MEMORY. The caller frees the layer with layer_free. */
struct layer *layer_new(const struct layer_shape *shape,
                        const struct layer_matrix matrix[ROLE_COUNT], enum gemm_engine engine,
                        struct error *e);
void layer_free(struct layer *l);

/* "packed", "openblas" or, without matrices, "none". */
const char *layer_engine(const struct layer *l);

/* Bytes of the matrices and projected positions, and the forms in which matrices are stored, as bits 1 << form. */
size_t layer_bytes(const struct layer *l);
unsigned layer_forms(const struct layer *l);

/* Bytes that a layer of this shape takes for disentangled positions, in every mode; layer_bytes
 * includes them. */
size_t layer_position_bytes(const struct layer_shape *s);

/* Scratch bytes that one thread needs to compute spans of this layer. */
size_t layer_scratch_bytes(const struct layer *l);

/* One call to a layer, over its own geometry. */
struct layer_run {
  struct run run; /* the first member */
  struct geometry geometry;
  struct call call;
};

/* Prepares a run whose geometry and call have a valid request part; it is not checked here.
 * Reserves in the arena all memory that computing needs, and does nothing else that grows with the
 * request. Sets the run, the call's geometry and the results. Returns e->status. Afterwards only
 * the arithmetic can fail: the run's fault is STATUS_NOT_FINITE and names the row that exceeds the
 * float32 range. A score counts as exceeding it if its partial sums do. A head with a head_mask of
 * 0 can be at fault only if its weights, pointers, measures or a trace of it are requested. */
enum status layer_prepare(const struct layer *l, struct layer_run *r, struct arena *a,
                          struct error *e);

#endif
