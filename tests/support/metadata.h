/* metadata: what __metadata__ of a safetensors file says. */
#ifndef TESTS_METADATA_H
#define TESTS_METADATA_H

#include <jansson.h>

/* The JSON document that the string of this key holds. The caller drops the reference. */
json_t *metadata_json(const char *path, const char *key);

#endif
