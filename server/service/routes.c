/* routes: from method and path to the endpoint that is asked for. */
#include "server/service/routes.h"

#include <string.h>
#include <strings.h>

#include "server/text/hex.h"

enum { SEGMENTS_MAX = 6, SEGMENT_SIZE = ROUTE_MODEL_SIZE };

static const struct {
  const char *template;
  bool computed; /* takes POST; every other route takes GET and HEAD */
} table[ROUTE_COUNT] = {
    [ROUTE_ATTENTION] = {"/v1/attention", true},
    [ROUTE_MODEL_ATTENTION] = {"/v1/models/{model}/attention", true},
    [ROUTE_MODEL_HEADS] = {"/v1/models/{model}/heads", true},
    [ROUTE_MODELS] = {"/v1/models", false},
    [ROUTE_MODEL] = {"/v1/models/{model}", false},
    [ROUTE_HEALTH] = {"/healthz", false},
    [ROUTE_READY] = {"/readyz", false},
    [ROUTE_METRICS] = {"/metrics", false},
    [ROUTE_OPENAPI] = {"/openapi.json", false},
    [ROUTE_PAGE] = {"/", false},
    [ROUTE_V2] = {"/v2", false},
    [ROUTE_V2_LIVE] = {"/v2/health/live", false},
    [ROUTE_V2_READY] = {"/v2/health/ready", false},
    [ROUTE_V2_MODELS] = {"/v2/models", false},
    [ROUTE_V2_MODEL] = {"/v2/models/{model}", false},
    [ROUTE_V2_MODEL_READY] = {"/v2/models/{model}/ready", false},
    [ROUTE_V2_INFER] = {"/v2/models/{model}/infer", true},
    [ROUTE_V2_VERSION] = {"/v2/models/{model}/versions/{version}", false},
    [ROUTE_V2_NONE] = {"/v2 none", false},
    [ROUTE_NONE] = {"none", false},
};

static const char *const methods[METHOD_COUNT] = {
    [METHOD_GET] = "GET",         [METHOD_HEAD] = "HEAD",     [METHOD_POST] = "POST",
    [METHOD_PUT] = "PUT",         [METHOD_DELETE] = "DELETE", [METHOD_PATCH] = "PATCH",
    [METHOD_OPTIONS] = "OPTIONS", [METHOD_OTHER] = "other",
};

/* Decodes one segment of a path and returns its end there. A segment that no path here has (too
 * long, with a NUL, with a broken escape) becomes the empty string. */
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

/* Is the path "/", or an authority with nothing after it? */
static bool is_root(const char *path) {
  const char *at = route_path(path);
  if (*at != '/' && at == path) return false;
  if (*at == '/') at++;
  return !*at || *at == '?';
}

static enum route find_below_v1_model(const char *segment) {
  if (!strcmp(segment, "attention")) return ROUTE_MODEL_ATTENTION;
  if (!strcmp(segment, "heads")) return ROUTE_MODEL_HEADS;
  return ROUTE_NONE;
}

static enum route find_v1(char segment[][SEGMENT_SIZE], size_t n) {
  if (n == 2 && !strcmp(segment[1], "attention")) return ROUTE_ATTENTION;
  if (n < 2 || n > 4 || strcmp(segment[1], "models")) return ROUTE_NONE;
  if (n == 2) return ROUTE_MODELS;
  return n == 3 ? ROUTE_MODEL : find_below_v1_model(segment[3]);
}

/* The route of the segment after a model's name; NULL: the path ends with the name. */
static enum route find_below_v2_model(const char *segment) {
  if (!segment) return ROUTE_V2_MODEL;
  if (!strcmp(segment, "ready")) return ROUTE_V2_MODEL_READY;
  return !strcmp(segment, "infer") ? ROUTE_V2_INFER : ROUTE_V2_NONE;
}

static enum route find_v2(char segment[][SEGMENT_SIZE], size_t n) {
  if (n == 1) return ROUTE_V2;
  if (n == 3 && !strcmp(segment[1], "health")) {
    if (!strcmp(segment[2], "live")) return ROUTE_V2_LIVE;
    return !strcmp(segment[2], "ready") ? ROUTE_V2_READY : ROUTE_V2_NONE;
  }
  if (strcmp(segment[1], "models")) return ROUTE_V2_NONE;
  if (n == 2) return ROUTE_V2_MODELS;
  if (n == 3) return ROUTE_V2_MODEL;
  if (strcmp(segment[3], "versions"))
    return n == 4 ? find_below_v2_model(segment[3]) : ROUTE_V2_NONE;
  const enum route route = n == 4 ? ROUTE_V2_NONE : find_below_v2_model(n == 6 ? segment[5] : NULL);
  return route == ROUTE_V2_NONE || !strcmp(segment[4], "1") ? route : ROUTE_V2_VERSION;
}

enum route route_find(const char *path, char model[ROUTE_MODEL_SIZE]) {
  char segment[SEGMENTS_MAX][SEGMENT_SIZE];
  size_t n = 0;
  enum route route = ROUTE_NONE;
  model[0] = 0;
  if (is_root(path)) return ROUTE_PAGE;
  path = route_path(path);
  while (*path == '/' && n < SEGMENTS_MAX) path = read_segment(path + 1, segment[n++]);
  const bool v2 = n > 0 && !strcmp(segment[0], "v2");
  if (*path == '/') return v2 ? ROUTE_V2_NONE : ROUTE_NONE;
  if (n == 1) {
    if (!strcmp(segment[0], "healthz")) return ROUTE_HEALTH;
    if (!strcmp(segment[0], "readyz")) return ROUTE_READY;
    if (!strcmp(segment[0], "metrics")) return ROUTE_METRICS;
    if (!strcmp(segment[0], "openapi.json")) return ROUTE_OPENAPI;
  }
  if (v2) route = find_v2(segment, n);
  if (n > 0 && !strcmp(segment[0], "v1")) route = find_v1(segment, n);
  if (n > 2 && route_exists(route) && !strcmp(segment[1], "models"))
    memcpy(model, segment[2], SEGMENT_SIZE);
  return route;
}

bool route_is_v2(enum route route) { return route >= ROUTE_V2 && route <= ROUTE_V2_NONE; }

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

const char *route_allow(enum route route) { return table[route].computed ? "POST" : "GET, HEAD"; }
const char *route_template(enum route route) { return table[route].template; }
const char *method_name(enum method method) { return methods[method]; }
