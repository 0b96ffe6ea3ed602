/* checkpoint: a safetensors file, of which only what is asked for is read. */
#include "config/checkpoint.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/file.h"
#include "config/floats.h"
#include "config/text.h"
#include "core/size.h"

enum { CHUNK = 64 * 1024 }; /* bytes converted at a time */

struct checkpoint {
  int fd;
  char *path;
  uint64_t data; /* where the data begin in the file */
  struct safetensors *header;
  size_t count;
  struct checkpoint_entry *entry; /* [count] */
};

static enum status read_header(struct checkpoint *c, uint64_t size, struct error *e) {
  unsigned char prefix[SAFETENSORS_PREFIX];
  size_t length;
  if (size < sizeof prefix)
    return error_set(e, STATUS_CONFIG, "too short for a safetensors file: %ju bytes",
                     (uintmax_t)size);
  if (file_read_at(c->fd, c->path, 0, prefix, sizeof prefix, e) ||
      safetensors_measure(prefix, size, SAFETENSORS_HEADER_MAX, &length, e))
    return e->status;
  char *text = malloc(length + 1);
  if (!text) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a header");
  c->data = sizeof prefix + length;
  if (file_read_at(c->fd, c->path, sizeof prefix, text, length, e) == STATUS_OK)
    c->header = safetensors_parse(text, length, size - c->data, e);
  free(text);
  return e->status;
}

static enum status list(struct checkpoint *c, struct error *e) {
  c->count = safetensors_count(c->header);
  c->entry = calloc(c->count + 1, sizeof *c->entry);
  if (!c->entry) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the list of tensors");
  for (size_t i = 0; i < c->count; i++) {
    const struct safetensors_entry *t = safetensors_at(c->header, i);
    c->entry[i] = (struct checkpoint_entry){.name = t->name,
                                            .dtype = t->dtype,
                                            .rank = t->rank,
                                            .count = t->count,
                                            .begin = c->data + t->begin,
                                            .bytes = t->bytes};
    memcpy(c->entry[i].dim, t->dim, sizeof t->dim);
  }
  return STATUS_OK;
}

/* Where a message is about the file it begins with its name. */
static void name_file(const char *path, struct error *e) {
  char detail[ERROR_DETAIL_SIZE];
  memcpy(detail, e->detail, sizeof detail);
  snprintf(e->detail, sizeof e->detail, "%.120s: %.500s", text_tail(path), detail);
}

struct checkpoint *checkpoint_open(const char *path, struct error *e) {
  struct checkpoint *c = calloc(1, sizeof *c);
  uint64_t size;
  if (!c || !(c->path = strdup(path))) {
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a checkpoint");
    free(c);
    return NULL;
  }
  c->fd = file_open(path, &size, e);
  if (c->fd >= 0 && (read_header(c, size, e) || list(c, e))) name_file(path, e);
  if (e->status == STATUS_OK) return c;
  checkpoint_free(c);
  return NULL;
}

void checkpoint_free(struct checkpoint *c) {
  if (!c) return;
  if (c->fd >= 0) close(c->fd);
  safetensors_free(c->header);
  free(c->entry);
  free(c->path);
  free(c);
}

size_t checkpoint_count(const struct checkpoint *c) { return c->count; }

const struct checkpoint_entry *checkpoint_at(const struct checkpoint *c, size_t index) {
  return &c->entry[index];
}

const struct checkpoint_entry *checkpoint_find(const struct checkpoint *c, const char *name) {
  for (size_t i = 0; i < c->count; i++)
    if (strcmp(c->entry[i].name, name) == 0) return &c->entry[i];
  return NULL;
}

const char *checkpoint_metadata(const struct checkpoint *c, const char *key) {
  return safetensors_metadata(c->header, key);
}

enum status checkpoint_judge(const struct checkpoint_entry *t, struct error *e) {
  if (float_type_of(t->dtype) != FLOAT_NONE) return STATUS_OK;
  return error_set(e, STATUS_CONFIG,
                   "tensor \"%.100s\" is of type %.20s; F32, F16, BF16 and F64 are read", t->name,
                   t->dtype);
}

enum status checkpoint_floats(struct checkpoint *c, const struct checkpoint_entry *t,
                              uint64_t first, size_t count, float *out, struct error *e) {
  if (checkpoint_judge(t, e)) return e->status;
  const enum float_type type = float_type_of(t->dtype);
  const size_t size = float_type_size(type);
  unsigned char bytes[CHUNK];
  for (size_t n; count > 0; first += n, out += n, count -= n) {
    n = size_min(count, CHUNK / size);
    if (file_read_at(c->fd, c->path, t->begin + first * size, bytes, n * size, e)) return e->status;
    if (floats_convert(type, bytes, n, out) < n)
      return error_set(e, STATUS_CONFIG, "tensor \"%.100s\" holds a number that is %s", t->name,
                       type == FLOAT_F64 ? "not finite or beyond float32" : "not finite");
  }
  return STATUS_OK;
}
