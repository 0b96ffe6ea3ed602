/* endpoint_json: what the endpoints make of JSON values. */
#include "server/http/endpoint_json.h"

#include <jansson.h>
#include <stdlib.h>

/* Measured, then written: where json_dumps has no memory for a key it leaves the key out. */
char *endpoint_dump(json_t *value, size_t *length) {
  *length = value ? json_dumpb(value, NULL, 0, JSON_COMPACT) : 0;
  char *text = *length ? calloc(*length + 1, 1) : NULL;
  if (text && json_dumpb(value, text, *length, JSON_COMPACT) != *length) {
    free(text);
    text = NULL;
  }
  json_decref(value);
  return text;
}

char *endpoint_list(const struct registry *r, json_t *tell(const struct model *), size_t *length) {
  json_t *list = json_array();
  bool good = list != NULL;
  for (size_t i = 0; good && i < registry_count(r); i++)
    good = json_array_append_new(list, tell(registry_at(r, i))) == 0;
  if (good) return endpoint_dump(json_pack("{s:o}", "models", list), length);
  json_decref(list);
  return NULL;
}
