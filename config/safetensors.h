/* safetensors: the file format, read strictly.
 *
 * `u64 LE n | n bytes of JSON | data to the end`. The reader works on bytes in memory; every rule
 * of the format is checked by safetensors_parse, each with its own message, before anything is
 * handed out. What it returns borrows from those bytes. */
#ifndef CONFIG_SAFETENSORS_H
#define CONFIG_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

enum { SAFETENSORS_RANK_MAX = 8 };

struct safetensors_entry {
  const char *name;  /* owned by the file */
  const char *dtype; /* as written: "F32", "BF16", ... */
  size_t rank;
  uint64_t dim[SAFETENSORS_RANK_MAX];
  uint64_t count;            /* product of the dimensions; 1 for rank 0 */
  const unsigned char *data; /* little-endian, maybe unaligned */
  uint64_t bytes;
};

struct safetensors;

/* Parses `size` bytes that stay valid until safetensors_free. */
struct safetensors *safetensors_parse(const void *bytes, size_t size, struct error *e);
void safetensors_free(struct safetensors *s);

size_t safetensors_count(const struct safetensors *s);
const struct safetensors_entry *safetensors_at(const struct safetensors *s, size_t index);
const struct safetensors_entry *safetensors_find(const struct safetensors *s, const char *name);
const char *safetensors_metadata(const struct safetensors *s, const char *key); /* or NULL */

/* Converts F32, F16, BF16 or F64 to float32 (rounded to nearest, ties to even). STATUS_CONFIG
 * naming the tensor for any other type or a number that is not a finite float32. */
enum status safetensors_floats(const struct safetensors_entry *t, float *out, struct error *e);

#endif
