/* routes: from method and path to the endpoint. */
#include "server/route/routes.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "server/dialect/dialect.h"
#include "server/text/json_string.h"

enum { SEGMENTS_MAX = 7, SEGMENT_SIZE = MODEL_NAME_SIZE };

/* Kinds of models that have a path. */
enum {
  ATTENTIONS = 1 << MODEL_ATTENTION,
  DECODERS = 1 << MODEL_DECODER | 1 << MODEL_SEQ2SEQ,
  WHOLES = 1 << MODEL_ENCODER | DECODERS,
  ALL = ATTENTIONS | WHOLES
};

/* Other requirements of a path on its model. */
enum {
  A_TOKENIZER = 1,
  VECTORS = 2,     /* token embeddings */
  CLASSES = 4,     /* a classifier of texts */
  ONE_CLASS = 8,   /* no classifier of several classes */
  LIKELIHOOD = 16, /* logits */
  GENERATION = 32,
  MASKED = 64,         /* a masked language modeling head */
  TOKEN_CLASSES = 128, /* a classifier of tokens */
  QUESTIONS = 256,     /* a head that answers questions from a text */
  WEIGHTS = 512,       /* sparse embeddings */
  A_TEMPLATE = 1024    /* a chat template */
};

/* The settings that turn paths on. */
enum {
  TEI = offsetof(struct config, text_embeddings_inference),
  WEB_UI = offsetof(struct config, page)
};

static const struct route_row table[ROUTE_COUNT] = {
#define ROUTE(name, ...) [ROUTE_##name] = {__VA_ARGS__},
#include "server/route/routes.def"
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
    if (!*s) return false;
    for (; *s && *s != '/' && *s == *at; s++) at++;
    if (*s || (*at && *at != '/')) return false;
  }
  return !*at;
}

_Static_assert(ROUTE_NONE == ROUTE_COUNT - 1 && ROUTE_V2_NONE == ROUTE_COUNT - 2, "the last rows");

/* The route of at least one segment, and the template that has them; the two last rows have no
 * path. */
static enum route find_template(char segment[][SEGMENT_SIZE], size_t n, const char **template) {
  for (unsigned r = 0; r < ROUTE_V2_NONE; r++)
    for (size_t i = 0; i < ROUTE_PATHS && (*template = table[r].path[i].template); i++)
      if (has_template(segment, n, *template)) return (enum route)r;
  return strcmp(segment[0], "v2") == 0 ? ROUTE_V2_NONE : ROUTE_NONE;
}

/* Copies the segments that have a name in the template. */
static void copy_names(char segment[][SEGMENT_SIZE], const char *template,
                       struct route_names *names) {
  const struct {
    const char *name;
    char *to;
  } list[] = {{"/{model}", names->model}, {"/{layer}", names->layer}, {"/{slug}", names->slug}};
  for (size_t i = 0; template && *template; i++) {
    for (size_t k = 0; k < sizeof list / sizeof *list; k++)
      if (strncmp(template, list[k].name, strlen(list[k].name)) == 0)
        memcpy(list[k].to, segment[i], SEGMENT_SIZE);
    template += 1 + strcspn(template + 1, "/");
  }
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

enum route route_unknown(enum route route) {
  return route_is_v2(route) ? ROUTE_V2_NONE : ROUTE_NONE;
}

enum route route_separate(enum route route, struct route_names *names) {
  names->joined = false;
  names->model[route_is_v2(route) ? 0 : strcspn(names->model, "/")] = '\0';
  return route_unknown(route);
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
  const char *template = NULL;
  enum route route = v2 ? ROUTE_V2_NONE : ROUTE_NONE;
  if (n > 0 && fits) route = find_template(segment, n, &template);
  /* A proxy that hides /metrics from clients does not know /metrics/. */
  if (n == 1 && *path == '/' && !table[route].computed && !table[route].folder) route = ROUTE_NONE;
  if (route_exists(route))
    copy_names(segment, template, names);
  else if (v1 && n > 2 && !strcmp(segment[1], "models"))
    memcpy(names->model, segment[2], SEGMENT_SIZE);
  if (!route_exists(route)) names->elsewhere = elsewhere_find(begin);
  names->errors = names->elsewhere            ? names->elsewhere->errors
                  : route == ROUTE_NONE && v1 ? ERROR_V1
                                              : table[route].errors;
  return route;
}

const struct route_row *route_row(enum route route) { return &table[route]; }

bool route_is_v2(enum route route) { return table[route].errors == ERROR_V2; }

bool route_is_tei(enum route route) { return table[route].errors == ERROR_TEI; }

bool route_exists(enum route route) { return !table[route].unknown; }

bool route_is_enabled(enum route route, const struct config *c) {
  const size_t setting = table[route].setting;
  return setting == 0 || *(const bool *)((const char *)c + setting);
}

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

bool route_is_expected(enum route route) { return table[route].computed && !route_is_tei(route); }

bool route_has_model(enum route route) { return strstr(table[route].path[0].template, "{model}"); }

bool route_has_layer(enum route route) { return strstr(table[route].path[0].template, "{layer}"); }

enum route route_of_dialect(const struct dialect *dialect) {
  unsigned r = 0;
  while (table[r].dialect != dialect && r + 1 < ROUTE_COUNT) r++;
  must(dialect && table[r].dialect == dialect);
  return (enum route)r;
}

enum route route_of_ask(enum body_ask ask) {
  unsigned r = 0;
  while (table[r].ask != ask || !table[r].computed || !route_has_model((enum route)r))
    must(++r < ROUTE_COUNT);
  return (enum route)r;
}

static bool needs(enum route route, unsigned what) { return table[route].needs & what; }

bool route_serves(enum route route, const struct model *m) {
  const struct whole *w = m->whole;
  if (needs(route, A_TOKENIZER) && !(w && w->tokenizer)) return false;
  if (needs(route, A_TEMPLATE) && !(w && w->chat)) return false;
  const size_t classes = w ? whole_classes(w, WHOLE_HEAD_CLASSES) : 0;
  if (needs(route, CLASSES) && classes == 0) return false;
  if (needs(route, ONE_CLASS) && classes > 1) return false;
  if (needs(route, TOKEN_CLASSES) && !(w && whole_classes(w, WHOLE_HEAD_TOKENS))) return false;
  if (needs(route, QUESTIONS) && !(w && whole_classes(w, WHOLE_HEAD_SPANS))) return false;
  if (needs(route, LIKELIHOOD) && !whole_has_output(w)) return false;
  if (needs(route, GENERATION) && !whole_can_generate(w)) return false;
  if (needs(route, MASKED) && !whole_can_fill(w)) return false;
  if (needs(route, WEIGHTS) && !whole_can_weigh(w)) return false;
  if (needs(route, VECTORS) && !(w && w->vocabulary)) return false;
  return table[route].kinds >> m->kind & 1;
}

enum status route_refusal(enum route route, const struct model *m) {
  const enum status lacking = table[route].lacking;
  return lacking && table[route].kinds >> m->kind & 1 ? lacking : STATUS_NOT_FOUND;
}

const char *route_missing(enum route route, const struct model *m) {
  const struct whole *w = m->whole;
  if (needs(route, A_TOKENIZER) && w && !w->tokenizer) return " without a tokenizer";
  if (needs(route, A_TEMPLATE) && w && !w->chat) return " without a chat template";
  if (needs(route, ONE_CLASS) && w && whole_classes(w, WHOLE_HEAD_CLASSES) > 1)
    return " with several classes, where one is required";
  if (needs(route, VECTORS) && w) return " without token embeddings";
  if (needs(route, CLASSES) && w) return " without a classifier";
  if (needs(route, QUESTIONS) && w) return " without a question answering head";
  if (needs(route, TOKEN_CLASSES) && w) return " without a classifier of tokens";
  if (needs(route, WEIGHTS) && w) return " without sparse embeddings";
  if (needs(route, MASKED) && m->kind == MODEL_ENCODER)
    return " without a masked language modeling head";
  if (!needs(route, LIKELIHOOD | GENERATION) || !(DECODERS >> m->kind & 1)) return "";
  return whole_lacks_begin(w) ? " without \"begin\" in its definition, the decoder start token"
                              : " without a language modeling head";
}

const char *route_remedy(enum route route, const struct model *m) {
  const struct whole *w = m->whole;
  if (!needs(route, A_TEMPLATE) || !w || !w->tokenizer || w->chat) return "";
  return ": set \"chat_template\" in its definition";
}

void route_list_admin(char *text, size_t size) {
  size_t used = 0, left = 0;
  for (unsigned r = 0; r < ROUTE_COUNT; r++) left += table[r].admin;
  for (unsigned r = 0; r < ROUTE_COUNT && used < size; r++)
    if (table[r].admin)
      used += (size_t)snprintf(text + used, size - used, "%s%s", table[r].path[0].template,
                               --left > 1 ? ", "
                               : left > 0 ? " and "
                                          : "");
}

void route_list(const struct model *m, char *text, size_t size) {
  size_t used = 0;
  text[0] = 0;
  for (unsigned r = 0; r < ROUTE_COUNT && used < size; r++)
    if (table[r].computed && route_has_model((enum route)r) && route_serves((enum route)r, m))
      used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
                               table[r].path[0].template);
}

const char *route_allow(enum route route) { return table[route].computed ? "POST" : "GET, HEAD"; }
const char *route_template(enum route route) { return table[route].path[0].template; }
const char *method_name(enum method method) { return methods[method]; }
