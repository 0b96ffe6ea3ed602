/* whole_layers: positions and sliding windows of layers in config.json, as transformers 4 and 5
 * write them. The keys are those of the family (whole_family.h), their defaults those of the
 * type (whole_type.h). */
#ifndef CONFIG_WHOLE_LAYERS_H
#define CONFIG_WHOLE_LAYERS_H

#include "config/describe/whole_translation.h"

/* Reads the kinds of layers of a family with rotary positions. */
void whole_layers_read(struct whole_translation *t);

/* Reads the positions of a family with disentangled ones. */
void whole_layers_read_disentangled(struct whole_translation *t);

/* Reads which convolution a family has that may have one. */
void whole_layers_read_convolution(struct whole_translation *t);

#endif
