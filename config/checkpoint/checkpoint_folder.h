/* checkpoint_folder: finds the checkpoint in a folder. */
#ifndef CONFIG_CHECKPOINT_FOLDER_H
#define CONFIG_CHECKPOINT_FOLDER_H

#include "core/base/status.h"

/* A new string: `path` itself unless it is a folder, else the path of the checkpoint in it: of
 * model.safetensors.index.json; else of model.safetensors; else of the only file whose name ends as
 * that of a safetensors file, an index or an .npz archive; else of pytorch_model.bin.index.json;
 * else of pytorch_model.bin; else of the only file that PyTorch may have written. NULL with
 * STATUS_OUT_OF_MEMORY, or with STATUS_CONFIG and the reason, which lists the files, and before
 * which the caller puts the path. */
char *checkpoint_folder_file(const char *path, struct error *e);

#endif
