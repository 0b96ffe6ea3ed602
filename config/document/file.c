/* file: opens and reads files. Messages show at most the last 120 bytes of a path. */
#include "config/document/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/document/json_reserve.h"
#include "config/document/text.h"
#include "core/base/size.h"

struct file_bytes {
  void *bytes; /* malloc */
  size_t size;
};

enum {
  FIRST_GUESS = 64 * 1024, /* bytes allocated at first if the size is unknown */
  LONGEST_READ = 1 << 30,  /* the kernel gives at most 2 GiB at once */
  DOCUMENT_MAX = 16 * 1024 * 1024,
  LONG_DOCUMENT_MAX = 256 * 1024 * 1024,
};

static void file_free(struct file_bytes *f) {
  free(f->bytes);
  *f = (struct file_bytes){0};
}

/* Reads to the end of the file, or until there are more than `limit` bytes. The buffer has room for
 * one byte more than expected, so that the end is seen without growing it. */
static enum status read_to_end(int fd, size_t expected, size_t limit, const char *path,
                               struct file_bytes *f, struct error *e) {
  size_t room = size_max(expected, FIRST_GUESS) + 1;
  f->bytes = malloc(room);
  if (!f->bytes)
    return error_set(e, STATUS_OUT_OF_MEMORY, "%s: no memory for its %zu bytes", path, room - 1);
  while (f->size <= limit) {
    if (f->size == room) {
      size_t more;
      void *moved = size_mul(room, 2, &more) ? realloc(f->bytes, more) : NULL;
      if (!moved)
        return error_set(e, STATUS_OUT_OF_MEMORY, "%s: no memory for more than %zu bytes", path,
                         room);
      f->bytes = moved;
      room = more;
    }
    const ssize_t n = read(fd, (char *)f->bytes + f->size, size_min(room - f->size, LONGEST_READ));
    if (n == 0) return STATUS_OK;
    if (n < 0 && errno != EINTR)
      return error_set(e, STATUS_CONFIG, "%s: %s", path, strerror(errno));
    if (n > 0) f->size += (size_t)n;
  }
  return error_set(e, STATUS_CONFIG, "%s: larger than %zu bytes", path, limit);
}

int file_open(const char *path, uint64_t *size, struct error *e) {
  /* Without O_NONBLOCK opening a pipe in place of a checkpoint would wait for a writer. */
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat about;
  if (fd < 0 || fstat(fd, &about) != 0) {
    error_set(e, STATUS_CONFIG, "%s", strerror(errno));
  } else if (S_ISDIR(about.st_mode)) {
    error_set(e, STATUS_CONFIG, "is a directory");
  } else if (!S_ISREG(about.st_mode)) {
    error_set(e, STATUS_CONFIG, "is not a regular file");
  } else {
    *size = (uint64_t)about.st_size;
    return fd;
  }
  if (fd >= 0) close(fd);
  return -1;
}

struct file_stamp file_stamp(int fd) {
  struct stat about = {0};
  fstat(fd, &about);
  return (struct file_stamp){about.st_mtim.tv_sec, about.st_mtim.tv_nsec, (uint64_t)about.st_size};
}

bool file_is_unchanged(int fd, const struct file_stamp *since) {
  const struct file_stamp now = file_stamp(fd);
  return now.seconds == since->seconds && now.nanoseconds == since->nanoseconds &&
         now.size == since->size;
}

enum status file_read_at(int fd, uint64_t at, void *out, size_t size, struct error *e) {
  for (size_t got = 0; got < size;) {
    const ssize_t n =
        pread(fd, (char *)out + got, size_min(size - got, LONGEST_READ), (off_t)(at + got));
    if (n == 0) return error_set(e, STATUS_CONFIG, "the file has become shorter while it was read");
    if (n < 0 && errno != EINTR)
      return error_set(e, STATUS_CONFIG, "the file cannot be read: %s", strerror(errno));
    if (n > 0) got += (size_t)n;
  }
  return STATUS_OK;
}

/* Opens a file or a pipe to be read from its beginning to its end. *size is 0 if it is unknown. */
static int open_file_or_pipe(const char *path, uint64_t *size, struct error *e) {
  struct stat about;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  *size = 0;
  if (fd >= 0 && fstat(fd, &about) == 0 && !S_ISDIR(about.st_mode)) {
    if (S_ISREG(about.st_mode)) *size = (uint64_t)about.st_size;
    return fd;
  }
  error_set(e, STATUS_CONFIG, "%s", fd >= 0 ? "is a directory" : strerror(errno));
  if (fd >= 0) close(fd);
  return -1;
}

/* Reads a whole document of at most `most` bytes. */
static enum status read_bytes(const char *path, bool pipe, size_t most, struct file_bytes *f,
                              struct error *e) {
  *f = (struct file_bytes){0};
  const char *shown = text_tail(path);
  uint64_t expected;
  const int fd = pipe ? open_file_or_pipe(path, &expected, e) : file_open(path, &expected, e);
  if (fd < 0) return text_before(e, "%s: ", shown);
  read_to_end(fd, (size_t)(expected < most ? expected : most), most, shown, f, e);
  close(fd);
  if (e->status) file_free(f);
  return e->status;
}

typedef json_t *loader(const char *text, size_t size, json_error_t *why, bool *no_memory);

static json_t *read_document(const char *path, bool pipe, size_t most, loader *load,
                             struct error *e) {
  struct file_bytes f;
  json_t *document = NULL;
  json_error_t fault;
  bool no_memory;
  const char *shown = text_tail(path);
  if (read_bytes(path, pipe, most, &f, e)) return NULL;
  /* Jansson would take a NUL inside a document for its end. */
  const char *nul = memchr(f.bytes, '\0', f.size);
  if (nul) {
    size_t line = 1;
    for (const char *at = f.bytes; at < nul; at++) line += *at == '\n';
    error_set(e, STATUS_CONFIG, "%s, line %zu: a NUL byte", shown, line);
  } else if (f.size >= 3 && memcmp(f.bytes, "\xef\xbb\xbf", 3) == 0) {
    error_set(e, STATUS_CONFIG, "%s: begins with a byte order mark: save it without one", shown);
  } else {
    document = load(f.bytes, f.size, &fault, &no_memory);
    if (no_memory)
      error_set(e, STATUS_OUT_OF_MEMORY, "%s: no memory for what is in it", shown);
    else if (!document)
      error_set(e, STATUS_CONFIG, "%s, line %d, column %d: %s", shown, fault.line, fault.column,
                fault.text);
  }
  file_free(&f);
  text_plain(e);
  return document;
}

json_t *file_json(const char *path, struct error *e) {
  return read_document(path, false, DOCUMENT_MAX, json_reserve_load, e);
}

json_t *file_json_long(const char *path, struct error *e) {
  return read_document(path, false, LONG_DOCUMENT_MAX, json_reserve_load, e);
}

json_t *file_json_reals(const char *path, struct error *e) {
  return read_document(path, false, DOCUMENT_MAX, json_reserve_load_reals, e);
}

json_t *file_json_or_pipe(const char *path, struct error *e) {
  return read_document(path, true, DOCUMENT_MAX, json_reserve_load, e);
}

char *file_data(const char *path, size_t *size, struct error *e) {
  struct file_bytes f;
  if (read_bytes(path, false, LONG_DOCUMENT_MAX, &f, e)) return NULL;
  *size = f.size;
  return f.bytes;
}

char *file_text(const char *path, size_t *length, struct error *e) {
  char *text = file_data(path, length, e);
  if (!text || text_is_utf8(text, *length)) return text;
  error_set(e, STATUS_CONFIG, "%s: is not UTF-8", text_tail(path));
  free(text);
  return NULL;
}

bool file_is_there(const char *path) {
  struct stat about;
  return lstat(path, &about) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

bool file_is_folder(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

char *file_path(const char *directory, const char *path) {
  char *joined = NULL;
  while (strncmp(path, "./", 2) == 0 && path[2] && path[2] != '/') path += 2;
  if (path[0] == '/' || strcmp(directory, ".") == 0) return strdup(path);
  return asprintf(&joined, "%s/%s", directory, path) < 0 ? NULL : joined;
}

char *file_folder(const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash) return strdup(".");
  return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

char *file_beside(const char *path, const char *name) {
  const char *slash = strrchr(path, '/');
  const int folder = slash ? (int)(slash - path) + 1 : 0;
  char *joined = NULL;
  return asprintf(&joined, "%.*s%s", folder, path, name) < 0 ? NULL : joined;
}
