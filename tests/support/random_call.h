/* random_call: layers and calls of every kind, drawn from a seed, for tests of the core. */
#ifndef TESTS_RANDOM_CALL_H
#define TESTS_RANDOM_CALL_H

#include "core/attention/layer.h"

struct random_layer {
  struct layer_shape shape;
  struct layer_matrix matrix[ROLE_COUNT];
  struct layer *layer;
  struct arena arena;
};

uint64_t random_bits(uint64_t *state);
size_t random_below(uint64_t *state, size_t n); /* 0 .. n-1 */
float random_float(uint64_t *state);            /* -1 .. 1 */
bool random_often(uint64_t *state, unsigned percent);
double random_work(uint64_t *state); /* of a span: one operation, or up to 1e8 */

/* Memory of the arena: there is always some. */
void *random_room(struct arena *a, size_t count, size_t size);

/* `count` floats between -size and size, in the arena. */
float *random_floats(struct arena *a, uint64_t *state, size_t count, float size);

/* A layer with any score and weighting: mostly dot products and softmax; with projections, grouped
 * ones or none, with sizes that agree or differ, with heads that share keys or not, with positions
 * or without. */
void random_layer_init(struct random_layer *l, uint64_t *state, enum gemm_engine engine);
/* Scaled dot products of `heads` heads of one size, all sizes equal. */
struct layer_shape plain_shape(size_t heads, size_t size);
/* Such a layer with projections, without bias. */
void plain_layer_init(struct random_layer *l, uint64_t *state, size_t heads, size_t size,
                      enum gemm_engine engine);
/* The same without an output matrix, whose heads read parts of the inputs: a head of keys reads a
 * part of twice the size, and two heads of queries share it. */
void parts_layer_init(struct random_layer *l, uint64_t *state, size_t kv_heads, size_t size,
                      enum gemm_engine engine);
/* A layer whose matrices are so wide that threads share out their columns; with any score, and
 * turned heads now and then. */
void wide_layer_init(struct random_layer *l, uint64_t *state, enum gemm_engine engine);
void random_layer_done(struct random_layer *l);

/* A run of one call to it, prepared: ragged, with any mixture of lengths, masks, bias, causal,
 * window, head_mask, empty rows, selection, segments and pointers that has a meaning. Items have up
 * to `most` rows. The memory is the arena's. */
struct layer_run *random_call(const struct random_layer *l, uint64_t *state, size_t most,
                              struct arena *a);
/* A plain call: `items` items with q and k rows; every query sees every key. Prepared. */
struct layer_run *plain_call(const struct random_layer *l, uint64_t *state, size_t items, size_t q,
                             size_t k, enum weights want, struct arena *a);

/* The same request for `count` queries of one item alone, from its query `first` on. Prepared. */
struct layer_run *call_of_rows(const struct random_layer *l, const struct layer_run *c, size_t item,
                               size_t first, size_t count, struct arena *a);

/* The same request again, unprepared, with the answer part empty; shares the inputs. */
struct layer_run *call_again(const struct layer_run *c, struct arena *a);

#endif
