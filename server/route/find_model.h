/* find_model: the model that a request asks, which must have what it is asked for. */
#ifndef SERVER_FIND_MODEL_H
#define SERVER_FIND_MODEL_H

#include "config/model/registry.h"
#include "server/route/routes.h"

/* The model of this name; NULL: the default one, for ROUTE_ATTENTION. NULL with an error: no model
 * has the name, and those there are are named; or its kind has no such path. */
const struct model *find_model(enum route route, const char *name, const struct registry *all,
                               struct error *e);

/* The model that a body names, at `route`; NULL: it names none, which is well where one model and
 * no more has the route. The error points at "/model". */
const struct model *find_model_of_body(enum route route, const char *name,
                                       const struct registry *all, struct error *e);

/* The one that there is where a service has but one, as text-embeddings-inference: default_model if
 * it is a whole one, else the first that is; NULL: none is. */
const struct model *find_model_of_texts(const struct registry *all);

/* The model is there, but has no such path. */
enum status find_model_refuse(enum route route, const struct model *m, struct error *e);

#endif
