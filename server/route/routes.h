/* routes: from method and path to the endpoint that is asked for. Pure functions over text.
 *
 * Paths come as in the request line, still percent-encoded. Their query is ignored, and so is the
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
  ROUTE_LAYER_ATTENTION, /* of one attention of a whole model */
  ROUTE_LAYER_HEADS,
  ROUTE_EMBEDDINGS, /* in OpenAI's words: the model stands in the body */
  ROUTE_COMPLETIONS,
  ROUTE_RERANK,
  ROUTE_COHERE_EMBED, /* in Cohere's words */
  ROUTE_COHERE_EMBED_V2,
  ROUTE_TEI_EMBED, /* of text-embeddings-inference, which a setting turns on */
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

enum {
  ROUTE_LIST_SIZE = 340 /* of all paths that one model has */
};

/* The names in a path, their percent-escapes resolved. Each may be the empty string: also for one
 * that nothing can have (too long, with a NUL). */
struct route_names {
  char model[MODEL_NAME_SIZE];
  char layer[MODEL_NAME_SIZE];
  char slug[MODEL_NAME_SIZE];        /* of a type of errors */
  enum error_form errors;            /* how those of the path are written, whatever its route */
  const struct elsewhere *elsewhere; /* what another service has there; NULL: not known */
  bool joined; /* the model's name is two segments, of which the second may not belong to it */
};

/* The route of a path, and the names in it; that of the model also where ROUTE_NONE lies below
 * it. A slash at its end changes nothing, but that
 * there is none behind /metrics and its kin. */
enum route route_find(const char *path, struct route_names *names);

/* Separates the two segments of a model's name that no model has: the first one is the model then,
 * and there is nothing at the path below it. */
enum route route_separate(enum route route, struct route_names *names);

/* The path without the authority of the absolute form, which may contain a password. */
const char *route_path(const char *path);

enum method method_find(const char *word);

/* Is the path one of the Open Inference Protocol, known or not? */
bool route_is_v2(enum route route);

/* Is it one of those that text-embeddings-inference has? */
bool route_is_tei(enum route route);

/* Does the admin door have this path, too? None of those needs the models. */
bool route_is_admin(enum route route);

/* False for the three routes of paths that do not exist. */
bool route_exists(enum route route);

/* Is the answer computed by the pool? Such a route takes POST. */
bool route_is_computed(enum route route);

/* In whose words requests to the route are; DIALECT_NONE: in our own. And the route of a dialect.
 */
enum body_dialect route_dialect(enum route route);

/* The ask of its requests: what a model does with them. */
enum body_ask route_ask(enum route route);
enum route route_of_dialect(enum body_dialect dialect);

/* Does the route name a layer? */
bool route_has_layer(enum route route);

/* Has the model this route, which is one of models? Its kind says so, and what it has besides: an
 * output to score, a classifier, a tokenizer, a table of tokens for embeddings of texts. */
bool route_serves(enum route route, const struct model *m);

/* What a model lacks that does not have the route, though others of its kind do: " without an
 * output"; or nothing. */
const char *route_missing(enum route route, const struct model *m);

/* Writes what such a model computes, at the paths in which it stands, as far as there is room:
 * "/v1/models/{model}/attention, ...". */
void route_list(const struct model *m, char *text, size_t size);

bool route_allows(enum route route, enum method method); /* false for a path that does not exist */
const char *route_allow(enum route route);               /* for the header Allow */
const char *route_template(enum route route);            /* a label: "/v1/models/{model}" */
const char *method_name(enum method method);             /* a label: "GET", "other" */

#endif
