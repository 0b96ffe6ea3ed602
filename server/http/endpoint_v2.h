/* endpoint_v2: what the Open Inference Protocol says of the server and its models. */
#ifndef SERVER_ENDPOINT_V2_H
#define SERVER_ENDPOINT_V2_H

#include <stddef.h>

#include "config/model/registry.h"

/* The body, to be freed with free(); NULL if memory runs out. */
char *endpoint_v2_server_text(size_t *length);
char *endpoint_v2_models_text(const struct registry *r, size_t *length);
char *endpoint_v2_model_text(const struct model *m, size_t *length);
char *endpoint_v2_model_ready_text(const struct model *m, size_t *length);

#endif
