/* layout_beside: the tensors beside a layer's, which may make it another one. For layout alone. */
#ifndef CONFIG_LAYOUT_BESIDE_H
#define CONFIG_LAYOUT_BESIDE_H

#include "config/model/layout.h"

/* Does a tensor tell that this place sees to both sides, against what is usual there? */
bool layout_sees_all(const struct place *p, const struct checkpoint *file);

/* What the family's own code would look at and is not served is refused by its name: the family's
 * obstacles, and at a place in a family's model every tensor that is neither one of the layer's nor
 * known to change nothing. Finds the frequencies. */
enum status layout_look_beside(struct layout *l, const struct checkpoint *file,
                               const struct definition *d, struct error *e);

#endif
