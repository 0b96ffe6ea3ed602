/* endpoint_json: what the endpoints make of JSON values. */
#include "server/endpoint_json.h"

#include <jansson.h>
#include <string.h>

char *endpoint_dump(json_t *value, size_t *length) {
  char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
  json_decref(value);
  if (text) *length = strlen(text);
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
