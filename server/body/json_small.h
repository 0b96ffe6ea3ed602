/* json_small: Jansson on a small value, so that no failing allocation goes unnoticed.
 *
 * While it reads one, an allocation that fails is served from a reserve on the stack, and
 * afterwards the value is given up. */
#ifndef SERVER_JSON_SMALL_H
#define SERVER_JSON_SMALL_H

#include "config/document/json_reserve.h"

enum { JSON_SMALL_MAX = 512 }; /* bytes of text */

/* json_loadb for at most JSON_SMALL_MAX bytes. NULL with *no_memory set, or with `why` filled. */
json_t *json_small_load(const char *text, size_t length, size_t flags, json_error_t *why,
                        bool *no_memory);

/* Is the value this text? */
bool json_is_text(const json_t *value, const char *text);

/* How much of a reserve a text takes that is read to its end. Jansson takes up to 77 times the text
 * ("{},{},..."). */
enum { JSON_RESERVE_TIMES = 96 };

#endif
