/* description_parts: how the JSON of descriptions is made. Everywhere NULL, or false, means that
 * there was no memory. Private to the files of this folder. */
#ifndef SERVER_DESCRIPTION_PARTS_H
#define SERVER_DESCRIPTION_PARTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Adds a member and drops the value. */
static inline bool add_member(json_t *object, const char *key, json_t *value) {
  return json_object_set_new(object, key, value) == 0;
}

/* Adds a number that only some models have: 0 is none. */
static inline bool add_size(json_t *object, const char *key, size_t size) {
  return size == 0 || add_member(object, key, json_integer((json_int_t)size));
}

/* The object if it is complete, else NULL; then drops it. */
static inline json_t *complete(json_t *object, bool good) {
  if (object && good) return object;
  json_decref(object);
  return NULL;
}

/* A list of the items that `item` makes from `of`. */
static inline json_t *make_list(size_t count, json_t *item(const void *of, size_t i),
                                const void *of) {
  json_t *list = json_array();
  bool good = true;
  for (size_t i = 0; good && i < count; i++) good = json_array_append_new(list, item(of, i)) == 0;
  return complete(list, good);
}

/* Adds the rotary positions, unless there are none. */
static inline bool add_rope(json_t *to, double base) {
  return !(base > 0) || add_member(to, "rope", json_pack("{s:f}", "base", base));
}

#endif
