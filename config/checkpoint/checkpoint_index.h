/* checkpoint_index: the index of a sharded checkpoint: which file has which tensor.
 *
 * {"metadata": {...}, "weight_map": {"TENSOR": "FILE", ...}}, read strictly. A file is in the
 * folder of the index: its name contains no other folder. */
#ifndef CONFIG_CHECKPOINT_INDEX_H
#define CONFIG_CHECKPOINT_INDEX_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/status.h"

struct checkpoint_index;

/* Is this the path of an index: does it end with .index.json? */
bool checkpoint_index_is(const char *path);

/* NULL with STATUS_CONFIG naming the path and the reason, or STATUS_OUT_OF_MEMORY. */
struct checkpoint_index *checkpoint_index_read(const char *path, struct error *e);
void checkpoint_index_free(struct checkpoint_index *x);

/* The files, each once, sorted by name. */
size_t checkpoint_index_files(const struct checkpoint_index *x);
const char *checkpoint_index_file(const struct checkpoint_index *x, size_t file);

/* The tensors, and the file of each. */
size_t checkpoint_index_count(const struct checkpoint_index *x);
const char *checkpoint_index_at(const struct checkpoint_index *x, size_t index, const char **file);

/* The name of the file of the tensor, or NULL. */
const char *checkpoint_index_find(const struct checkpoint_index *x, const char *tensor);

#endif
