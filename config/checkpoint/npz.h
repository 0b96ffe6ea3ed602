/* npz: the arrays of an .npz archive, a zip file of .npy files, as numpy.savez and
 * numpy.savez_compressed write it.
 *
 * Opening reads the header of each array. Numbers are inflated as they are read, and no size that
 * an archive claims is allocated. The checksum of an array is compared when its last number has
 * been read. One thread uses an archive. */
#ifndef CONFIG_NPZ_H
#define CONFIG_NPZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/checkpoint/npy.h"
#include "core/base/status.h"

struct npz_array {
  const char *name; /* of the member, without .npy; owned by the archive */
  struct npy about;
  uint64_t bytes; /* size of its numbers */
};

struct npz;

/* Are these the first bytes of a zip archive? */
bool npz_begins(const unsigned char *bytes, size_t size);

/* Opens the archive of `size` bytes in a file, which the caller keeps open. NULL with STATUS_CONFIG
 * and the reason, or STATUS_OUT_OF_MEMORY. Members whose names do not end with .npy are ignored.
 * *pickled becomes whether torch.save wrote the archive: then it is not opened, and the caller
 * reports the error. */
struct npz *npz_open(int fd, uint64_t size, bool *pickled, struct error *e);
void npz_free(struct npz *z);

size_t npz_count(const struct npz *z);
const struct npz_array *npz_at(const struct npz *z, size_t index);

/* Reads `size` bytes of an array's numbers, from byte `from` on. Continuing where the last call for
 * the array stopped costs only what is read; going back reads the array from its beginning again.
 * STATUS_CONFIG with the reason, or STATUS_OUT_OF_MEMORY. */
enum status npz_read(struct npz *z, size_t index, uint64_t from, void *out, size_t size,
                     struct error *e);

#endif
