/* checkpoint_file: opens a safetensors file, an .npz archive or a PyTorch file, and recognizes
 * other formats to explain their rejection. */
#include "config/checkpoint/checkpoint_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/checkpoint/npz.h"
#include "config/checkpoint/torch_file.h"
#include "config/document/file.h"
#include "config/document/text.h"

enum { FRONT_SIZE = 64 }; /* the first bytes of a file, which show its kind */

struct checkpoint_file {
  int fd;
  struct file_stamp stamp;    /* at its opening */
  const unsigned char *bytes; /* of a file in memory, or NULL */
  uint64_t data;              /* offset of the data of a safetensors file */
  /* One of these describes the tensors. */
  struct safetensors *header;
  struct npz *npz;
  struct torch_file *torch;
  struct archive *archive; /* of `npz` */
};

/* --- other formats --- */

/* Replaces the reason in `e` by the name of the format, if the first bytes of a rejected file show
 * it. */
static enum status explain_first_bytes(const unsigned char *bytes, size_t size, struct error *e) {
  static const struct {
    const char *begin, *is;
  } known[] = {
      {"\x93NUMPY", "is a .npy file with one array: save all arrays with numpy.savez"},
      {"\x89HDF", "is an HDF5 file, which is not supported: use safetensors or .npz"},
      {"GGUF", "is a GGUF file, which is not supported: use the safetensors version of the model"},
      {"version https://git-lfs", "is a Git LFS pointer: run git lfs pull"},
  };
  const char *is = NULL;
  size_t blanks = 0;
  while (blanks < size && memchr(" \t\r\n", bytes[blanks], 4)) blanks++;
  if (blanks < size && (bytes[blanks] == '{' || bytes[blanks] == '['))
    is = "is JSON, but not an index of shards (*.index.json)";
  for (size_t i = 0; i < sizeof known / sizeof *known && !is; i++) {
    const size_t length = strlen(known[i].begin);
    if (size >= length && memcmp(bytes, known[i].begin, length) == 0) is = known[i].is;
  }
  /* A pickle of protocols 2 to 5; older ones cannot be recognized. */
  if (size >= 2 && bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5)
    is = "is a pickle outside a zip archive, as torch.save wrote before PyTorch 1.6, which is not "
         "supported: load it with torch.load(..., weights_only=True) and save it again with "
         "torch.save";
  if (e->status != STATUS_CONFIG || !is) return e->status;
  *e = (struct error){0};
  return error_set(e, STATUS_CONFIG, "%s", is);
}

/* --- the file --- */

static enum status read_at(const struct checkpoint_file *f, uint64_t at, void *out, size_t size,
                           struct error *e) {
  if (!f->bytes) return file_read_at(f->fd, at, out, size, e);
  memcpy(out, f->bytes + at, size);
  return STATUS_OK;
}

static enum status read_safetensors_header(struct checkpoint_file *f, const unsigned char *front,
                                           size_t known, uint64_t size, struct error *e) {
  size_t length;
  if (safetensors_measure(front, SAFETENSORS_UNKNOWN, SAFETENSORS_HEADER_MAX, &length, e))
    return explain_first_bytes(front, known, e);
  if (safetensors_measure(front, size, SAFETENSORS_HEADER_MAX, &length, e)) return e->status;
  char *text = malloc(length + 1);
  if (!text) return error_no_memory(e);
  f->data = SAFETENSORS_PREFIX + length;
  if (read_at(f, SAFETENSORS_PREFIX, text, length, e) == STATUS_OK)
    f->header = safetensors_parse(text, length, size - f->data, e);
  free(text);
  return e->status;
}

static enum status open_archive(struct checkpoint_file *f, uint64_t size, struct error *e) {
  f->archive = archive_open(f->fd, size, e);
  if (f->archive && torch_file_is(f->archive, e)) {
    f->torch = torch_file_open(f->archive, f->fd, size, e);
    archive_free(f->archive);
    f->archive = NULL;
  } else if (f->archive && !e->status) {
    f->npz = npz_open(f->archive, e);
  }
  return e->status;
}

/* Opens the container by the first bytes. Those of an archive, read as the length of a header,
 * would mean 67 or 101 million bytes, which no checkpoint has. */
static enum status read_first_bytes(struct checkpoint_file *f, uint64_t size, struct error *e) {
  unsigned char front[FRONT_SIZE];
  const size_t known = size < sizeof front ? (size_t)size : sizeof front;
  if (size < SAFETENSORS_PREFIX)
    return error_set(e, STATUS_CONFIG, "too short for a safetensors file: %ju bytes",
                     (uintmax_t)size);
  if (file_read_at(f->fd, 0, front, known, e)) return e->status;
  if (archive_begins(front, known)) return open_archive(f, size, e);
  return read_safetensors_header(f, front, known, size, e);
}

static struct checkpoint_file *new_file(struct error *e) {
  struct checkpoint_file *f = calloc(1, sizeof *f);
  if (!f) {
    error_no_memory(e);
    return NULL;
  }
  f->fd = -1;
  return f;
}

struct checkpoint_file *checkpoint_file_view(const void *bytes, size_t size, struct error *e) {
  struct checkpoint_file *f = new_file(e);
  if (!f) return NULL;
  must(size >= SAFETENSORS_PREFIX);
  f->bytes = bytes;
  if (read_safetensors_header(f, bytes, 0, size, e) == STATUS_OK) return f;
  checkpoint_file_free(f);
  return NULL;
}

struct checkpoint_file *checkpoint_file_open(const char *path, struct error *e) {
  uint64_t size;
  struct checkpoint_file *f = new_file(e);
  if (!f) return NULL;
  f->fd = file_open(path, &size, e);
  if (f->fd >= 0) f->stamp = file_stamp(f->fd);
  if (f->fd >= 0 && read_first_bytes(f, size, e) == STATUS_OK) return f;
  checkpoint_file_free(f);
  return NULL;
}

void checkpoint_file_free(struct checkpoint_file *f) {
  if (!f) return;
  torch_file_free(f->torch);
  npz_free(f->npz);
  archive_free(f->archive);
  safetensors_free(f->header);
  if (f->fd >= 0) close(f->fd);
  free(f);
}

const char *checkpoint_file_container(const struct checkpoint_file *f) {
  return f->header ? "a safetensors file" : f->npz ? "an .npz archive" : "a PyTorch file";
}

bool checkpoint_file_reads_anywhere(const struct checkpoint_file *f) {
  return f->header || (f->torch && torch_file_reads_anywhere(f->torch));
}

size_t checkpoint_file_count(const struct checkpoint_file *f) {
  return f->header ? safetensors_count(f->header)
         : f->npz  ? npz_count(f->npz)
                   : torch_file_count(f->torch);
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
  } else if (f->npz) {
    const struct npz_array *t = npz_at(f->npz, index);
    entry = (struct checkpoint_entry){.name = t->name,
                                      .dtype = t->about.dtype,
                                      .rank = t->about.rank,
                                      .count = t->about.count,
                                      .by_columns = t->about.by_columns,
                                      .begin = index,
                                      .bytes = t->bytes};
    memcpy(entry.dim, t->about.dim, sizeof entry.dim);
  } else {
    const struct torch_tensor *t = torch_file_at(f->torch, index);
    entry = (struct checkpoint_entry){.name = t->name,
                                      .dtype = t->dtype,
                                      .rank = t->rank,
                                      .count = t->count,
                                      .begin = index,
                                      .bytes = t->bytes};
    memcpy(entry.dim, t->dim, sizeof entry.dim);
  }
  return entry;
}

enum status checkpoint_file_read(struct checkpoint_file *f, const struct checkpoint_entry *t,
                                 uint64_t from, void *out, size_t size, struct error *e) {
  must(from <= t->bytes && size <= t->bytes - from);
  if (f->header) return read_at(f, t->begin + from, out, size, e);
  if (f->npz) return npz_read(f->npz, (size_t)t->begin, from, out, size, e);
  return torch_file_read(f->torch, (size_t)t->begin, from, out, size, e);
}

enum status checkpoint_file_check_unchanged(const struct checkpoint_file *f, struct error *e) {
  if (f->bytes || file_is_unchanged(f->fd, &f->stamp)) return STATUS_OK;
  return error_set(e, STATUS_CONFIG,
                   "the file was written to while it was read: replace a checkpoint by renaming");
}
