/* sizes: how large a layer and its matrices are.
 *
 * Sizes come from the checkpoint's matrices, or from the definition where the numbers are random. A
 * definition that says another size than the checkpoint has is an error. */
#ifndef CONFIG_SIZES_H
#define CONFIG_SIZES_H

#include "config/build/layer/layout_matrix.h"
#include "config/build/layer/parameters.h"

/* Fills the shape, and out and in of every matrix, from the settled definition and from what
 * layout_find found; without a checkpoint nothing is found. STATUS_CONFIG with a detail that begins
 * with the key or names the tensor. */
enum status sizes_find(struct parameters *p, const struct definition *d,
                       const struct layout_matrix found[ROLE_COUNT], struct error *e);

/* Checks the buckets and the distance of relative positions against each other. */
enum status sizes_check_relative(const struct layer_shape *s, struct error *e);

#endif
