/* endpoint_models: GET /v1/models and GET /v1/models/{model}. */
#ifndef SERVER_ENDPOINT_MODELS_H
#define SERVER_ENDPOINT_MODELS_H

#include <stddef.h>

#include "config/model/registry.h"

/* The body, to be freed with free(); NULL if memory runs out. */
char *endpoint_models_text(const struct registry *r, size_t *length);
char *endpoint_model_text(const struct model *m, size_t *length);

#endif
