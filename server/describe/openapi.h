/* openapi: the description of the service in OpenAPI 3.1.
 *
 * Its paths are printed from the table of routes. openapi.json has the written parts of each
 * operation, by its name in that table, and schemas.json the schemas. The text is made at the first
 * request for it: that takes some 20 milliseconds, which no start should wait for. */
#ifndef SERVER_OPENAPI_H
#define SERVER_OPENAPI_H

#include <stddef.h>

struct openapi {
  char *_Atomic text; /* NULL: nobody has asked for it yet */
};

/* The document, which lives as long as `o`. Any thread may call it. NULL: no memory. */
const char *openapi_text(struct openapi *o, size_t *length);
void openapi_free(struct openapi *o);

#endif
