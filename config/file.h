/* file: a whole file in memory. Read, never mapped: what serves must not change under us. */
#ifndef CONFIG_FILE_H
#define CONFIG_FILE_H

#include <jansson.h>
#include <stddef.h>

#include "core/status.h"

struct file {
  void *bytes; /* malloc */
  size_t size;
};

/* Reads a regular file. STATUS_CONFIG naming the path and the reason, or STATUS_OUT_OF_MEMORY;
 * then `f` is empty. */
enum status file_read(const char *path, struct file *f, struct error *e);
void file_free(struct file *f);

/* Reads a JSON document, strictly: UTF-8 without a byte order mark or NUL, no duplicate names,
 * nothing behind it, at most 16 MiB. Pipes are read too. NULL with STATUS_CONFIG naming the path,
 * and line and column where the document is at fault. The caller drops the reference. */
json_t *file_json(const char *path, struct error *e);

/* A new string: `path` as seen from `directory` unless it is absolute. NULL: no memory. */
char *file_path(const char *directory, const char *path);

#endif
