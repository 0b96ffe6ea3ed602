/* reply: an answer, from its status or its bytes to libmicrohttpd's queue. */
#include "server/http/reply.h"

#include <limits.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/document/text.h"
#include "server/http/cors.h"
#include "server/http/request_id.h"

static const struct {
  unsigned code;
  const char *slug, *title;
} table[STATUS_COUNT] = {
    [STATUS_OK] = {200, "ok", "OK"},
    [STATUS_INVALID_JSON] = {400, "invalid-json", "The body is not JSON"},
    [STATUS_INVALID_REQUEST] = {400, "invalid-request", "The request is not valid"},
    [STATUS_BAD_FRAMING] = {400, "bad-framing", "The HTTP message contradicts itself"},
    [STATUS_UNAUTHORIZED] = {401, "unauthorized", "A key is needed"},
    [STATUS_NOT_FOUND] = {404, "not-found", "No such path"},
    [STATUS_UNKNOWN_MODEL] = {404, "unknown-model", "No such model"},
    [STATUS_METHOD_NOT_ALLOWED] = {405, "method-not-allowed", "Not a method of this path"},
    [STATUS_NOT_ACCEPTABLE] = {406, "not-acceptable", "No acceptable form of answer"},
    [STATUS_TOO_SLOW] = {408, "too-slow", "The request took too long to arrive"},
    [STATUS_TOO_LARGE] = {413, "too-large", "The request is over a limit"},
    [STATUS_UNSUPPORTED_MEDIA_TYPE] = {415, "unsupported-media-type", "Not a type understood here"},
    [STATUS_NOT_FINITE] = {422, "not-finite", "A result is not finite"},
    [STATUS_OVERLOADED] = {429, "overloaded", "Too much work at once"},
    [STATUS_QUEUE_FULL] = {429, "overloaded", "Too much work at once"},
    [STATUS_UNSUPPORTED_TRANSFER_ENCODING] = {501, "unsupported-transfer-encoding",
                                              "Not a transfer coding understood here"},
    [STATUS_DRAINING] = {503, "draining", "The server is stopping"},
    [STATUS_NOT_READY] = {503, "not-ready", "The server is not ready"},
    [STATUS_OUT_OF_MEMORY] = {503, "out-of-memory", "Out of memory"},
    [STATUS_DEADLINE] = {504, "deadline-exceeded", "Not finished in time"},
    [STATUS_GONE] = {499, "gone", "The client left"},
    [STATUS_CONFIG] = {500, "internal", "Internal error"},
    [STATUS_SYSTEM] = {500, "internal", "Internal error"},
};

unsigned reply_code(enum status status) { return table[status].code; }
const char *reply_slug(enum status status) { return table[status].slug; }

static bool is_retry(unsigned code) { return code == 429 || code == 503; }

/* Text that grows in a fixed space, which is large enough for the longest problem. */
struct text {
  char *at, *end;
};

static void add(struct text *t, const char *bytes, size_t n) {
  must((size_t)(t->end - t->at) >= n);
  memcpy(t->at, bytes, n);
  t->at += n;
}

static void add_word(struct text *t, const char *word) { add(t, word, strlen(word)); }

/* A JSON string, of what a client may have sent. */
static void add_quoted(struct text *t, const char *value) {
  add_word(t, "\"");
  const char *end = value + strlen(value);
  for (const char *s = value; s < end;) {
    size_t n = text_character(s, (size_t)(end - s));
    unsigned char c = (unsigned char)*s;
    char escape[8];
    if (n == 0 || c < 0x20 || c == '"' || c == '\\' || c == 0x7f) {
      snprintf(escape, sizeof escape, "\\u%04x", n ? c : 0xfffdu);
      add_word(t, escape);
      s++;
    } else {
      add(t, s, n);
      s += n;
    }
  }
  add_word(t, "\"");
}

/* `,"name":"value"` */
static void add_string(struct text *t, const char *name, const char *value) {
  add_word(t, ",\"");
  add_word(t, name);
  add_word(t, "\":");
  add_quoted(t, value);
}

static void add_number(struct text *t, const char *name, size_t value) {
  char number[64];
  snprintf(number, sizeof number, ",\"%s\":%zu", name, value);
  add_word(t, number);
}

static size_t problem_text(const struct error *e, char text[REPLY_PROBLEM_SIZE]) {
  struct text t = {text, text + REPLY_PROBLEM_SIZE};
  add_word(&t, "{\"type\":\"/problems/");
  add_word(&t, table[e->status].slug);
  add_word(&t, "\"");
  add_string(&t, "title", table[e->status].title);
  add_number(&t, "status", table[e->status].code);
  if (e->pointer[0]) add_string(&t, "pointer", e->pointer);
  if (e->detail[0]) add_string(&t, "detail", e->detail);
  if (e->has_offset) add_number(&t, "offset", e->offset);
  if (e->limit) add_string(&t, "limit", e->limit);
  add_word(&t, "}\n");
  return (size_t)(t.at - text);
}

size_t reply_sentence(const struct error *e, char sentence[REPLY_SENTENCE_SIZE]) {
  char *at = sentence, *const end = sentence + REPLY_SENTENCE_SIZE;
  const char *before = " (";
  at += snprintf(at, REPLY_SENTENCE_SIZE, "%s", e->detail[0] ? e->detail : table[e->status].title);
  if (e->pointer[0]) {
    at += snprintf(at, (size_t)(end - at), "%sat %s", before, e->pointer);
    before = ", ";
  }
  if (e->has_offset) {
    at += snprintf(at, (size_t)(end - at), "%sat byte %zu", before, e->offset);
    before = ", ";
  }
  if (e->limit) {
    at += snprintf(at, (size_t)(end - at), "%ssetting %s", before, e->limit);
    before = ", ";
  }
  if (*before == ',') at += snprintf(at, (size_t)(end - at), ")");
  must(at < end);
  return (size_t)(at - sentence);
}

static size_t sentence_text(const struct error *e, char text[REPLY_PROBLEM_SIZE]) {
  struct text t = {text, text + REPLY_PROBLEM_SIZE};
  char sentence[REPLY_SENTENCE_SIZE];
  reply_sentence(e, sentence);
  add_word(&t, "{\"error\":");
  add_quoted(&t, sentence);
  add_word(&t, "}\n");
  return (size_t)(t.at - text);
}

size_t reply_error_text(const struct error *e, enum reply_errors form,
                        char text[REPLY_PROBLEM_SIZE]) {
  return form == REPLY_V2 ? sentence_text(e, text) : problem_text(e, text);
}

static const char *type_of(enum reply_errors form) {
  return form == REPLY_V2 ? "application/json" : "application/problem+json";
}

/* The fields for a page of an allowed origin, as lines. */
static void origin_lines(const char *origin, struct text *t) {
  add_word(t, "Vary: Origin\r\nAccess-Control-Allow-Origin: ");
  add_word(t, origin);
  for (const struct reply_field *f = cors_every; f->name; f++) {
    add_word(t, "\r\n");
    add_word(t, f->name);
    add_word(t, ": ");
    add_word(t, f->value);
  }
  add_word(t, "\r\n");
}

/* RFC 9110 wants it of whoever has a clock; libmicrohttpd adds it to its own answers. */
static void date_line(struct text *t) {
  const time_t now = time(NULL);
  struct tm parts;
  char line[64];
  if (!gmtime_r(&now, &parts)) return;
  if (strftime(line, sizeof line, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &parts) > 0)
    add_word(t, line);
}

size_t reply_raw(const struct error *e, enum reply_errors form, const char *request_id,
                 const char *origin, char text[REPLY_RAW_SIZE]) {
  char body[REPLY_PROBLEM_SIZE], line[128], fresh[REQUEST_ID_SIZE];
  struct text t = {text, text + REPLY_RAW_SIZE - 1};
  const size_t size = reply_error_text(e, form, body);
  const unsigned code = table[e->status].code;
  snprintf(line, sizeof line, "HTTP/1.1 %u %s\r\nConnection: close\r\n", code,
           MHD_get_reason_phrase_for(code));
  add_word(&t, line);
  date_line(&t);
  if (is_retry(code)) add_word(&t, "Retry-After: 1\r\n");
  add_word(&t, "X-Request-Id: ");
  add_word(&t, request_id ? request_id : request_id_make_random(fresh));
  add_word(&t, "\r\n");
  if (origin) origin_lines(origin, &t);
  snprintf(line, sizeof line, "Content-Type: %s\r\nContent-Length: %zu\r\n\r\n", type_of(form),
           size);
  add_word(&t, line);
  add(&t, body, size);
  *t.at = '\0';
  return (size_t)(t.at - text);
}

void reply_add(struct reply *r, const char *name, const char *value) {
  must(r->fields < REPLY_FIELDS);
  r->field[r->fields++] = (struct reply_field){name, value};
}

void reply_add_all(struct reply *r, const struct reply_field *list) {
  for (; list->name; list++) reply_add(r, list->name, list->value);
}

/* The response with its header fields, queued; the queue keeps it from here on. */
static bool queue(const struct reply *r, struct MHD_Response *response) {
  if (!response) return false;
  bool good = true;
  for (const struct reply_field *f = r->field; good && f < r->field + r->fields; f++)
    good = MHD_add_response_header(response, f->name, f->value) == MHD_YES;
  good = good && MHD_queue_response(r->to, r->code, response) == MHD_YES;
  MHD_destroy_response(response);
  return good;
}

bool reply_bytes(const struct reply *r, const char *bytes, size_t length) {
  return queue(r, MHD_create_response_from_buffer(length, (void *)bytes, MHD_RESPMEM_PERSISTENT));
}

bool reply_take(const struct reply *r, char *bytes, size_t length) {
  struct MHD_Response *response =
      MHD_create_response_from_buffer(length, bytes, MHD_RESPMEM_MUST_FREE);
  if (!response) free(bytes);
  return queue(r, response);
}

/* --- pieces --- */

/* libmicrohttpd (0.9.75) copies the list of the pieces into the connection's memory and aborts the
 * process if it does not fit. There lie the request's head, an entry for each of its fields, and
 * what the client has sent ahead: up to half of that memory. So only beside a head that is not
 * large and has few fields; and no trailer, whose text is counted nowhere. */
static bool list_fits(const struct reply *r) {
  enum { HEAD_MOST = 16 * 1024, FIELD = 96 };
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(r->to, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  const int fields =
      MHD_get_connection_values(r->to, MHD_HEADER_KIND | MHD_COOKIE_KIND | MHD_GET_ARGUMENT_KIND,
                                NULL, NULL);
  return info && info->header_size + FIELD * (size_t)fields <= HEAD_MOST &&
         MHD_get_connection_values(r->to, MHD_FOOTER_KIND, NULL, NULL) == 0;
}

/* Pieces that are copied out one after the other. */
struct copying {
  const struct iovec *piece, *end;
  uint64_t begin; /* of `piece` in the answer */
};

static ssize_t copy_pieces(void *of, uint64_t at, char *out, size_t room) {
  struct copying *c = of;
  while (c->piece < c->end && at - c->begin >= c->piece->iov_len) c->begin += c->piece++->iov_len;
  if (c->piece == c->end) return MHD_CONTENT_READER_END_OF_STREAM;
  const size_t skipped = (size_t)(at - c->begin), left = c->piece->iov_len - skipped;
  const size_t n = left < room ? left : room;
  memcpy(out, (const char *)c->piece->iov_base + skipped, n);
  return (ssize_t)n;
}

static bool reply_copies(const struct reply *r, const struct iovec *piece, size_t pieces) {
  enum { BLOCK = 64 * 1024 };
  struct copying *c = malloc(sizeof *c);
  if (!c) return false;
  *c = (struct copying){.piece = piece, .end = piece + pieces};
  uint64_t bytes = 0;
  for (size_t i = 0; i < pieces; i++) bytes += piece[i].iov_len;
  struct MHD_Response *response =
      MHD_create_response_from_callback(bytes, BLOCK, copy_pieces, c, free);
  if (!response) free(c);
  return queue(r, response);
}

/* One piece leaves in the same system call as the head; several leave as a gathered write. */
bool reply_pieces(const struct reply *r, const struct iovec *piece, size_t pieces) {
  _Static_assert(sizeof(struct iovec) == sizeof(struct MHD_IoVec) &&
                     offsetof(struct iovec, iov_len) == offsetof(struct MHD_IoVec, iov_len),
                 "libmicrohttpd's vector is the system's");
  if (pieces == 1) return reply_bytes(r, piece->iov_base, piece->iov_len);
  must(pieces <= UINT_MAX);
  if (!list_fits(r)) return reply_copies(r, piece, pieces);
  return queue(r, MHD_create_response_from_iovec((const struct MHD_IoVec *)piece, (unsigned)pieces,
                                                 NULL, NULL));
}

bool reply_error(struct reply *r, const struct error *e, char text[REPLY_PROBLEM_SIZE],
                 size_t *length) {
  r->code = table[e->status].code;
  reply_add(r, "Content-Type", type_of(r->errors));
  if (is_retry(r->code)) reply_add(r, "Retry-After", "1");
  *length = reply_error_text(e, r->errors, text);
  return reply_bytes(r, text, *length);
}
