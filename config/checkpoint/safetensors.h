/* safetensors: the header of the format, read strictly.
 *
 * `u64 LE n | n bytes of JSON | data to the end`. Every rule of the format that a header can break
 * is checked, each with its own message. The caller reads the data. */
#ifndef CONFIG_SAFETENSORS_H
#define CONFIG_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

enum {
  SAFETENSORS_PREFIX = 8,             /* bytes before the header, which hold its length */
  SAFETENSORS_HEADER_MAX = 100000000, /* bytes of the header of a file */
  SAFETENSORS_RANK_MAX = 8
};

/* The size of data whose end has not arrived yet. */
#define SAFETENSORS_UNKNOWN UINT64_MAX

struct safetensors_entry {
  const char *name;  /* owned by the header */
  const char *dtype; /* as written: "F32", "BF16", ... */
  size_t rank;
  uint64_t dim[SAFETENSORS_RANK_MAX];
  uint64_t count; /* product of the dimensions; 1 for rank 0 */
  uint64_t begin; /* offset of its bytes in the data: little-endian, maybe unaligned */
  uint64_t bytes;
};

struct safetensors;

/* Finds the length of the header in the first SAFETENSORS_PREFIX bytes. `size` is that of
 * everything, or SAFETENSORS_UNKNOWN. STATUS_CONFIG for a header of more than `most` bytes. */
enum status safetensors_measure(const void *prefix, uint64_t size, size_t most, size_t *out,
                                struct error *e);

/* Parses a header of that length; its text is not needed afterwards. `data_size` bytes of data
 * follow it; if that is SAFETENSORS_UNKNOWN, the caller compares their number with the tensors'.
 * NULL with STATUS_CONFIG or STATUS_OUT_OF_MEMORY. */
struct safetensors *safetensors_parse(const char *header, size_t size, uint64_t data_size,
                                      struct error *e);
void safetensors_free(struct safetensors *s);

/* The tensors in the order of their data, which follow each other without a gap. */
size_t safetensors_count(const struct safetensors *s);
const struct safetensors_entry *safetensors_at(const struct safetensors *s, size_t index);

/* The entries of __metadata__, each a key and a string. */
size_t safetensors_metadata_count(const struct safetensors *s);
const char *safetensors_metadata_at(const struct safetensors *s, size_t index, const char **value);

#endif
