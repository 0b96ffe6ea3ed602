/* layers_all: expands a definition with "layers" to a definition of each layer. */
#ifndef CONFIG_LAYERS_ALL_H
#define CONFIG_LAYERS_ALL_H

#include <jansson.h>

#include "core/base/status.h"

/* Returns a new object of definitions by name: those of `models`, in which each with "layers" is
 * replaced by one for each numbered layer of its checkpoint, in their order: NAME.0, NAME.1, ...
 * Relative paths start at `directory`. NULL with STATUS_CONFIG naming the model and why, or with
 * STATUS_OUT_OF_MEMORY. */
json_t *layers_all_expand(const json_t *models, const char *directory, struct error *e);

#endif
