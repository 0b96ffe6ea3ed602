/* npz: the arrays of an .npz archive, a zip file of .npy files, as numpy.savez and
 * numpy.savez_compressed write it.
 *
 * Opening reads the header of each array. The checksum of an array is compared when its last number
 * has been read. */
#ifndef CONFIG_NPZ_H
#define CONFIG_NPZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/checkpoint/archive.h"
#include "config/checkpoint/npy.h"
#include "core/base/status.h"

struct npz_array {
  const char *name; /* of the member, without .npy; owned by the archive */
  struct npy about;
  uint64_t bytes; /* size of its numbers */
};

struct npz;

/* Reads the descriptions of the arrays; the archive outlives the result. NULL with STATUS_CONFIG
 * and the reason, or STATUS_OUT_OF_MEMORY. Members whose names do not end with .npy are ignored. */
struct npz *npz_open(struct archive *archive, struct error *e);
void npz_free(struct npz *z);

size_t npz_count(const struct npz *z);
const struct npz_array *npz_at(const struct npz *z, size_t index);

/* Reads `size` bytes of an array's numbers, from byte `from` on, as archive_read does.
 * STATUS_CONFIG with the reason, or STATUS_OUT_OF_MEMORY. */
enum status npz_read(struct npz *z, size_t index, uint64_t from, void *out, size_t size,
                     struct error *e);

#endif
