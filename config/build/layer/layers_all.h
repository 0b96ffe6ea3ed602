/* layers_all: a definition of all layers of a checkpoint, as one of each. */
#ifndef CONFIG_LAYERS_ALL_H
#define CONFIG_LAYERS_ALL_H

#include <jansson.h>

#include "core/base/status.h"

/* A new object of definitions by name, as `models` is, but that each definition with "layers" is
 * replaced by one for each numbered layer of its checkpoint, in their order: NAME.0, NAME.1, ...
 * Relative paths start at `directory`. NULL with STATUS_CONFIG naming the model and why, or with
 * STATUS_OUT_OF_MEMORY. */
json_t *layers_all_expand(const json_t *models, const char *directory, struct error *e);

#endif
