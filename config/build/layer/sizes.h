/* sizes: the sizes of a layer and its matrices.
 *
 * They come from the checkpoint's matrices, or from the definition if the numbers are random. A
 * size in the definition that differs from the checkpoint's is an error. */
#ifndef CONFIG_SIZES_H
#define CONFIG_SIZES_H

#include "config/build/layer/layout_matrix.h"
#include "config/build/layer/parameters.h"

/* Fills the shape, and out and in of every matrix, from the completed definition and the tensors of
 * layout_find; without a checkpoint none is found. STATUS_CONFIG with a detail that begins with the
 * key or names the tensor. */
enum status sizes_find(struct parameters *p, const struct definition *d,
                       const struct layout_matrix found[ROLE_COUNT], struct error *e);

/* Checks the buckets and the distance of relative positions against each other. */
enum status sizes_check_relative(const struct layer_shape *s, struct error *e);

#endif
