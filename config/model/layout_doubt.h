/* layout_doubt: what the names of a layer's tensors tell that its definition does not say. */
#ifndef CONFIG_LAYOUT_DOUBT_H
#define CONFIG_LAYOUT_DOUBT_H

#include "config/model/layout.h"
#include "config/model/notes.h"

/* Notes where `tensors` names those of a family with habits of its own, and where a layer of BERT
 * stands beside cross attention, as in decoders. `said` is the definition as it was said: what a
 * key of it decides is not doubted. */
void layout_doubt(const struct layout *l, const struct checkpoint *file,
                  const struct definition *said, struct notes *n);

#endif
