/* inspect_name: what the models of a checkpoint are called. */
#ifndef CONFIG_INSPECT_NAME_H
#define CONFIG_INSPECT_NAME_H

#include "config/build/layer/layout_place.h"

enum {
  INSPECT_NAME = 65,      /* of a model */
  INSPECT_NAME_STEM = 58, /* of a model, but for what tells it from another one of that name */
  INSPECT_NAME_FILE = 33  /* of a file */
};

/* What a checkpoint is called: its file without the format, or where the file has the name that all
 * have ("model"), its folder. May be empty. */
void inspect_name_file(const char *path, char out[INSPECT_NAME_FILE]);

/* Names a layer after the file and its number: "t5.decoder3-cross"; without a number after its
 * address; where it has none either, after the file alone. At most INSPECT_NAME_STEM characters. */
void inspect_name_layer(const char *file, const struct layout_place *p, char out[INSPECT_NAME]);

#endif
