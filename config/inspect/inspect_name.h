/* inspect_name: names of the models in a checkpoint, and its path in a configuration. */
#ifndef CONFIG_INSPECT_NAME_H
#define CONFIG_INSPECT_NAME_H

#include "config/build/layer/layout_place.h"
#include "core/base/status.h"

enum {
  INSPECT_NAME = 65,      /* of a model */
  INSPECT_NAME_STEM = 58, /* of a model, without the number that makes it unique */
  INSPECT_NAME_FILE = 33  /* of a file */
};

/* Writes the name of a checkpoint: that of its file without the extension or, if that is the usual
 * one ("model"), that of its folder. It may be empty. */
void inspect_name_file(const char *path, char out[INSPECT_NAME_FILE]);

/* Writes the name of a layer: the file and its number, "t5.decoder3-cross"; without a number the
 * file and its address; without both the file. At most INSPECT_NAME_STEM characters. */
void inspect_name_layer(const char *file, const struct layout_place *p, char out[INSPECT_NAME]);

/* A new string: the path of a checkpoint, relative to the current folder, in the configuration file
 * `written`. In the configuration's folder or below it starts there; any other path is absolute.
 * NULL with STATUS_OUT_OF_MEMORY, or STATUS_SYSTEM if the current folder is unknown. */
char *inspect_path_for(const char *checkpoint, const char *written, struct error *e);

#endif
