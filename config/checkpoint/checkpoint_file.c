/* checkpoint_file: a safetensors file, of which only what is asked for is read, or an archive. */
#include "config/checkpoint/checkpoint_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/checkpoint/checkpoint_other.h"
#include "config/checkpoint/npz.h"
#include "config/document/file.h"

struct checkpoint_file {
  int fd;
  struct file_stamp stamp;    /* when it was opened */
  uint64_t data;              /* where the data begin in a safetensors file */
  struct safetensors *header; /* NULL: an archive */
  struct npz *archive;
};

static enum status read_safetensors_header(struct checkpoint_file *f, const unsigned char *front,
                                           size_t known, uint64_t size, struct error *e) {
  size_t length;
  if (safetensors_measure(front, SAFETENSORS_UNKNOWN, SAFETENSORS_HEADER_MAX, &length, e))
    return checkpoint_other_file(front, known, e);
  if (safetensors_measure(front, size, SAFETENSORS_HEADER_MAX, &length, e)) return e->status;
  char *text = malloc(length + 1);
  if (!text) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a header");
  f->data = SAFETENSORS_PREFIX + length;
  if (file_read_at(f->fd, SAFETENSORS_PREFIX, text, length, e) == STATUS_OK)
    f->header = safetensors_parse(text, length, size - f->data, e);
  free(text);
  return e->status;
}

/* As the length of a header an archive's first bytes would be 67 or 101 million: nobody's. */
static enum status read_first_bytes(struct checkpoint_file *f, uint64_t size, struct error *e) {
  unsigned char front[CHECKPOINT_OTHER_BYTES];
  const size_t known = size < sizeof front ? (size_t)size : sizeof front;
  if (size < SAFETENSORS_PREFIX)
    return error_set(e, STATUS_CONFIG, "too short for a safetensors file: %ju bytes",
                     (uintmax_t)size);
  if (file_read_at(f->fd, 0, front, known, e)) return e->status;
  if (!npz_begins(front, known)) return read_safetensors_header(f, front, known, size, e);
  f->archive = npz_open(f->fd, size, e);
  return e->status;
}

struct checkpoint_file *checkpoint_file_open(const char *path, struct error *e) {
  uint64_t size;
  struct checkpoint_file *f = calloc(1, sizeof *f);
  if (!f) {
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a file");
    return NULL;
  }
  f->fd = file_open(path, &size, e);
  if (f->fd < 0) checkpoint_other_folder(path, e);
  if (f->fd >= 0) f->stamp = file_stamp(f->fd);
  if (f->fd >= 0 && read_first_bytes(f, size, e) == STATUS_OK) return f;
  checkpoint_file_free(f);
  return NULL;
}

void checkpoint_file_free(struct checkpoint_file *f) {
  if (!f) return;
  npz_free(f->archive);
  safetensors_free(f->header);
  if (f->fd >= 0) close(f->fd);
  free(f);
}

bool checkpoint_file_is_archive(const struct checkpoint_file *f) { return f->archive; }

size_t checkpoint_file_count(const struct checkpoint_file *f) {
  return f->header ? safetensors_count(f->header) : npz_count(f->archive);
}

struct checkpoint_entry checkpoint_file_entry(const struct checkpoint_file *f, size_t index) {
  struct checkpoint_entry entry;
  if (f->header) {
    const struct safetensors_entry *t = safetensors_at(f->header, index);
    entry = (struct checkpoint_entry){.name = t->name,
                                      .dtype = t->dtype,
                                      .rank = t->rank,
                                      .count = t->count,
                                      .begin = f->data + t->begin,
                                      .bytes = t->bytes};
    memcpy(entry.dim, t->dim, sizeof entry.dim);
  } else {
    const struct npz_array *t = npz_at(f->archive, index);
    entry = (struct checkpoint_entry){.name = t->name,
                                      .dtype = t->about.dtype,
                                      .rank = t->about.rank,
                                      .count = t->about.count,
                                      .by_columns = t->about.by_columns,
                                      .begin = index,
                                      .bytes = t->bytes};
    memcpy(entry.dim, t->about.dim, sizeof entry.dim);
  }
  return entry;
}

enum status checkpoint_file_read(struct checkpoint_file *f, const struct checkpoint_entry *t,
                                 uint64_t from, void *out, size_t size, struct error *e) {
  must(from <= t->bytes && size <= t->bytes - from);
  if (f->header) return file_read_at(f->fd, t->begin + from, out, size, e);
  return npz_read(f->archive, (size_t)t->begin, from, out, size, e);
}

enum status checkpoint_file_check_unchanged(const struct checkpoint_file *f, struct error *e) {
  const struct file_stamp now = file_stamp(f->fd), then = f->stamp;
  if (now.seconds == then.seconds && now.nanoseconds == then.nanoseconds && now.size == then.size)
    return STATUS_OK;
  return error_set(e, STATUS_CONFIG,
                   "the file was written to while it was read: replace a checkpoint by renaming");
}
