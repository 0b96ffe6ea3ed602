/* checkpoint_folder: a folder as a checkpoint: which of its files is meant. */
#ifndef CONFIG_CHECKPOINT_FOLDER_H
#define CONFIG_CHECKPOINT_FOLDER_H

#include "core/base/status.h"

/* A new string: the path of the file that `path` means. That is `path` itself unless it is a
 * folder; of a folder model.safetensors.index.json, else model.safetensors, else the only file that
 * could be meant by its name: a safetensors file, an index of them, or an .npz archive. Where there
 * is none, but a single file that PyTorch may have written (pytorch_model.bin before others), it is
 * that one: opening it says what to do. NULL with STATUS_CONFIG and the reason, before which the
 * caller puts the path and which lists what is there; or STATUS_OUT_OF_MEMORY. */
char *checkpoint_folder_file(const char *path, struct error *e);

#endif
