/* json_small: names and small values of a body: collected chunk by chunk, then parsed by Jansson.
 */
#include "server/json/json_small.h"

#include <stdalign.h>
#include <stddef.h>
#include <string.h>

#include "core/base/size.h"

/* --- collecting --- */

void small_text_begin(struct small_text *t, size_t offset) {
  small_text_begin_long(t, offset, JSON_SMALL_MAX, NULL);
}

void small_text_begin_long(struct small_text *t, size_t offset, size_t most, struct arena *a) {
  json_skim_begin(&t->skim);
  t->offset = offset;
  t->length = 0;
  t->most = most;
  t->lost = false;
  t->text = t->own;
  t->room = sizeof t->own;
  t->arena = a;
}

size_t small_text_feed(struct small_text *t, const char *text, size_t length, size_t offset,
                       bool *complete, struct error *e) {
  const size_t left = t->most - t->length;
  if (!t->lost) length = size_min(length, left + 1);
  const size_t used = json_skim_feed(&t->skim, text, length, offset, complete, e);
  if (t->lost) return used;
  const size_t kept = size_min(used, left), needed = t->length + kept;
  if (needed > t->room) {
    const bool was_own = t->text == t->own;
    size_t room = size_min(size_max(needed, 2 * t->room), t->most);
    char *grown = arena_grow(t->arena, was_own ? NULL : t->text, &room, 1, e);
    if (!grown) return used;
    if (was_own) memcpy(grown, t->own, t->length);
    t->text = grown;
    t->room = room;
  }
  t->lost = used > left;
  memcpy(t->text + t->length, text, kept);
  t->length = needed;
  return used;
}

/* --- parsing --- */

/* Parses the text while allocations that fail are served from the reserve. Except for text from
 * safetensors, its syntax has been checked. */
static json_t *parse_value(const char *text, size_t length, size_t offset, const char *pointer,
                           struct json_reserve *reserve, struct error *e) {
  json_error_t why = {0};
  json_reserve_begin(reserve);
  json_t *value =
      json_loadb(text, length, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
  const bool no_memory = reserve->used > 0;
  if (no_memory) json_decref(value); /* its memory is part of the reserve, which ends here */
  json_reserve_end();
  if (no_memory) {
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a field");
    return NULL;
  }
  if (value) return value;
  switch (json_error_code(&why)) {
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
  return NULL;
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
  a.beside = beside->bytes + beside->beside;
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
