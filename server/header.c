/* header: the request's header fields that mean something to us, judged one by one. */
#include "server/header.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "config/text.h"

enum { REQUEST_ID_MAX = 128, TIMEOUT_MS_MAX = 86400000 };

void header_init(struct header *h) {
  memset(h, 0, offsetof(struct header, error));
  h->json = true;
  for (int i = 0; i < 3; i++) h->accept.quality[i] = -1;
  h->error = (struct error){0};
}

static bool is_token(const char *text, size_t size) {
  for (size_t i = 0; i < size; i++) {
    unsigned char c = (unsigned char)text[i];
    if (!isalnum(c) && (c == 0 || !strchr("!#$%&'*+-.^_`|~", c))) return false;
  }
  return size > 0;
}

static bool is_request_id(const char *text) {
  size_t n = strlen(text);
  for (size_t i = 0; i < n && i <= REQUEST_ID_MAX; i++) {
    unsigned char c = (unsigned char)text[i];
    if (!(c < 128 && isalnum(c)) && c != '.' && c != '_' && c != '-') return false;
  }
  return n > 0 && n <= REQUEST_ID_MAX;
}

/* The next element of a list such as `text/html, application/json;q=0.5`: its media type without
 * white space around it, and its parameters. Commas inside quotes belong to the element. */
struct media {
  const char *type, *parameters;
  size_t type_size, parameters_size;
};

static const char *media_next(const char *at, struct media *m) {
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

static bool media_is(const struct media *m, const char *type) {
  return m->type_size == strlen(type) && !strncasecmp(m->type, type, m->type_size);
}

/* The weight `q` of a media range in thousandths: 1000 unless it says otherwise. */
static int media_quality(const struct media *m) {
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

static void add_accept(struct header_accept *a, const char *value) {
  struct media m;
  while ((value = media_next(value, &m))) {
    a->given = true;
    int place = media_is(&m, "application/json") ? 2
                : media_is(&m, "application/*")  ? 1
                : media_is(&m, "*/*")            ? 0
                                                 : -1;
    int quality = media_quality(&m);
    if (place >= 0 && quality > a->quality[place]) a->quality[place] = quality;
  }
}

static void add_length(struct header *h, const char *value) {
  if (h->length && strcmp(h->length, value))
    error_set(&h->error, STATUS_BAD_FRAMING, "two different Content-Lengths");
  h->length = value;
  if (!text_decimal(value, &h->body_bytes))
    error_set(&h->error, STATUS_BAD_FRAMING, "Content-Length is not a number");
}

static void add_coding(struct header *h, const char *value) {
  h->chunked = true;
  if (h->codings++ || strcasecmp(value, "chunked"))
    error_set(&h->error, STATUS_UNSUPPORTED_TRANSFER_ENCODING,
              "the only transfer coding understood is chunked");
}

static void add_timeout(struct header *h, const char *value) {
  if (!text_decimal(value, &h->timeout_ms) || h->timeout_ms < 1 || h->timeout_ms > TIMEOUT_MS_MAX)
    h->bad_timeout = true;
}

void header_add(struct header *h, const char *name, size_t name_size, const char *value) {
  struct media m;
  if (!value) value = "";
  if (!is_token(name, name_size)) {
    error_set(&h->error, STATUS_BAD_FRAMING, "the name of a header field is not a token");
    return;
  }
#define IS(text) (name_size == sizeof text - 1 && !strncasecmp(name, text, sizeof text - 1))
  if (IS("Content-Length"))
    add_length(h, value);
  else if (IS("Transfer-Encoding"))
    add_coding(h, value);
  else if (IS("Host"))
    h->hosts++;
  else if (IS("Accept"))
    add_accept(&h->accept, value);
  else if (IS("User-Agent"))
    h->agent = value;
  else if (IS("X-Timeout-Ms"))
    add_timeout(h, value);
  else if (IS("X-Request-Id"))
    h->request_id = is_request_id(value) ? value : NULL;
  else if (IS("Content-Type"))
    h->json = h->json && media_next(value, &m) && media_is(&m, "application/json");
  else if (IS("Content-Encoding"))
    h->coded = h->coded || (*value && strcasecmp(value, "identity"));
#undef IS
}

void header_finish(struct header *h) {
  if (h->codings && h->length)
    /* Whoever stands between may have taken the other one: this outweighs all else. */
    h->error = (struct error){.status = STATUS_BAD_FRAMING,
                              .detail = "both Content-Length and Transfer-Encoding"};
  if (h->hosts > 1) error_set(&h->error, STATUS_BAD_FRAMING, "two Host fields");
  if (h->bad_timeout)
    error_set(&h->error, STATUS_INVALID_REQUEST,
              "X-Timeout-Ms is not a whole number of milliseconds from 1 to %d", TIMEOUT_MS_MAX);
  if (h->chunked) h->body_bytes = 0;
}

bool header_accepts_json(const struct header *h) {
  if (!h->accept.given) return true;
  for (int place = 2; place >= 0; place--)
    if (h->accept.quality[place] >= 0) return h->accept.quality[place] > 0;
  return false;
}

bool header_has_body(const struct header *h) { return h->chunked || h->body_bytes > 0; }
