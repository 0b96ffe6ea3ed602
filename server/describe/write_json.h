/* write_json: JSON made here as text. */
#ifndef SERVER_WRITE_JSON_H
#define SERVER_WRITE_JSON_H

#include <jansson.h>
#include <stddef.h>

/* Writes the value as text, its reals in as few digits as identify them, and drops it. The text is
 * to be freed with free(). NULL: no memory, or no value. */
char *write_json(json_t *value, size_t *length);

#endif
