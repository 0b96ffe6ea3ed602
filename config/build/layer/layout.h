/* layout: finds the tensors of a layer in a checkpoint.
 *
 * The tables of families have their names; layout_place.h finds the layer. A family without
 * names for the parameters of a score uses those of plain: the name itself, or with .weight after
 * it; a .bias with the same beginning is rejected.
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
  struct layout_place place; /* has no family if the name is "tensors" or "none" */
  struct layout_matrix matrix[ROLE_COUNT];
  const struct checkpoint_entry *frequencies; /* of rotary positions, or NULL */
  bool hinted;                                /* whether config.json has the number of heads */
};

/* Finds the tensors of the definition's roles, and completes the definition: with the defaults of
 * the family, and with the heads of the checkpoint's table or of the hints. Without a checkpoint
 * `file` is NULL, and no role is found. STATUS_CONFIG naming the key or the tensor. */
enum status layout_find(struct layout *l, const struct checkpoint *file, struct definition *d,
                        struct error *e);

/* Are these the tensors of an additive pooling of d2l? Its score has the parameters that are
 * projections elsewhere, and it projects no values. */
bool layout_is_pooling(const struct checkpoint *file, const struct layout_family *family,
                       const char *address);

#endif
