/* json_small: Jansson on a small value, so that no failing allocation goes unnoticed. */
#include "server/json_small.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "core/size.h"
#include "core/status.h"

/* The reserve of the value that this thread is reading, if it is reading one. */
static _Thread_local struct json_reserve *reserve;

static void *take(size_t size) {
  void *p = malloc(size);
  if (p || !reserve) return p;
  size = size_round_up(size_max(size, 1), alignof(max_align_t));
  if (size > reserve->size - reserve->used) return NULL;
  p = reserve->room + reserve->used;
  reserve->used += size;
  return p;
}

static void give(void *p) {
  const char *c = p;
  if (reserve && c >= reserve->room && c < reserve->room + reserve->size) return;
  free(p);
}

void json_small_init(void) { json_set_alloc_funcs(take, give); }

void json_reserve_begin(struct json_reserve *r) {
  must(!reserve);
  reserve = r;
}

void json_reserve_end(void) { reserve = NULL; }

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
