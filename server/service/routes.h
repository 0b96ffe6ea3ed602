/* routes: method and path -> what is asked for. Pure functions over text, no memory.
 *
 * A path is what stands in the request line, still percent-encoded. Query and authority (of the
 * absolute form) are ignored. */
#ifndef SERVER_ROUTES_H
#define SERVER_ROUTES_H

#include <stdbool.h>

enum route {
  ROUTE_ATTENTION,
  ROUTE_MODEL_ATTENTION,
  ROUTE_MODEL_HEADS,
  ROUTE_MODELS,
  ROUTE_MODEL,
  ROUTE_HEALTH,
  ROUTE_READY,
  ROUTE_METRICS,
  ROUTE_OPENAPI,
  ROUTE_PAGE,
  /* The Open Inference Protocol. Paths with a version are those without, where it is the one that
   * there is. */
  ROUTE_V2,
  ROUTE_V2_LIVE,
  ROUTE_V2_READY,
  ROUTE_V2_MODELS,
  ROUTE_V2_MODEL,
  ROUTE_V2_MODEL_READY,
  ROUTE_V2_INFER,
  ROUTE_V2_VERSION, /* a version that no model has */
  ROUTE_V2_NONE,    /* no such path of that protocol */
  ROUTE_NONE,       /* no such path */
  ROUTE_COUNT
};

enum method {
  METHOD_GET,
  METHOD_HEAD,
  METHOD_POST,
  METHOD_PUT,
  METHOD_DELETE,
  METHOD_PATCH,
  METHOD_OPTIONS,
  METHOD_OTHER,
  METHOD_COUNT
};

enum { ROUTE_MODEL_SIZE = 65 }; /* a model's name is at most 64 characters */

/* The route of a path. Where it names a model, `model` gets the decoded name; a name that no model
 * can have (too long, a NUL) becomes the empty string, which no model has either. */
enum route route_find(const char *path, char model[ROUTE_MODEL_SIZE]);

/* The path without the authority of the absolute form, in which a secret may stand. */
const char *route_path(const char *path);

enum method method_find(const char *word);

/* Is the path one of the Open Inference Protocol, known or not? */
bool route_is_v2(enum route route);

/* Is the path one of those that the admin address has, too? None of them needs the models. */
bool route_is_admin(enum route route);

/* May there be anything at this path? */
bool route_exists(enum route route);

bool route_allows(enum route route, enum method method); /* false where there is nothing */
const char *route_allow(enum route route);               /* for the header Allow */
const char *route_template(enum route route);            /* a label: "/v1/models/{model}" */
const char *method_name(enum method method);             /* a label: "GET", "other" */

#endif
