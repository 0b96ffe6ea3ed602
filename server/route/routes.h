/* routes: from method and path to the endpoint. Pure functions over text.
 *
 * Paths are those of the request line, still percent-encoded. Their query is ignored, as is the
 * authority of the absolute form (http://authority/path), which proxies send. */
#ifndef SERVER_ROUTES_H
#define SERVER_ROUTES_H

#include <stdbool.h>
#include <stddef.h>

#include "config/build/whole.h"
#include "config/document/text.h"
#include "config/settings/config.h"
#include "server/body/body_terms.h"
#include "server/route/elsewhere.h"

enum route {
#define ROUTE(name, ...) ROUTE_##name,
#include "server/route/routes.def"
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

/* Whether a path needs an API key, in a server with keys. Probes send none, nor does a browser that
 * opens the page, which asks its user for one. Paths that do not exist need a key, so that clients
 * without one learn nothing. */
enum route_key {
  KEY_ALWAYS,
  KEY_NEVER,
  KEY_OF_METRICS /* unless the setting metrics_open is on */
};

enum { ROUTE_PATHS = 3 };

/* All that is known of an endpoint. */
struct route_row {
  const char *summary; /* of its operations in /openapi.json */
  struct {
    const char *template; /* "/v1/models/{model}": names in braces are any segment */
    const char *name;     /* of the operation; NULL: the path does not exist */
  } path[ROUTE_PATHS];    /* the first template is also a label */
  bool computed;          /* by the pool, of a POST; every other route takes GET and HEAD */
  unsigned kinds;         /* of models that have the path */
  unsigned needs;         /* other requirements on the model */
  enum status lacking;    /* the error of a model that has not what it needs; 0: STATUS_NOT_FOUND */
  enum error_form errors;
  const char *task;              /* what a model that has the path can do; NULL: not listed */
  enum body_ask ask;             /* the kind of request, that is the work of the model */
  const struct dialect *dialect; /* the other service whose form requests have; NULL: our own */
  enum route_key key;
  size_t setting;      /* the flag of struct config that turns the path on; 0: it is always there */
  bool admin;          /* the admin door has the path, too; it needs no models */
  bool readiness;      /* "not ready" is an expected response */
  bool streams;        /* the response to some requests is a stream */
  bool folder;         /* has paths below it: a slash at its end is ignored */
  bool lists_paths;    /* the error of a wrong method lists the model's paths */
  const char *unknown; /* the error of a path that does not exist */
};

enum { ROUTE_LIST_SIZE = 340 }; /* bytes of route_list */

/* The names in a path, without percent-escapes. Each may be the empty string: also a name that
 * nothing can have (too long, with a NUL). */
struct route_names {
  char model[MODEL_NAME_SIZE];
  char layer[MODEL_NAME_SIZE];
  char slug[MODEL_NAME_SIZE];        /* of a type of errors */
  enum error_form errors;            /* the form of the path's errors, on any route */
  const struct elsewhere *elsewhere; /* the path of another service; NULL: not known */
  bool joined; /* the model's name is two segments, of which the second may not be part of it */
};

/* The route of a path, and the names in it; the model's name also if ROUTE_NONE is below it. A
 * slash at the end of a path is ignored, except after /metrics and the like, which is unknown. */
enum route route_find(const char *path, struct route_names *names);

/* Separates the two segments of a name that no model has: then the first one is the model, and the
 * path below it is unknown. */
enum route route_separate(enum route route, struct route_names *names);

/* The route of an unknown path of the same API. */
enum route route_unknown(enum route route);

/* The path without the authority of the absolute form, which may contain a password. */
const char *route_path(const char *path);

enum method method_find(const char *word);

const struct route_row *route_row(enum route route);

/* Whether the path is one of the Open Inference Protocol, known or not. */
bool route_is_v2(enum route route);

/* Whether text-embeddings-inference has the path. */
bool route_is_tei(enum route route);

/* False for the routes of paths that do not exist. */
bool route_exists(enum route route);

/* Whether the setting that turns the path on, if there is one, is on. */
bool route_is_enabled(enum route route, const struct config *c);

/* Whether the pool computes the response. Such a route supports POST. */
bool route_is_computed(enum route route);

/* Whether alerts expect the route's series in the metrics before its first request. */
bool route_is_expected(enum route route);

/* Whether the path names a model, a layer of it. */
bool route_has_model(enum route route);
bool route_has_layer(enum route route);

enum route route_of_dialect(const struct dialect *dialect);

/* The route of this kind of request whose path names a model, in our own form. */
enum route route_of_ask(enum body_ask ask);

/* Whether the model supports this route, by its kind and its parts: logits, a classifier, a
 * tokenizer, token embeddings. */
bool route_serves(enum route route, const struct model *m);

/* The status of a request to a model that route_serves does not take. */
enum status route_refusal(enum route route, const struct model *m);

/* The part that a model lacks for a route which other models of its kind support: " without a
 * tokenizer"; or "". */
const char *route_missing(enum route route, const struct model *m);

/* The remedy for that part: ": set …"; or "". */
const char *route_remedy(enum route route, const struct model *m);

/* Writes the paths of the admin door: "/healthz, /readyz and /metrics". */
void route_list_admin(char *text, size_t size);

/* Writes the paths of the model that are computed, as far as there is room:
 * "/v1/models/{model}/attention, ...". */
void route_list(const struct model *m, char *text, size_t size);

bool route_allows(enum route route, enum method method); /* false for a path that does not exist */
const char *route_allow(enum route route);               /* for the header Allow */
const char *route_template(enum route route);
const char *method_name(enum method method); /* a label: "GET", "other" */

#endif
