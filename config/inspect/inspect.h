/* inspect: `attend inspect FILE`: what a checkpoint holds, and which of its layers can be
 * served. */
#ifndef CONFIG_INSPECT_H
#define CONFIG_INSPECT_H

#include <stdbool.h>
#include <stdio.h>

#include "core/base/status.h"

struct inspect_ask {
  const char *path;
  const char *named; /* the same in the definitions, for a configuration that lies elsewhere */
  bool models_only;  /* print the models, and nothing else but notes */
  bool check;        /* read the numbers, too, and try each layer */
  size_t heads;      /* of layers whose checkpoint does not tell it; 0: as config.json says */
};

/* Prints on `out` the container, all tensors, what it is as a whole model, and every layer that can
 * be served as a model definition: {"models": {...}} from the line that is "{" on. This document is
 * a configuration file for the folder where a relative path starts. With `models_only` it is all
 * that is printed on `out`; the notes on what is not known, and on what cannot be served and why,
 * go to `notes`. What is known is printed before the next thing is found out. STATUS_CONFIG where
 * the file is no checkpoint, or where `models_only` would print no model; STATUS_OUT_OF_MEMORY;
 * STATUS_SYSTEM where it could not be written. */
enum status inspect_file(const struct inspect_ask *ask, FILE *out, FILE *notes, struct error *e);

#endif
