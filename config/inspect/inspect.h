/* inspect: `attend inspect FILE`: what a checkpoint holds, and what of it can be served. */
#ifndef CONFIG_INSPECT_H
#define CONFIG_INSPECT_H

#include <stdbool.h>
#include <stdio.h>

#include "core/run/status.h"

/* Prints on `out` the container, all tensors, and every layer that can be served as a model
 * definition: {"models": {...}} in the lines from a lone "{" on, which is a configuration file for
 * the folder that the path starts from. With `models_only` that document is all that `out` gets,
 * and what there is to say goes to `notes`: what was guessed, what cannot be served and why.
 * STATUS_CONFIG where the file is none, or where `models_only` would print no model;
 * STATUS_OUT_OF_MEMORY; STATUS_SYSTEM where it could not be written. */
enum status inspect_file(const char *path, bool models_only, FILE *out, FILE *notes,
                         struct error *e);

#endif
