/* npz_make: zip archives of arrays for tests. */
#include "tests/support/npz_make.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

#include "core/base/status.h"

struct npy_made npy_make(unsigned major, const char *literal, const void *data, size_t size) {
  const size_t length = strlen(literal), prefix = major == 1 ? 10 : 12;
  struct npy_made m = {.size = prefix + length + size};
  m.bytes = malloc(m.size);
  must(m.bytes);
  memcpy(m.bytes, "\x93NUMPY", 6);
  m.bytes[6] = (unsigned char)major;
  m.bytes[7] = 0;
  for (size_t i = 8; i < prefix; i++) m.bytes[i] = (unsigned char)(length >> 8 * (i - 8));
  memcpy(m.bytes + prefix, literal, length);
  if (size > 0) memcpy(m.bytes + prefix + length, data, size);
  return m;
}

struct npy_made npy_make_floats(size_t rows, size_t columns) {
  const size_t count = rows * (columns ? columns : 1);
  char literal[128], shape[64];
  float *numbers = malloc(count * sizeof *numbers);
  must(numbers);
  for (size_t i = 0; i < count; i++) numbers[i] = 1.0f + (float)i / 16.0f;
  snprintf(shape, sizeof shape, columns ? "%zu, %zu" : "%zu,", rows, columns);
  snprintf(literal, sizeof literal, "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }\n",
           shape);
  struct npy_made m = npy_make(1, literal, numbers, count * sizeof *numbers);
  free(numbers);
  return m;
}

struct npz_made npz_make(const char *path) {
  struct npz_made z = {.archive = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, NULL), .path = path};
  must(z.archive);
  return z;
}

static zip_int64_t add(struct npz_made *z, const char *member, struct npy_made npy, int method) {
  zip_source_t *source = zip_source_buffer(z->archive, npy.bytes, npy.size, 1);
  must(source);
  const zip_int64_t at = zip_file_add(z->archive, member, source, ZIP_FL_ENC_UTF_8);
  must(at >= 0 && zip_set_file_compression(z->archive, (zip_uint64_t)at, method, 0) == 0);
  must(zip_file_set_mtime(z->archive, (zip_uint64_t)at, 1000000000, 0) == 0); /* no seed differs */
  return at;
}

void npz_add(struct npz_made *z, const char *member, struct npy_made npy, int method) {
  add(z, member, npy, method);
}

void npz_add_encrypted(struct npz_made *z, const char *member, struct npy_made npy) {
  const zip_int64_t at = add(z, member, npy, NPZ_STORED);
  must(zip_file_set_encryption(z->archive, (zip_uint64_t)at, ZIP_EM_AES_256, "word") == 0);
}

void npz_write(struct npz_made *z) { must(zip_close(z->archive) == 0); }
