/* file: files as they are read: a piece at a place, or a document whole. */
#ifndef CONFIG_FILE_H
#define CONFIG_FILE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "core/run/status.h"

/* Opens a regular file and says how large it is. -1 with STATUS_CONFIG and the reason, to which
 * the caller adds which file it is. */
int file_open(const char *path, uint64_t *size, struct error *e);

/* What tells that a file was written to. Not by its inode's own time, which moves as well when
 * another file is renamed over it: that is how files are to be replaced. */
struct file_stamp {
  int64_t seconds, nanoseconds;
  uint64_t size;
};

struct file_stamp file_stamp(int fd);

/* Reads `size` bytes at `at`. STATUS_CONFIG with the reason, also where the file ends before. */
enum status file_read_at(int fd, uint64_t at, void *out, size_t size, struct error *e);

/* Reads a JSON document, strictly: UTF-8 without a byte order mark or NUL, no duplicate names,
 * nothing behind it, at most 16 MiB. Regular files only; or pipes, too, which are waited for. NULL
 * with STATUS_CONFIG naming the path, and line and column where the document is at fault. The
 * caller drops the reference. */
json_t *file_json(const char *path, struct error *e);
json_t *file_json_or_pipe(const char *path, struct error *e);

/* A new string: `path` as seen from `directory` unless it is absolute. NULL: no memory. */
char *file_path(const char *directory, const char *path);

/* A new string: the path of the file `name` in the folder in which `path` is. NULL: no memory. */
char *file_beside(const char *path, const char *name);

#endif
