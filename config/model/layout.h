/* layout: which tensors of a checkpoint make the layer.
 *
 * The families of names are in layout_family.c; layout_place.h says which layer is meant. The
 * parameters of a score have plain's names where a family has none of its own. They are called
 * exactly so or have .weight behind; a .bias beside one is refused.
 * A `tensors` map names the roles instead: a tensor of exactly that name is taken as it is and
 * alone; otherwise the name is a stem for .weight and, if there is one, .bias. */
#ifndef CONFIG_LAYOUT_H
#define CONFIG_LAYOUT_H

#include "config/checkpoint/checkpoint.h"
#include "config/model/layout_matrix.h"
#include "config/model/layout_place.h"

struct layout {
  const char *name; /* "plain", "bert", ..., "tensors" (the map), "none" if no role needs one */
  struct layout_place place; /* without a family where the name is "tensors" or "none" */
  struct layout_matrix matrix[ROLE_COUNT];
  const struct checkpoint_entry *frequencies; /* of rotary positions, or NULL */
};

/* Finds the roles that the definition has, and settles what it does not say by what is usual in
 * that family. `file` NULL: there is no checkpoint, and no role is found. STATUS_CONFIG naming the
 * key or the tensor. */
enum status layout_find(struct layout *l, const struct checkpoint *file, struct definition *d,
                        struct error *e);

#endif
