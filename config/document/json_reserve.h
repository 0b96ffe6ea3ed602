/* json_reserve: parses text from outside with Jansson, and notices every failed allocation.
 *
 * Jansson 2.14 does not check whether its buffer for a string or a number could grow: out of memory
 * it loses bytes, and then rejects a correct text, reads it as another one, or aborts. While
 * Jansson reads, therefore, an allocation that fails is served from a reserve, and the value that
 * was read is dropped afterwards. Each thread has its own reserve. */
#ifndef CONFIG_JSON_RESERVE_H
#define CONFIG_JSON_RESERVE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct json_reserve {
  char *room;        /* aligned for anything */
  size_t size, used; /* bytes; `used` is 0 at first. If it is not 0 afterwards, memory ran out */
};

/* Makes Jansson use the allocator that knows the reserve. Called once, before threads start; what
 * Jansson has allocated before stays valid. */
void json_reserve_init(void);

/* Between these two calls, allocations of this thread that fail are served from the reserve;
 * freeing them does not return memory to it. If the reserve was used, the caller drops all values
 * made in between before json_reserve_end. */
void json_reserve_begin(struct json_reserve *r);
void json_reserve_end(void);

/* Reads an object or array strictly: no name twice, nothing after it. NULL with *no_memory set, or
 * with `why` filled. Between json_reserve_begin and json_reserve_end it uses their reserve:
 * *no_memory stays false then, and the caller looks at `used`. */
json_t *json_reserve_load(const char *text, size_t size, json_error_t *why, bool *no_memory);

/* The same; integers, of any size, become reals. */
json_t *json_reserve_load_reals(const char *text, size_t size, json_error_t *why, bool *no_memory);

#endif
