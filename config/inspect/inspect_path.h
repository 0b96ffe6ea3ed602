/* inspect_path: how a configuration names a checkpoint. */
#ifndef CONFIG_INSPECT_PATH_H
#define CONFIG_INSPECT_PATH_H

#include "core/base/status.h"

/* A new string: the path of the checkpoint, given from the current folder, for the configuration
 * file `written`: one that is in the configuration's folder or below starts there, and any other
 * one is whole. NULL with STATUS_OUT_OF_MEMORY, or STATUS_SYSTEM where the current folder is not
 * known. */
char *inspect_path_for(const char *checkpoint, const char *written, struct error *e);

#endif
