/* find_model: the model of a request, which must support its route. */
#ifndef SERVER_FIND_MODEL_H
#define SERVER_FIND_MODEL_H

#include "config/model/registry.h"
#include "server/route/routes.h"

/* The model of this name; NULL: the default one, for a path without a name. NULL with an error: no
 * model has the name, and the error lists all names; or its kind has no such path. */
const struct model *find_model(enum route route, const char *name, const struct registry *all,
                               struct error *e);

/* The model that a body names, at `route`; NULL: it names none, which is valid if exactly one model
 * supports the route. The error points at "/model". */
const struct model *find_model_of_body(enum route route, const char *name,
                                       const struct registry *all, struct error *e);

/* The model of a service with a single one, such as text-embeddings-inference: default_model if it
 * is not a single layer, else the first that is not; NULL: there is none. */
const struct model *find_model_of_texts(const struct registry *all);

/* Sets the error for a model that has no such path. */
enum status find_model_refuse(enum route route, const struct model *m, struct error *e);

#endif
