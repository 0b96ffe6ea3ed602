/* layout_doubt: tensors that may make the layer a different one than the one that is served. */
#ifndef CONFIG_LAYOUT_DOUBT_H
#define CONFIG_LAYOUT_DOUBT_H

#include "config/build/layer/layout.h"
#include "config/describe/definition.h"
#include "config/describe/notes.h"

/* Does a tensor show that layers at this place are not causal, although the family is? */
bool layout_sees_all(const struct layout_place *p, const struct checkpoint *file);

/* Rejects a tensor that the family's own code would use and that is not supported: an obstacle of
 * the family and, at a numbered place, every tensor that is not the layer's and not known to change
 * nothing. STATUS_CONFIG naming it. */
enum status layout_refuse_unserved(const struct layout *l, const struct checkpoint *file,
                                   const struct definition *d, struct error *e);

/* Notes tensors in `tensors` of a family with defaults that the definition does not have, and a
 * layer of BERT with a cross-attention, as in decoders. `said` is the definition as written: no
 * doubt remains about its members. */
void layout_doubt(const struct layout *l, const struct checkpoint *file,
                  const struct definition *said, struct notes *n);

#endif
