/* archive: the members of a zip file, read from a file that the caller keeps open.
 *
 * Members are inflated as they are read, and no size that an archive claims is allocated. The
 * checksum of a member is compared when its end is read. One thread uses an archive. */
#ifndef CONFIG_ARCHIVE_H
#define CONFIG_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

struct archive;

/* Are these the first bytes of a zip archive? */
bool archive_begins(const unsigned char *bytes, size_t size);

/* Opens the archive of `size` bytes in a file. NULL with STATUS_CONFIG and the reason, or
 * STATUS_OUT_OF_MEMORY. */
struct archive *archive_open(int fd, uint64_t size, struct error *e);
void archive_free(struct archive *a);

size_t archive_count(const struct archive *a);

/* NULL with STATUS_CONFIG and the reason, or STATUS_OUT_OF_MEMORY. */
const char *archive_name(struct archive *a, size_t member, struct error *e);

struct archive_member {
  uint64_t size; /* of its bytes, inflated */
  bool stored;   /* not compressed */
};

/* Describes a member. STATUS_CONFIG with the reason if it is encrypted, compressed by another
 * method than deflate, or if its bytes cannot expand to as many as it claims. */
enum status archive_check(struct archive *a, size_t member, struct archive_member *out,
                          struct error *e);

/* Reads `size` bytes of a member from byte `from` on, fewer at its end. Returns their number; -1
 * with STATUS_CONFIG and the reason, or STATUS_OUT_OF_MEMORY. Continuing where the last call for
 * the member stopped costs only what is read; going back reads it from its beginning again. */
int64_t archive_read(struct archive *a, size_t member, uint64_t from, void *out, size_t size,
                     struct error *e);

/* Closes the members that reading has left open, and frees what was read ahead of them. */
void archive_rest(struct archive *a);

/* The offset in the file of a stored member that is not empty: its bytes can be read there by any
 * thread, without a comparison of the checksum. */
enum status archive_place(struct archive *a, size_t member, uint64_t *offset, struct error *e);

#endif
