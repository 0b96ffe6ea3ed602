/* metadata: reads the front of a safetensors file. */
#include "tests/support/metadata.h"

#include <stdio.h>
#include <stdlib.h>

#include "config/checkpoint/safetensors.h"
#include "core/base/status.h"

json_t *metadata_json(const char *path, const char *key) {
  unsigned char prefix[SAFETENSORS_PREFIX];
  size_t length;
  struct error e = {0};
  FILE *in = fopen(path, "rb");
  must(in && fread(prefix, 1, sizeof prefix, in) == sizeof prefix);
  must(safetensors_measure(prefix, SAFETENSORS_UNKNOWN, SAFETENSORS_HEADER_MAX, &length, &e) ==
       STATUS_OK);
  char *text = malloc(length + 1);
  must(text && fread(text, 1, length, in) == length);
  fclose(in);
  json_t *header = json_loadb(text, length, 0, NULL);
  const json_t *metadata = json_object_get(header, "__metadata__");
  json_t *value = json_loads(json_string_value(json_object_get(metadata, key)), 0, NULL);
  must(value);
  json_decref(header);
  free(text);
  return value;
}
