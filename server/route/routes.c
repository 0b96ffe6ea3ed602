/* routes: from method and path to the endpoint. */
#include "server/route/routes.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "server/text/json_string.h"

enum { SEGMENTS_MAX = 7, SEGMENT_SIZE = MODEL_NAME_SIZE };

/* Kinds of models that have a path. */
enum {
  ATTENTIONS = 1 << MODEL_ATTENTION,
  DECODERS = 1 << MODEL_DECODER | 1 << MODEL_SEQ2SEQ,
  ENCODERS = 1 << MODEL_ENCODER,
  WHOLES = ENCODERS | DECODERS,
  ALL = ATTENTIONS | WHOLES
};

/* Other requirements of a path on its model. */
enum {
  A_TOKENIZER = 1,
  VECTORS = 2,     /* token embeddings */
  CLASSES = 4,     /* a classifier */
  ONE_CLASS = 8,   /* no classifier of several classes */
  LIKELIHOOD = 16, /* logits */
  GENERATION = 32
};

static const struct {
  const char *template;
  bool computed; /* takes POST; every other route takes GET and HEAD */
  unsigned kinds;
  enum error_form errors;
  enum body_ask ask;
  unsigned needs;
  enum body_dialect dialect;
} table[ROUTE_COUNT] = {
    [ROUTE_ATTENTION] = {"/v1/attention", true, ATTENTIONS, ERROR_V1, ASK_ATTENTION},
    [ROUTE_MODEL_ATTENTION] = {"/v1/models/{model}/attention", true, ATTENTIONS, ERROR_V1,
                               ASK_ATTENTION},
    [ROUTE_MODEL_HEADS] = {"/v1/models/{model}/heads", true, ALL, ERROR_V1, ASK_HEADS},
    [ROUTE_MODEL_ENCODE] = {"/v1/models/{model}/encode", true, WHOLES, ERROR_V1, ASK_ENCODE},
    [ROUTE_MODEL_CLASSIFY] = {"/v1/models/{model}/classify", true, ENCODERS, ERROR_V1, ASK_CLASSIFY,
                              CLASSES},
    [ROUTE_MODEL_SCORE] = {"/v1/models/{model}/score", true, DECODERS, ERROR_V1, ASK_SCORE,
                           LIKELIHOOD},
    [ROUTE_MODEL_GENERATE] = {"/v1/models/{model}/generate", true, DECODERS, ERROR_V1, ASK_GENERATE,
                              GENERATION},
    [ROUTE_MODEL_TOKENIZE] = {"/v1/models/{model}/tokenize", true, WHOLES, ERROR_V1, ASK_TOKENIZE,
                              A_TOKENIZER},
    [ROUTE_MODEL_DETOKENIZE] = {"/v1/models/{model}/detokenize", true, WHOLES, ERROR_V1,
                                ASK_DETOKENIZE, A_TOKENIZER},
    [ROUTE_LAYER_ATTENTION] = {"/v1/models/{model}/layers/{layer}/attention", true, WHOLES,
                               ERROR_V1, ASK_ATTENTION},
    [ROUTE_LAYER_HEADS] = {"/v1/models/{model}/layers/{layer}/heads", true, WHOLES, ERROR_V1,
                           ASK_HEADS},
    [ROUTE_EMBEDDINGS] = {"/v1/embeddings", true, WHOLES, ERROR_OPENAI, ASK_ENCODE, VECTORS,
                          DIALECT_EMBEDDINGS},
    [ROUTE_COMPLETIONS] = {"/v1/completions", true, DECODERS, ERROR_OPENAI, ASK_GENERATE,
                           A_TOKENIZER | GENERATION, DIALECT_COMPLETIONS},
    [ROUTE_RERANK] = {"/v1/rerank", true, WHOLES, ERROR_COHERE, ASK_ENCODE,
                      A_TOKENIZER | VECTORS | ONE_CLASS, DIALECT_RERANK},
    [ROUTE_COHERE_EMBED] = {"/v1/embed", true, WHOLES, ERROR_COHERE, ASK_ENCODE,
                            A_TOKENIZER | VECTORS, DIALECT_COHERE_EMBED},
    [ROUTE_COHERE_EMBED_V2] = {"/v2/embed", true, WHOLES, ERROR_COHERE, ASK_ENCODE,
                               A_TOKENIZER | VECTORS, DIALECT_COHERE_EMBED_V2},
    [ROUTE_TEI_EMBED] = {"/embed", true, WHOLES, ERROR_TEI, ASK_ENCODE, VECTORS, DIALECT_TEI_EMBED},
    [ROUTE_TEI_RERANK] = {"/rerank", true, ENCODERS, ERROR_TEI, ASK_ENCODE,
                          A_TOKENIZER | CLASSES | ONE_CLASS, DIALECT_TEI_RERANK},
    [ROUTE_TEI_PREDICT] = {"/predict", true, ENCODERS, ERROR_TEI, ASK_CLASSIFY,
                           A_TOKENIZER | CLASSES, DIALECT_TEI_PREDICT},
    [ROUTE_TEI_EMBED_ALL] = {"/embed_all", true, WHOLES, ERROR_TEI, ASK_ENCODE, VECTORS,
                             DIALECT_TEI_EMBED_ALL},
    [ROUTE_TEI_SIMILARITY] = {"/similarity", true, WHOLES, ERROR_TEI, ASK_ENCODE,
                              A_TOKENIZER | VECTORS, DIALECT_TEI_SIMILARITY},
    [ROUTE_TEI_TOKENIZE] = {"/tokenize", true, WHOLES, ERROR_TEI, ASK_TOKENIZE, A_TOKENIZER,
                            DIALECT_TEI_TOKENIZE},
    [ROUTE_TEI_DECODE] = {"/decode", true, WHOLES, ERROR_TEI, ASK_DETOKENIZE, A_TOKENIZER,
                          DIALECT_TEI_DECODE},
    [ROUTE_TEI_INFO] = {"/info", false, WHOLES, ERROR_TEI},
    [ROUTE_MODELS] = {"/v1/models", false, 0, ERROR_V1},
    [ROUTE_MODEL] = {"/v1/models/{model}", false, ALL, ERROR_V1},
    [ROUTE_HEALTH] = {"/healthz", false},
    [ROUTE_READY] = {"/readyz", false},
    [ROUTE_METRICS] = {"/metrics", false},
    [ROUTE_OPENAPI] = {"/openapi.json", false},
    [ROUTE_PROBLEMS] = {"/problems", false},
    [ROUTE_PROBLEM] = {"/problems/{slug}", false},
    [ROUTE_PAGE] = {"/", false},
    [ROUTE_V2] = {"/v2", false, 0, ERROR_V2},
    [ROUTE_V2_LIVE] = {"/v2/health/live", false, 0, ERROR_V2},
    [ROUTE_V2_READY] = {"/v2/health/ready", false, 0, ERROR_V2},
    [ROUTE_V2_MODELS] = {"/v2/models", false, 0, ERROR_V2},
    [ROUTE_V2_MODEL] = {"/v2/models/{model}", false, ALL, ERROR_V2},
    [ROUTE_V2_MODEL_READY] = {"/v2/models/{model}/ready", false, ALL, ERROR_V2},
    [ROUTE_V2_INFER] = {"/v2/models/{model}/infer", true, ALL, ERROR_V2, ASK_ATTENTION},
    [ROUTE_V2_VERSION] = {"/v2/models/{model}/versions/{version}", false, 0, ERROR_V2},
    [ROUTE_V2_NONE] = {"/v2 none", false, 0, ERROR_V2},
    [ROUTE_NONE] = {"none", false},
};

static const char *const methods[METHOD_COUNT] = {
    [METHOD_GET] = "GET",         [METHOD_HEAD] = "HEAD",     [METHOD_POST] = "POST",
    [METHOD_PUT] = "PUT",         [METHOD_DELETE] = "DELETE", [METHOD_PATCH] = "PATCH",
    [METHOD_OPTIONS] = "OPTIONS", [METHOD_OTHER] = "other",
};

/* Decodes one segment of a path and returns its end. A segment that is in no path here (too long,
 * with a NUL, with a broken escape) becomes the empty string. */
static const char *read_segment(const char *at, char out[SEGMENT_SIZE]) {
  size_t n = 0;
  bool good = true;
  for (; *at && *at != '/' && *at != '?'; at++) {
    int c = (unsigned char)*at;
    if (c == '%') {
      int high = hex_value(at[1]), low = high < 0 ? -1 : hex_value(at[2]);
      c = low < 0 ? 0 : high * 16 + low;
      if (low >= 0) at += 2;
    }
    if (c == 0 || n + 1 == SEGMENT_SIZE) good = false;
    if (good) out[n++] = (char)c;
  }
  out[good ? n : 0] = 0;
  return at;
}

const char *route_path(const char *path) {
  if (strncasecmp(path, "http://", 7) && strncasecmp(path, "https://", 8)) return path;
  const char *authority = strstr(path, "//") + 2;
  return authority + strcspn(authority, "/?");
}

static bool is_end(const char *at) { return !*at || *at == '?'; }

/* Whether the segments are those of the template at `at`, in which {...} is any segment. */
static bool has_template(char segment[][SEGMENT_SIZE], size_t n, const char *at) {
  for (size_t i = 0; i < n; i++) {
    const char *s = segment[i]; /* may have a '/', which was escaped */
    if (*at++ != '/') return false;
    if (*at == '{') {
      at += strcspn(at, "/");
      continue;
    }
    for (; *s && *s != '/' && *s == *at; s++) at++;
    if (*s || (*at && *at != '/')) return false;
  }
  return !*at;
}

/* The route of at least one segment; may change segments after the third one. */
static enum route find_template(char segment[][SEGMENT_SIZE], size_t n) {
  static const struct {
    const char *path;
    enum route route;
  } aliases[] = {{"/health", ROUTE_READY}, /* these three of text-embeddings-inference */
                 {"/ping", ROUTE_READY},
                 {"/embeddings", ROUTE_EMBEDDINGS},
                 {"/v2/rerank", ROUTE_RERANK}, /* the newer paths of Cohere */
                 {"/v2/embed", ROUTE_COHERE_EMBED_V2}};
  const bool v2 = !strcmp(segment[0], "v2");
  bool wrong_version = false;
  if (v2 && n > 4 && !strcmp(segment[1], "models") && !strcmp(segment[3], "versions")) {
    wrong_version = strcmp(segment[4], "1") != 0;
    if (n > 5) memcpy(segment[3], segment[5], SEGMENT_SIZE);
    n -= 2;
  }
  for (unsigned r = v2 ? ROUTE_V2 : 0; r < (v2 ? ROUTE_V2_VERSION : ROUTE_PAGE); r++)
    if (has_template(segment, n, table[r].template))
      return wrong_version ? ROUTE_V2_VERSION : (enum route)r;
  for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
    if (has_template(segment, n, aliases[i].path)) return aliases[i].route;
  return v2 ? ROUTE_V2_NONE : ROUTE_NONE;
}

/* Joins the third and fourth segments if they may be a model's name of two parts. */
static bool join_name(char segment[][SEGMENT_SIZE], size_t *n) {
  const size_t first = *n > 3 ? strlen(segment[2]) : 0, second = *n > 3 ? strlen(segment[3]) : 0;
  if (strcmp(segment[1], "models") || first == 0 || second == 0 || text_is_path_word(segment[3]) ||
      strchr(segment[2], '/') || first + 1 + second >= SEGMENT_SIZE)
    return false;
  segment[2][first] = '/';
  memcpy(segment[2] + first + 1, segment[3], second + 1);
  memmove(segment[3], segment[4], (*n - 4) * SEGMENT_SIZE);
  --*n;
  return true;
}

enum route route_separate(enum route route, struct route_names *names) {
  const bool v2 = route_is_v2(route);
  names->joined = false;
  names->model[v2 ? 0 : strcspn(names->model, "/")] = '\0';
  return v2 ? ROUTE_V2_NONE : ROUTE_NONE;
}

enum route route_find(const char *path, struct route_names *names) {
  char segment[SEGMENTS_MAX][SEGMENT_SIZE];
  size_t n = 0;
  const char *const begin = route_path(path);
  *names = (struct route_names){.errors = ERROR_PROBLEM};
  /* The root is "/", or an authority without a path. */
  if (*begin == '/' ? is_end(begin + 1) : begin != path && is_end(begin)) return ROUTE_PAGE;
  path = begin;
  while (*path == '/' && !is_end(path + 1) && n < SEGMENTS_MAX)
    path = read_segment(path + 1, segment[n++]);
  const bool v1 = n > 0 && !strcmp(segment[0], "v1"), v2 = n > 0 && !strcmp(segment[0], "v2");
  names->joined = n > 3 && (v1 || v2) && join_name(segment, &n);
  const bool fits = n < SEGMENTS_MAX && (*path != '/' || is_end(path + 1));
  enum route route = n > 0 && fits ? find_template(segment, n) : v2 ? ROUTE_V2_NONE : ROUTE_NONE;
  /* A proxy that hides /metrics from clients does not know /metrics/. */
  if (n == 1 && *path == '/' && !table[route].computed && route != ROUTE_PROBLEMS)
    route = v1 || v2 ? route : ROUTE_NONE;
  if (n > 2 && (route_exists(route) || v1) && !strcmp(segment[1], "models"))
    memcpy(names->model, segment[2], SEGMENT_SIZE);
  if (route_has_layer(route)) memcpy(names->layer, segment[4], SEGMENT_SIZE);
  if (route == ROUTE_PROBLEM) memcpy(names->slug, segment[1], SEGMENT_SIZE);
  if (!route_exists(route)) names->elsewhere = elsewhere_find(begin);
  names->errors = names->elsewhere            ? names->elsewhere->errors
                  : route == ROUTE_NONE && v1 ? ERROR_V1
                                              : table[route].errors;
  return route;
}

bool route_is_v2(enum route route) { return route >= ROUTE_V2 && route <= ROUTE_V2_NONE; }

bool route_is_tei(enum route route) { return table[route].errors == ERROR_TEI; }

bool route_is_admin(enum route route) {
  return route == ROUTE_HEALTH || route == ROUTE_READY || route == ROUTE_METRICS ||
         route == ROUTE_V2_LIVE || route == ROUTE_V2_READY;
}

bool route_exists(enum route route) { return route < ROUTE_V2_VERSION; }

enum method method_find(const char *word) {
  for (unsigned m = 0; m < METHOD_OTHER; m++)
    if (!strcmp(word, methods[m])) return (enum method)m;
  return METHOD_OTHER;
}

bool route_allows(enum route route, enum method method) {
  if (!route_exists(route)) return false;
  if (table[route].computed) return method == METHOD_POST;
  return method == METHOD_GET || method == METHOD_HEAD;
}

bool route_is_computed(enum route route) { return table[route].computed; }

enum body_ask route_ask(enum route route) { return table[route].ask; }

enum body_dialect route_dialect(enum route route) { return table[route].dialect; }

enum route route_of_dialect(enum body_dialect dialect) {
  unsigned r = 0;
  while (table[r].dialect != dialect && r + 1 < ROUTE_COUNT) r++;
  must(dialect != DIALECT_NONE && table[r].dialect == dialect);
  return (enum route)r;
}

bool route_has_layer(enum route route) {
  return route == ROUTE_LAYER_ATTENTION || route == ROUTE_LAYER_HEADS;
}

static bool needs(enum route route, unsigned what) { return table[route].needs & what; }

bool route_serves(enum route route, const struct model *m) {
  const struct whole *w = m->whole;
  if (needs(route, A_TOKENIZER) && !(w && w->tokenizer)) return false;
  if (needs(route, CLASSES) && !(w && w->classes)) return false;
  if (needs(route, ONE_CLASS) && w && w->classes > 1) return false;
  if (needs(route, LIKELIHOOD) && !whole_has_output(w)) return false;
  if (needs(route, GENERATION) && !whole_can_generate(w)) return false;
  if (needs(route, VECTORS) && !(w && w->vocabulary)) return false;
  return table[route].kinds >> m->kind & 1;
}

const char *route_missing(enum route route, const struct model *m) {
  const struct whole *w = m->whole;
  if (needs(route, A_TOKENIZER) && w && !w->tokenizer) return " without a tokenizer";
  if (needs(route, ONE_CLASS) && w && w->classes > 1)
    return " with several classes, where one is required";
  if (needs(route, VECTORS) && w) return " without token embeddings";
  if (needs(route, CLASSES) && m->kind == MODEL_ENCODER) return " without a classifier";
  if (!needs(route, LIKELIHOOD | GENERATION) || !(DECODERS >> m->kind & 1)) return "";
  return whole_lacks_begin(w) ? " without \"begin\" in its definition, the decoder start token"
                              : " without a language modeling head";
}

void route_list(const struct model *m, char *text, size_t size) {
  size_t used = 0;
  text[0] = 0;
  for (unsigned r = 0; r < ROUTE_COUNT && used < size; r++)
    if (table[r].computed && strstr(table[r].template, "{model}") && route_serves((enum route)r, m))
      used +=
          (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", table[r].template);
}

const char *route_allow(enum route route) { return table[route].computed ? "POST" : "GET, HEAD"; }
const char *route_template(enum route route) { return table[route].template; }
const char *method_name(enum method method) { return methods[method]; }
