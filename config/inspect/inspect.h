/* inspect: `attend inspect FILE`: the contents of a checkpoint, and its layers that
 * can be served. */
#ifndef CONFIG_INSPECT_H
#define CONFIG_INSPECT_H

#include <stdbool.h>
#include <stdio.h>

#include "core/base/status.h"

struct inspect_ask {
  const char *path;
  const char *named; /* the path in the definitions, for a configuration in another folder */
  bool models_only;  /* print the models and notes only */
  bool check;        /* read the numbers and try each layer */
  size_t heads;      /* of layers whose checkpoint does not have it; 0: that of config.json */
};

/* Prints to `out` the container, all tensors, the checkpoint as a whole model, and every layer that
 * can be served as a model definition: {"models": {...}}, beginning with the line "{". This
 * document is a configuration file for the folder where a relative path starts. With `models_only`
 * nothing else is printed to `out`; notes about unknown values, and about layers that cannot be
 * served, go to `notes`. Results are printed as soon as they are known. STATUS_CONFIG if the file
 * is no checkpoint, or if `models_only` would print no model; STATUS_OUT_OF_MEMORY; STATUS_SYSTEM
 * if the output could not be written. */
enum status inspect_file(const struct inspect_ask *ask, FILE *out, FILE *notes, struct error *e);

#endif
