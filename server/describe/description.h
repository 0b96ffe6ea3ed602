/* description: the JSON in which the server describes itself and its models. */
#ifndef SERVER_DESCRIPTION_H
#define SERVER_DESCRIPTION_H

#include <stdbool.h>
#include <stddef.h>

#include "config/model/registry.h"
#include "config/settings/config.h"

/* All return a text to be freed with free(), and its length; NULL: no memory. */

/* GET /v1/models, GET /v1/models/{model}: with the members that OpenAI's clients look for. */
char *description_models(const struct registry *r, size_t *length);
char *description_model(const struct model *m, size_t *length);

/* GET /v2 and the paths below it: the Open Inference Protocol. */
char *description_v2_server(size_t *length);
char *description_v2_models(const struct registry *r, size_t *length);
char *description_v2_model(const struct model *m, size_t *length);
char *description_v2_ready(const struct model *m, size_t *length);

/* GET /info of text-embeddings-inference. `*found`: there is a model that it can describe. */
char *description_tei(const struct registry *r, const struct config *c, size_t workers,
                      size_t *length, bool *found);

#endif
