/* hints_compare: where a layer is another one than config.json tells. */
#ifndef CONFIG_HINTS_COMPARE_H
#define CONFIG_HINTS_COMPARE_H

#include "config/model/hints.h"
#include "config/model/notes.h"

/* The layer as it is served. */
struct hints_served {
  struct hints_layer at;
  const struct definition *said; /* as it was said: what a key of it decides is not doubted */
  const struct layer_shape *shape;
  bool causal;
};

/* What the definition could say and does not. The number of heads is always doubted: it has to be
 * said, and a wrong one is no decision. */
void hints_compare_unsaid(const struct hints *h, const struct hints_served *c, struct notes *n);

/* What no definition can say: keys whose values are not those that change nothing, and models that
 * are not known to have this layer. */
void hints_compare_unserved(const struct hints *h, const struct hints_served *c, struct notes *n);

#endif
