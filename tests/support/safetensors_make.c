/* safetensors_make: checkpoint files for tests. */
#include "tests/support/safetensors_make.h"

#include <endian.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"

void made_add_bytes(struct made *m, const char *name, const char *dtype, const char *shape,
                    const void *bytes, size_t size) {
  size_t used = strlen(m->header);
  int n = snprintf(m->header + used, sizeof m->header - used,
                   "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}",
                   used ? "," : "", name, dtype, shape, m->data_size, m->data_size + size);
  must(n > 0 && (size_t)n < sizeof m->header - used);
  m->data = realloc(m->data, m->data_size + size + 1);
  must(m->data);
  if (size > 0) memcpy(m->data + m->data_size, bytes, size);
  m->data_size += size;
}

void made_add(struct made *m, const char *name, size_t rows, size_t columns) {
  size_t count = rows * (columns ? columns : 1);
  char shape[64];
  uint32_t *words = malloc(count * sizeof *words + 1);
  must(words);
  for (size_t i = 0; i < count; i++) {
    float value = 1.0f + (float)i / 16.0f;
    memcpy(&words[i], &value, sizeof value);
    words[i] = htole32(words[i]);
  }
  if (columns) {
    snprintf(shape, sizeof shape, "[%zu,%zu]", rows, columns);
  } else {
    snprintf(shape, sizeof shape, "[%zu]", rows);
  }
  made_add_bytes(m, name, "F32", shape, words, count * sizeof *words);
  free(words);
}

static void join(struct made *m, const void *header, size_t header_size, const void *data,
                 size_t data_size) {
  uint64_t length = htole64(header_size);
  m->size = 8 + header_size + data_size;
  m->bytes = calloc(1, m->size);
  must(m->bytes);
  memcpy(m->bytes, &length, 8);
  memcpy(m->bytes + 8, header, header_size);
  if (data) memcpy(m->bytes + 8 + header_size, data, data_size);
}

void made_finish(struct made *m) {
  char header[sizeof m->header + 2];
  int n = snprintf(header, sizeof header, "{%s}", m->header);
  join(m, header, (size_t)n, m->data, m->data_size);
}

void made_raw(struct made *m, const void *header, size_t header_size, size_t data_size) {
  *m = (struct made){0};
  join(m, header, header_size, NULL, data_size);
}

void made_write(const struct made *m, const char *path) {
  FILE *out = fopen(path, "wb");
  must(out && fwrite(m->bytes, 1, m->size, out) == m->size && fclose(out) == 0);
}

void made_free(struct made *m) {
  free(m->bytes);
  free(m->data);
  *m = (struct made){0};
}
