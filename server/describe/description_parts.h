/* description_parts: what the files of descriptions share. Private to them. */
#ifndef SERVER_DESCRIPTION_PARTS_H
#define SERVER_DESCRIPTION_PARTS_H

#include <jansson.h>
#include <stddef.h>

/* Writes the value as text, its reals in as few digits as tell them, and drops it; NULL is passed
 * on as NULL. */
char *description_write(json_t *value, size_t *length);

#endif
