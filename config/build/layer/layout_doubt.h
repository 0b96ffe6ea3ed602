/* layout_doubt: what in a checkpoint may make the layer another one than the one that is served. */
#ifndef CONFIG_LAYOUT_DOUBT_H
#define CONFIG_LAYOUT_DOUBT_H

#include "config/build/layer/layout.h"
#include "config/describe/definition.h"
#include "config/describe/notes.h"

/* Does a tensor show that layers at this place see to both sides, although the family is causal? */
bool layout_sees_all(const struct layout_place *p, const struct checkpoint *file);

/* Refuses by its name a tensor that the family's own code would use and that is not served: one of
 * the family's obstacles and, at a numbered place, every tensor that is neither one of the layer's
 * nor known to change nothing. */
enum status layout_refuse_unserved(const struct layout *l, const struct checkpoint *file,
                                   const struct definition *d, struct error *e);

/* Notes where `tensors` names tensors of a family that does something by default of which the
 * definition says nothing, and where a layer of BERT lies beside cross attention, as in decoders.
 * `said` is the definition as it was written: a member of it that decides leaves no doubt. */
void layout_doubt(const struct layout *l, const struct checkpoint *file,
                  const struct definition *said, struct notes *n);

#endif
