/* openapi: the description of the service in OpenAPI 3.1, as it stands in openapi.json. */
#ifndef SERVER_OPENAPI_H
#define SERVER_OPENAPI_H

#include <stddef.h>

const char *openapi_text(size_t *length); /* static */

#endif
