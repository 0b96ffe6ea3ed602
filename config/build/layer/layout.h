/* layout: which tensors of a checkpoint make the layer.
 *
 * layout_family.c has the names that each family uses; layout_place.h finds which layer is meant.
 * Where a family has no names for the parameters of a score, they have those of plain: the name
 * itself, or with .weight behind it; a .bias beside one is refused.
 *
 * A `tensors` map names the roles instead. A tensor of exactly that name is used as it is, without
 * a bias; otherwise the name is a stem, for .weight and, if there is one, .bias. */
#ifndef CONFIG_LAYOUT_H
#define CONFIG_LAYOUT_H

#include "config/build/layer/layout_matrix.h"
#include "config/build/layer/layout_place.h"
#include "config/checkpoint/checkpoint.h"
#include "config/describe/definition.h"

struct layout {
  const char *name; /* "plain", "bert", ..., "tensors" (the map), "none" if no role needs one */
  struct layout_place place; /* has no family where the name is "tensors" or "none" */
  struct layout_matrix matrix[ROLE_COUNT];
  const struct checkpoint_entry *frequencies; /* of rotary positions, or NULL */
  bool hinted;                                /* the number of heads is config.json's */
};

/* Finds the roles that the definition has, and settles what it leaves open by what is usual in that
 * family, and the heads by the checkpoint's table or by the definition's hints. Without a
 * checkpoint `file` is NULL, and no role is found. STATUS_CONFIG naming the key or the tensor. */
enum status layout_find(struct layout *l, const struct checkpoint *file, struct definition *d,
                        struct error *e);

/* Are these the tensors of a textbook's additive pooling? It calls the parameters of its score what
 * others call projections, and projects no values. */
bool layout_is_pooling(const struct checkpoint *file, const struct layout_family *family,
                       const char *address);

#endif
