/* file: reads a part of a file, a whole JSON document or a whole text; names of files. */
#ifndef CONFIG_FILE_H
#define CONFIG_FILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

/* Opens a regular file and returns its size. -1 with STATUS_CONFIG and the reason, before which the
 * caller puts the file's name. */
int file_open(const char *path, uint64_t *size, struct error *e);

/* The time and size of a file, which change when it is written to. The inode's change time is left
 * out: it also changes when another file is renamed over this one, the right way to replace it. */
struct file_stamp {
  int64_t seconds, nanoseconds;
  uint64_t size;
};

struct file_stamp file_stamp(int fd);
bool file_is_unchanged(int fd, const struct file_stamp *since);

/* Reads `size` bytes at offset `at`. STATUS_CONFIG with the reason, also if the file is shorter. */
enum status file_read_at(int fd, uint64_t at, void *out, size_t size, struct error *e);

/* Reads a JSON document, strictly: UTF-8 without a byte order mark or NUL, no duplicate names,
 * nothing after it, at most 16 MiB. file_json reads regular files only; file_json_or_pipe also
 * reads a pipe, and waits for its writer. NULL with STATUS_CONFIG naming the path, line and column,
 * or STATUS_OUT_OF_MEMORY. The caller drops the reference. */
json_t *file_json(const char *path, struct error *e);
json_t *file_json_long(const char *path, struct error *e);  /* at most 256 MiB */
json_t *file_json_reals(const char *path, struct error *e); /* integers of any size become reals */
json_t *file_json_or_pipe(const char *path, struct error *e);

/* Reads a regular file of at most 256 MiB; file_text also checks that it is UTF-8. NULL with
 * STATUS_CONFIG naming the path, or STATUS_OUT_OF_MEMORY. The caller frees it. */
char *file_data(const char *path, size_t *size, struct error *e);
char *file_text(const char *path, size_t *length, struct error *e);

/* Does the name exist, be it a dangling link? True also if that is unknown: reading the file then
 * gives the reason. */
bool file_is_there(const char *path);

/* Is it a folder, or a link to one? */
bool file_is_folder(const char *path);

/* A new string: `path`, relative to `directory` unless it is absolute, without a leading "./".
 * NULL: no memory. */
char *file_path(const char *directory, const char *path);

/* A new string: the folder of `path`, or "." without one. NULL: no memory. */
char *file_folder(const char *path);

/* A new string: the path of the file `name` in the folder of `path`. NULL: no memory. */
char *file_beside(const char *path, const char *name);

#endif
