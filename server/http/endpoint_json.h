/* endpoint_json: what the endpoints make of JSON values. Private to them. */
#ifndef SERVER_ENDPOINT_JSON_H
#define SERVER_ENDPOINT_JSON_H

#include "config/model/registry.h"

struct json_t;

/* The value's text, made with malloc. Takes the value; NULL is no memory, then and now. */
char *endpoint_dump(struct json_t *value, size_t *length);

/* {"models":[...]}, of each model what `tell` makes. NULL: no memory. */
char *endpoint_list(const struct registry *r, struct json_t *tell(const struct model *),
                    size_t *length);

#endif
