/* json_small: Jansson on a small value, so that no failing allocation goes unnoticed. */
#include "server/body/json_small.h"

#include <stdalign.h>
#include <stddef.h>
#include <string.h>

#include "core/run/status.h"

json_t *json_small_load(const char *text, size_t length, size_t flags, json_error_t *why,
                        bool *no_memory) {
  must(length <= JSON_SMALL_MAX);
  alignas(max_align_t) char room[JSON_RESERVE_TIMES * JSON_SMALL_MAX];
  struct json_reserve mine = {.room = room, .size = sizeof room};
  json_reserve_begin(&mine);
  json_t *value = json_loadb(text, length, flags, why);
  *no_memory = mine.used > 0;
  if (*no_memory) {
    json_decref(value);
    value = NULL;
  }
  json_reserve_end();
  return value;
}

bool json_is_text(const json_t *value, const char *text) {
  return json_is_string(value) && json_string_length(value) == strlen(text) &&
         memcmp(json_string_value(value), text, strlen(text)) == 0;
}
