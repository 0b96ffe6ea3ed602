/* json_reserve: Jansson on text from outside, so that no failing allocation goes unnoticed.
 *
 * Jansson 2.14 does not look whether the buffer for a token's text could grow: out of memory it
 * loses bytes, and then refuses a text that is right, takes another one for it, or aborts. So
 * while it reads, an allocation that fails is served from a reserve, and afterwards all that was
 * read is given up. */
#ifndef CONFIG_JSON_RESERVE_H
#define CONFIG_JSON_RESERVE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct json_reserve {
  char *room;        /* aligned for anything */
  size_t size, used; /* bytes; `used` is 0 at first. If it is not afterwards, memory ran out */
};

/* Gives Jansson the allocator that knows the reserve. Once, before threads start; what Jansson has
 * allocated before stays valid. */
void json_reserve_init(void);

/* Between the two, on this thread, allocations that fail are served from the reserve, which gets
 * nothing back. Where it was used, all that was made meanwhile is given up before the end. */
void json_reserve_begin(struct json_reserve *r);
void json_reserve_end(void);

/* An object or array, read strictly: no name twice, nothing behind it. NULL with *no_memory set, or
 * with `why` filled. Between json_reserve_begin and json_reserve_end the reserve that was begun
 * serves, and *no_memory is for the caller to learn from it. */
json_t *json_reserve_load(const char *text, size_t size, json_error_t *why, bool *no_memory);

#endif
