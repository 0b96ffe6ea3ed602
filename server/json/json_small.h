/* json_small: Jansson on a small value, so that no failing allocation goes unnoticed.
 *
 * While Jansson reads, an allocation that fails is served from a reserve on the stack, and the
 * value is given up afterwards. */
#ifndef SERVER_JSON_SMALL_H
#define SERVER_JSON_SMALL_H

#include "config/document/json_reserve.h"
#include "core/base/arena.h"

enum { JSON_SMALL_MAX = 512 }; /* bytes of text */

/* Parses a value of at most JSON_SMALL_MAX bytes, which is at `offset` of the body and whose JSON
 * Pointer is `pointer`. NULL with an error. */
json_t *json_small_parse(const char *text, size_t length, size_t offset, const char *pointer,
                         struct error *e);

/* The same for a text of any length. While it is read, some hundred bytes for each of it are
 * charged to the budget of the arena, beside what that has. */
json_t *json_small_parse_long(const char *text, size_t length, size_t offset, const char *pointer,
                              const struct arena *beside, struct error *e);

/* Is the value this text? */
bool json_small_is_text(const json_t *value, const char *text);

/* Bytes of reserve for each byte of text, so that it is read to its end. Jansson takes up to 77
 * ("{},{},..."). */
enum { JSON_RESERVE_TIMES = 96 };

#endif
