/* header: reads the fields of a request's header that have a meaning here. */
#include "server/http/header.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "config/document/text.h"
#include "server/http/framing.h"
#include "server/watch/request_id.h"

enum { TIMEOUT_MS_MAX = 86400000 };

void header_init(struct header *h) {
  memset(h, 0, offsetof(struct header, error));
  h->content = MEDIA_NONE;
  h->json_bytes = UINT64_MAX;
  h->accept = (struct header_accept){.any = -1, .application = -1, .named = {-1, -1, -1}};
  h->takes = (struct header_codings){.any = -1, .gzip = -1, .identity = -1};
  h->error = (struct error){0};
}

/* --- lists --- */

/* One element of a list such as `text/html, application/json;q=0.5`: its type without blanks around
 * it, and its parameters. */
struct header_element {
  const char *type, *parameters;
  size_t type_size, parameters_size;
};

/* Reads the next element and returns its end; NULL: the list has ended. A comma inside quotes
 * belongs to the element. */
static const char *next_element(const char *at, struct header_element *m) {
  at += strspn(at, " \t,");
  if (!*at) return NULL;
  m->type = at;
  m->type_size = strcspn(at, ",;");
  at += m->type_size;
  while (m->type_size && strchr(" \t", m->type[m->type_size - 1])) m->type_size--;
  m->parameters = at;
  for (bool quoted = false; *at && (quoted || *at != ','); at++) {
    if (*at == '"') quoted = !quoted;
    if (*at == '\\' && quoted && at[1]) at++;
  }
  m->parameters_size = (size_t)(at - m->parameters);
  return at;
}

static bool element_is(const struct header_element *m, const char *type) {
  return m->type_size == strlen(type) && !strncasecmp(m->type, type, m->type_size);
}

/* The quality `q` of an element in thousandths; 1000 if it has none. */
static int element_quality(const struct header_element *m) {
  const char *end = m->parameters + m->parameters_size;
  for (const char *at = m->parameters; at < end; at++) {
    if (*at != ';') continue;
    const char *p = at + 1 + strspn(at + 1, " \t");
    if (end - p < 3 || (*p != 'q' && *p != 'Q') || p[1] != '=') continue;
    int q = p[2] == '0' ? 0 : 1000;
    if (q || end - p < 4 || p[3] != '.') return q;
    for (int place = 100, i = 4; place && p + i < end && isdigit((unsigned char)p[i]); i++) {
      q += place * (p[i] - '0');
      place /= 10;
    }
    return q;
  }
  return 1000;
}

static const char *const types[MEDIA_OTHER] = {
    [MEDIA_JSON] = "application/json",
    [MEDIA_SAFETENSORS] = "application/x-safetensors",
    [MEDIA_OCTETS] = "application/octet-stream",
};

const char *header_media_type(enum header_media media) { return types[media]; }

static void read_accept(struct header_accept *a, const char *value) {
  struct header_element m;
  while ((value = next_element(value, &m))) {
    int *range = element_is(&m, "*/*")                 ? &a->any
                 : element_is(&m, "application/*")     ? &a->application
                 : element_is(&m, "text/event-stream") ? &a->events
                                                       : NULL; /* the range has no meaning here */
    for (enum header_media t = 0; t < MEDIA_OTHER; t++)
      if (element_is(&m, types[t])) range = &a->named[t];
    const int quality = element_quality(&m);
    if (range && quality > *range) *range = quality;
    a->given = true;
  }
}

static void read_accept_encoding(struct header_codings *c, const char *value) {
  struct header_element m;
  while ((value = next_element(value, &m))) {
    const bool gzip = element_is(&m, "gzip") || element_is(&m, "x-gzip");
    int *coding = gzip ? &c->gzip : element_is(&m, "identity") ? &c->identity : NULL;
    if (element_is(&m, "*")) coding = &c->any;
    const int quality = element_quality(&m);
    if (coding && quality > *coding) *coding = quality;
  }
}

/* One bit for each of `tags` that a list of entity tags names. A weak tag counts as a strong one.
 * The list ends at the first text that is no tag; `*`, alone, names every tag. */
static unsigned find_tags(const char *list, const char *const *tags) {
  unsigned named = 0;
  if (*list == '*') return list[1 + strspn(list + 1, " \t")] ? 0 : ~0u;
  for (const char *at = list + strspn(list, " \t,"); *at; at += strspn(at, " \t,")) {
    if (at[0] == 'W' && at[1] == '/') at += 2;
    const char *end = *at == '"' ? strchr(at + 1, '"') : NULL;
    if (!end) break;
    const size_t size = (size_t)(++end - at);
    for (unsigned i = 0; tags[i]; i++)
      if (strlen(tags[i]) == size && memcmp(tags[i], at, size) == 0) named |= 1u << i;
    at = end;
  }
  return named;
}

/* --- single fields --- */

static void read_host(struct header *h, const char *value) {
  const char *end = framing_skip_host(value);
  while (end && (*end == ' ' || *end == '\t')) end++;
  h->hosts++;
  if (!end || *end)
    error_set(&h->error, STATUS_BAD_FRAMING, "Host is not a host with an optional port");
}

static void read_content_type(struct header *h, const char *value) {
  struct header_element m;
  enum header_media type = MEDIA_OTHER;
  if (next_element(value, &m))
    for (type = 0; type < MEDIA_OTHER && !element_is(&m, types[type]);) type++;
  h->content = h->content == MEDIA_NONE || h->content == type ? type : MEDIA_OTHER;
}

static void read_json_length(struct header *h, const char *value) {
  const uint64_t before = h->json_bytes;
  if (!text_decimal(value, &h->json_bytes) || h->json_bytes == UINT64_MAX ||
      (before != UINT64_MAX && before != h->json_bytes))
    h->bad_json_bytes = true;
}

static void read_content_length(struct header *h, const char *value) {
  if (h->length && strcmp(h->length, value))
    error_set(&h->error, STATUS_BAD_FRAMING, "two different Content-Lengths");
  h->length = value;
  if (!text_decimal(value, &h->body_bytes))
    error_set(&h->error, STATUS_BAD_FRAMING, "Content-Length is not a number");
}

static void read_transfer_coding(struct header *h, const char *value) {
  struct header_element m;
  for (const char *at = value; (at = next_element(at, &m));) {
    h->ends_chunked = element_is(&m, "chunked");
    h->names_chunked |= h->ends_chunked;
  }
  h->chunked = true;
  if (h->codings++ || strcasecmp(value, "chunked"))
    error_set(&h->error, STATUS_UNSUPPORTED_TRANSFER_ENCODING,
              "the only supported transfer coding is chunked");
}

void header_add(struct header *h, const char *name, size_t name_size, const char *value) {
  if (!value) value = "";
  size_t token = 0;
  while (token < name_size && name[token] &&
         (isalnum((unsigned char)name[token]) || strchr("!#$%&'*+-.^_`|~", name[token])))
    token++;
  if (token < name_size || name_size == 0) {
    error_set(&h->error, STATUS_BAD_FRAMING, "the name of a header field is not a token");
    return;
  }
  /* Control characters mean different things to different readers; libmicrohttpd accepts them. */
  const char *at = value;
  while (*at && (!framing_is_control(*at) || *at == '\t')) at++;
  if (*at)
    error_set(&h->error, STATUS_BAD_FRAMING, "the value of a header field has a control character");
#define IS(text) (name_size == sizeof text - 1 && !strncasecmp(name, text, sizeof text - 1))
  if (IS("Content-Length"))
    read_content_length(h, value);
  else if (IS("Transfer-Encoding"))
    read_transfer_coding(h, value);
  else if (IS("Host"))
    read_host(h, value);
  else if (IS("Accept"))
    read_accept(&h->accept, value);
  else if (IS("Accept-Encoding"))
    read_accept_encoding(&h->takes, value);
  else if (IS("If-None-Match"))
    h->known |= h->tags ? find_tags(value, h->tags) : 0;
  else if (IS("User-Agent"))
    h->agent = value;
  else if (IS("traceparent"))
    h->traceparent = h->traceparents++ == 0 && traceparent_is_valid(value) ? value : NULL;
  else if (IS("X-Timeout-Ms"))
    h->bad_timeout |=
        !text_decimal(value, &h->timeout_ms) || h->timeout_ms < 1 || h->timeout_ms > TIMEOUT_MS_MAX;
  else if (IS("X-Request-Id"))
    h->request_id = request_id_is_valid(value) ? value : NULL;
  else if (IS("Content-Type"))
    read_content_type(h, value);
  else if (IS("Inference-Header-Content-Length"))
    read_json_length(h, value);
  else if (IS("Content-Encoding"))
    h->coded = h->coded || (*value && strcasecmp(value, "identity"));
  else if (IS("Authorization"))
    h->authorizations++, h->authorization = value;
  else if (IS("Origin"))
    h->origin = h->origins++ ? NULL : value; /* a browser sends one */
  else if (IS("Access-Control-Request-Method"))
    h->asks_method = true;
#undef IS
}

void header_finish(struct header *h) {
  /* These two replace any other error: a proxy may have found another end of the body. */
  if (h->names_chunked && !h->ends_chunked)
    h->error = (struct error){.status = STATUS_BAD_FRAMING,
                              .detail = "chunked is not the last transfer coding"};
  if (h->codings && h->length)
    h->error = (struct error){.status = STATUS_BAD_FRAMING,
                              .detail = "both Content-Length and Transfer-Encoding"};
  if (h->hosts > 1) error_set(&h->error, STATUS_BAD_FRAMING, "two Host fields");
  if (h->bad_timeout)
    error_set(&h->error, STATUS_INVALID_REQUEST,
              "X-Timeout-Ms must be an integer from 1 to %d (milliseconds)", TIMEOUT_MS_MAX);
  if (h->chunked) h->body_bytes = 0;
}

/* --- results --- */

/* The quality of a type, of the most specific range that contains it. */
static int quality_of(const struct header_accept *a, enum header_media media) {
  if (!a->given) return 1000;
  if (a->named[media] >= 0) return a->named[media];
  if (a->application >= 0) return a->application;
  return a->any > 0 ? a->any : 0;
}

enum header_media header_binary_type(const struct header *h) {
  const struct header_accept *a = &h->accept;
  const int plain = quality_of(a, MEDIA_SAFETENSORS), octets = quality_of(a, MEDIA_OCTETS);
  const bool named = a->named[MEDIA_OCTETS] > 0;
  const bool better = a->named[MEDIA_SAFETENSORS] < 0 || octets > plain;
  return (named && better) || (plain == 0 && octets > 0) ? MEDIA_OCTETS : MEDIA_SAFETENSORS;
}

enum header_wish header_wish(const struct header *h, bool binary) {
  const struct header_accept *a = &h->accept;
  const enum header_media type = header_binary_type(h);
  const int json = quality_of(a, MEDIA_JSON), other = quality_of(a, type);
  const bool names_json = a->named[MEDIA_JSON] > 0;
  const bool names_binary = a->named[MEDIA_SAFETENSORS] > 0 || a->named[MEDIA_OCTETS] > 0;
  if (json == 0 && other == 0) return WISH_NEITHER;
  if (json == 0) return WISH_BINARY_ALONE;
  if (other == 0) return WISH_JSON;
  if (names_binary) return !names_json || other >= json ? WISH_BINARY : WISH_JSON;
  return binary && !names_json ? WISH_BINARY : WISH_JSON;
}

bool header_takes_events(const struct header *h) { return h->accept.events > 0; }

/* At equal quality gzip wins, because it is smaller; an `identity` that is not named loses. */
bool header_takes_gzip(const struct header *h) {
  const struct header_codings *c = &h->takes;
  const int gzip = c->gzip >= 0 ? c->gzip : c->any;
  return gzip > 0 && gzip >= c->identity;
}

bool header_has_body(const struct header *h) { return h->chunked || h->body_bytes > 0; }
