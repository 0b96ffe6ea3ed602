/* hints_compare: notes where a layer differs from what config.json says. */
#ifndef CONFIG_HINTS_COMPARE_H
#define CONFIG_HINTS_COMPARE_H

#include "config/describe/hints.h"
#include "config/describe/notes.h"

/* The layer as it is served. */
struct hints_served {
  struct hints_layer at;
  const struct definition *said; /* as it was written: what it says itself is not noted */
  const struct layer_shape *shape;
  bool causal;
};

/* Notes what the definition could say and does not. The number of heads is always compared: every
 * definition has to say it, so that a wrong one is probably a mistake. */
void hints_compare_unsaid(const struct hints *h, const struct hints_served *c, struct notes *n);

/* Notes what no definition can say: values that change what the layer computes, and types of models
 * that are not known to have this layer. */
void hints_compare_unserved(const struct hints *h, const struct hints_served *c, struct notes *n);

#endif
