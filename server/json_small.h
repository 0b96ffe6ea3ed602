/* json_small: Jansson on a small value, so that no failing allocation goes unnoticed.
 *
 * Jansson 2.14 does not look whether the buffer for a token's text could grow: out of memory it
 * loses bytes, and then refuses a value that is right, takes another one for it, or aborts. So
 * while it reads a small value, an allocation that fails is served from a reserve on the stack, and
 * afterwards the value is given up. */
#ifndef SERVER_JSON_SMALL_H
#define SERVER_JSON_SMALL_H

#include <jansson.h>
#include <stdbool.h>

enum { JSON_SMALL_MAX = 512 }; /* bytes of text */

/* Gives Jansson the allocator that knows the reserve. Once, before threads start; what Jansson has
 * allocated before stays valid. */
void json_small_init(void);

/* json_loadb for at most JSON_SMALL_MAX bytes. NULL with *no_memory set, or with `why` filled. */
json_t *json_small_load(const char *text, size_t length, size_t flags, json_error_t *why,
                        bool *no_memory);

/* Is the value this text? */
bool json_is_text(const json_t *value, const char *text);

/* The same reserve for a text that is larger, or that somebody else gives to Jansson. Jansson takes
 * up to 77 times the text ("{},{},..."), and the reserve gets nothing back. */
enum { JSON_RESERVE_TIMES = 96 };

struct json_reserve {
  char *room;        /* aligned for anything */
  size_t size, used; /* bytes; `used` is 0 at first. If it is not afterwards, memory ran out */
};

/* Between the two, on this thread, allocations that fail are served from the reserve. Where it was
 * used, all that was made meanwhile is given up before the end. */
void json_reserve_begin(struct json_reserve *r);
void json_reserve_end(void);

#endif
