/* whole_layers: rotary positions and sliding windows in config.json. */
#ifndef CONFIG_WHOLE_LAYERS_H
#define CONFIG_WHOLE_LAYERS_H

#include "config/describe/whole_translation.h"

/* Reads the kinds of layers of a family with rotary positions. */
void whole_layers_read(struct whole_translation *t);

#endif
