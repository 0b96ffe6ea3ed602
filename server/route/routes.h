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
#include "server/body/body_terms.h"
#include "server/route/elsewhere.h"

enum route {
  ROUTE_ATTENTION,
  ROUTE_MODEL_ATTENTION,
  ROUTE_MODEL_HEADS,
  ROUTE_MODEL_ENCODE,
  ROUTE_MODEL_CLASSIFY,
  ROUTE_MODEL_SCORE,
  ROUTE_MODEL_GENERATE,
  ROUTE_MODEL_TOKENIZE,
  ROUTE_MODEL_DETOKENIZE,
  ROUTE_LAYER_ATTENTION, /* of a single attention of a model */
  ROUTE_LAYER_HEADS,
  ROUTE_EMBEDDINGS, /* the API of OpenAI: the body names the model */
  ROUTE_COMPLETIONS,
  ROUTE_RERANK,
  ROUTE_COHERE_EMBED, /* the API of Cohere */
  ROUTE_COHERE_EMBED_V2,
  ROUTE_TEI_EMBED, /* the API of text-embeddings-inference, which a setting turns on */
  ROUTE_TEI_RERANK,
  ROUTE_TEI_PREDICT,
  ROUTE_TEI_EMBED_ALL,
  ROUTE_TEI_SIMILARITY,
  ROUTE_TEI_TOKENIZE,
  ROUTE_TEI_DECODE,
  ROUTE_TEI_INFO,
  ROUTE_MODELS,
  ROUTE_MODEL,
  ROUTE_HEALTH,
  ROUTE_READY,
  ROUTE_METRICS,
  ROUTE_OPENAPI,
  ROUTE_PROBLEMS,
  ROUTE_PROBLEM, /* the explanation of one type of errors */
  ROUTE_PAGE,
  /* The Open Inference Protocol. A path with version 1, the only one, has the route of the path
   * without a version. */
  ROUTE_V2,
  ROUTE_V2_LIVE,
  ROUTE_V2_READY,
  ROUTE_V2_MODELS,
  ROUTE_V2_MODEL,
  ROUTE_V2_MODEL_READY,
  ROUTE_V2_INFER,
  ROUTE_V2_VERSION, /* another version */
  ROUTE_V2_NONE,    /* no such path below /v2 */
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

/* The path without the authority of the absolute form, which may contain a password. */
const char *route_path(const char *path);

enum method method_find(const char *word);

/* Whether the path is one of the Open Inference Protocol, known or not. */
bool route_is_v2(enum route route);

/* Whether text-embeddings-inference has the path. */
bool route_is_tei(enum route route);

/* Whether the admin door has this path, too. None of these paths needs the models. */
bool route_is_admin(enum route route);

/* False for the three routes of paths that do not exist. */
bool route_exists(enum route route);

/* Whether the pool computes the response. Such a route supports POST. */
bool route_is_computed(enum route route);

/* The other service whose form requests to the route have; DIALECT_NONE: our own form. */
enum body_dialect route_dialect(enum route route);
enum route route_of_dialect(enum body_dialect dialect);

/* The kind of request, that is the work of the model. */
enum body_ask route_ask(enum route route);

/* Whether the route names a layer. */
bool route_has_layer(enum route route);

/* Whether the model supports this route, by its kind and its parts: logits, a classifier, a
 * tokenizer, token embeddings. */
bool route_serves(enum route route, const struct model *m);

/* The part that a model lacks for a route which other models of its kind support: " without a
 * tokenizer"; or "". */
const char *route_missing(enum route route, const struct model *m);

/* Writes the paths of the model that are computed, as far as there is room:
 * "/v1/models/{model}/attention, ...". */
void route_list(const struct model *m, char *text, size_t size);

bool route_allows(enum route route, enum method method); /* false for a path that does not exist */
const char *route_allow(enum route route);               /* for the header Allow */
const char *route_template(enum route route);            /* a label: "/v1/models/{model}" */
const char *method_name(enum method method);             /* a label: "GET", "other" */

#endif
