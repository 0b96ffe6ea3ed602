/* json_small: Jansson on a small value, so that no failing allocation goes unnoticed. */
#include "server/json/json_small.h"

#include <stdalign.h>
#include <stddef.h>
#include <string.h>

/* json_loadb with a reserve. NULL with *no_memory set, or with `why` filled. */
static json_t *load_value(const char *text, size_t length, struct json_reserve *reserve,
                          json_error_t *why, bool *no_memory) {
  json_reserve_begin(reserve);
  json_t *value =
      json_loadb(text, length, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, why);
  *no_memory = reserve->used > 0;
  if (*no_memory) {
    json_decref(value);
    value = NULL;
  }
  json_reserve_end();
  return value;
}

/* Refuses a value that Jansson cannot parse. Unless it comes from safetensors, its text is known to
 * be JSON. */
static void refuse_parsed(size_t offset, const char *pointer, const json_error_t *why,
                          struct error *e) {
  switch (json_error_code(why)) {
  case json_error_duplicate_key:
    error_at(e, pointer, "duplicate key in one object");
    break;
  case json_error_null_byte_in_key:
    error_at(e, pointer, "a key with a NUL character");
    break;
  case json_error_numeric_overflow:
    error_at(e, pointer, "a number is out of range");
    break;
  default:
    error_json(e, offset, "the value is not JSON");
  }
}

static json_t *parse_value(const char *text, size_t length, size_t offset, const char *pointer,
                           struct json_reserve *reserve, struct error *e) {
  json_error_t why = {0};
  bool no_memory;
  json_t *value = load_value(text, length, reserve, &why, &no_memory);
  if (no_memory)
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a field");
  else if (!value)
    refuse_parsed(offset, pointer, &why, e);
  return value;
}

json_t *json_small_parse(const char *text, size_t length, size_t offset, const char *pointer,
                         struct error *e) {
  must(length <= JSON_SMALL_MAX);
  alignas(max_align_t) char room[JSON_RESERVE_TIMES * JSON_SMALL_MAX];
  struct json_reserve mine = {.room = room, .size = sizeof room};
  return parse_value(text, length, offset, pointer, &mine, e);
}

json_t *json_small_parse_long(const char *text, size_t length, size_t offset, const char *pointer,
                              const struct arena *beside, struct error *e) {
  struct arena a;
  arena_init(&a, beside->budget);
  a.beside = beside->bytes;
  struct json_reserve mine = {.size = JSON_RESERVE_TIMES * length};
  mine.room = arena_alloc(&a, JSON_RESERVE_TIMES, length, e);
  json_t *value = mine.room ? parse_value(text, length, offset, pointer, &mine, e) : NULL;
  arena_free(&a);
  return value;
}

bool json_small_is_text(const json_t *value, const char *text) {
  return json_is_string(value) && json_string_length(value) == strlen(text) &&
         memcmp(json_string_value(value), text, strlen(text)) == 0;
}
