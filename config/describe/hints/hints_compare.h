/* hints_compare: notes about differences between a layer and config.json. */
#ifndef CONFIG_HINTS_COMPARE_H
#define CONFIG_HINTS_COMPARE_H

#include "config/describe/hints/hints.h"
#include "config/describe/notes.h"

/* The layer as it is served. */
struct hints_served {
  struct hints_layer at;
  const struct definition *said; /* as written: its members override, and are not noted */
  const struct layer_shape *shape;
  bool causal;
};

/* Notes values that the definition could have, and does not have. The number of heads is always
 * compared: every definition must have it, so that a different one is probably a mistake. */
void hints_compare_unsaid(const struct hints *h, const struct hints_served *c, struct notes *n);

/* Notes values that no definition can have and that change what the layer computes, and types of
 * models that are not known to have this layer. */
void hints_compare_unserved(const struct hints *h, const struct hints_served *c, struct notes *n);

#endif
