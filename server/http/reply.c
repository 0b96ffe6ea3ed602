/* reply: a response, from its status or its bytes to libmicrohttpd's queue. */
#include "server/http/reply.h"

#include <limits.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/document/text.h"
#include "server/http/cors.h"
#include "server/route/problems.h"
#include "server/watch/request_id.h"

/* Each segment of a pointer grows by one character at most: "/3" is "[3]". */
enum { REPLY_PARAM_SIZE = 2 * ERROR_POINTER_SIZE };

unsigned reply_code(enum status status) { return problem_find(status)->code; }
const char *reply_slug(enum status status) { return problem_find(status)->slug; }

static bool asks_to_retry(unsigned code) { return code == 429 || code == 503; }

/* --- the text of an error --- */

/* Text that grows in a fixed space, which is large enough for the longest error. */
struct reply_text {
  char *at, *end;
};

static void append_bytes(struct reply_text *t, const char *bytes, size_t n) {
  must((size_t)(t->end - t->at) >= n);
  memcpy(t->at, bytes, n);
  t->at += n;
}

static void append_text(struct reply_text *t, const char *word) {
  append_bytes(t, word, strlen(word));
}

/* Appends a JSON string. The value may contain bytes of a client that are not UTF-8. */
static void append_json_string(struct reply_text *t, const char *value) {
  append_text(t, "\"");
  const char *end = value + strlen(value);
  for (const char *s = value; s < end;) {
    size_t n = text_character(s, (size_t)(end - s));
    unsigned char c = (unsigned char)*s;
    char escape[8];
    if (n == 0 || c < 0x20 || c == '"' || c == '\\' || c == 0x7f) {
      snprintf(escape, sizeof escape, "\\u%04x", n ? c : 0xfffdu);
      append_text(t, escape);
      s++;
    } else {
      append_bytes(t, s, n);
      s += n;
    }
  }
  append_text(t, "\"");
}

/* Appends `,"name":"value"`. */
static void append_string_member(struct reply_text *t, const char *name, const char *value) {
  append_text(t, ",\"");
  append_text(t, name);
  append_text(t, "\":");
  append_json_string(t, value);
}

/* Appends `,"name":value`. */
static void append_number_member(struct reply_text *t, const char *name, size_t value) {
  char number[64];
  snprintf(number, sizeof number, ",\"%s\":%zu", name, value);
  append_text(t, number);
}

size_t reply_sentence(const struct error *e, char sentence[REPLY_SENTENCE_SIZE]) {
  char *at = sentence, *const end = sentence + REPLY_SENTENCE_SIZE;
  const char *before = " (";
  at += snprintf(at, REPLY_SENTENCE_SIZE, "%s",
                 e->detail[0] ? e->detail : problem_find(e->status)->title);
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

/* Writes a JSON Pointer as OpenAI names a field: "/input/3/17" as "input[3][17]", "/a/b" as "a.b".
 */
static void write_param(const char *pointer, char param[REPLY_PARAM_SIZE]) {
  char *out = param;
  while (*pointer == '/') {
    const size_t length = strcspn(++pointer, "/");
    const bool index = length > 0 && strspn(pointer, "0123456789") >= length;
    if (index)
      *out++ = '[';
    else if (out > param)
      *out++ = '.';
    for (const char *end = pointer + length; pointer < end; pointer++) {
      const bool escaped = *pointer == '~' && (pointer[1] == '0' || pointer[1] == '1');
      *out++ = !escaped ? *pointer : *++pointer == '0' ? '~' : '/';
    }
    if (index) *out++ = ']';
  }
  *out = '\0';
}

/* Appends OpenAI's object of an error. Its message names no place: `param` does. */
static void append_openai(struct reply_text *t, const struct error *e) {
  static const char *const own_codes[STATUS_COUNT] = {
      [STATUS_UNAUTHORIZED] = "invalid_api_key",
      [STATUS_UNKNOWN_MODEL] = "model_not_found",
      [STATUS_OVERLOADED] = "rate_limit_exceeded",
      [STATUS_QUEUE_FULL] = "rate_limit_exceeded",
  };
  const struct problem *p = problem_find(e->status);
  struct error placeless = *e;
  char sentence[REPLY_SENTENCE_SIZE], param[REPLY_PARAM_SIZE];
  placeless.pointer[0] = '\0';
  reply_sentence(&placeless, sentence);
  write_param(e->pointer, param);
  append_text(t, "{\"message\":");
  append_json_string(t, sentence);
  /* OpenAI's clients choose the class of their exception by the type. */
  append_string_member(t, "type",
                       p->code == 429   ? "rate_limit_error"
                       : p->code >= 500 ? "server_error"
                                        : "invalid_request_error");
  append_text(t, ",\"param\":");
  if (*param)
    append_json_string(t, param);
  else
    append_text(t, "null");
  /* OpenAI's word if there is one, else the slug with underscores. */
  append_text(t, ",\"code\":\"");
  for (const char *c = own_codes[e->status] ? own_codes[e->status] : p->slug; *c; c++)
    append_bytes(t, *c == '-' ? "_" : c, 1);
  append_text(t, "\"}");
}

size_t reply_error_text(const struct error *e, enum error_form form, char text[REPLY_ERROR_SIZE]) {
  struct reply_text t = {text, text + REPLY_ERROR_SIZE};
  const struct problem *p = problem_find(e->status);
  char sentence[REPLY_SENTENCE_SIZE];
  reply_sentence(e, sentence);
  switch (form) {
  case ERROR_PROBLEM:
  case ERROR_V1:
    append_text(&t, "{\"type\":\"/problems/");
    append_text(&t, p->slug);
    append_text(&t, "\"");
    append_string_member(&t, "title", p->title);
    append_number_member(&t, "status", p->code);
    if (e->pointer[0]) append_string_member(&t, "pointer", e->pointer);
    if (e->detail[0]) append_string_member(&t, "detail", e->detail);
    if (e->has_offset) append_number_member(&t, "offset", e->offset);
    if (e->limit) append_string_member(&t, "limit", e->limit);
    if (form == ERROR_PROBLEM) break;
    append_text(&t, ",\"error\":");
    append_openai(&t, e);
    break;
  case ERROR_OPENAI:
  case ERROR_COHERE:
    append_text(&t, "{\"error\":");
    append_openai(&t, e);
    if (form == ERROR_COHERE) append_string_member(&t, "message", sentence);
    break;
  case ERROR_V2:
  case ERROR_TEI:
    append_text(&t, "{\"error\":");
    append_json_string(&t, sentence);
    if (form == ERROR_V2) break;
    append_string_member(&t, "error_type",
                         p->code == 429   ? "Overloaded"
                         : p->code == 503 ? "Unhealthy"
                         : p->code >= 500 ? "Backend"
                                          : "Validation");
    break;
  }
  append_text(&t, "}\n");
  return (size_t)(t.at - text);
}

static const char *error_type(enum error_form form) {
  const bool problem = form == ERROR_PROBLEM || form == ERROR_V1;
  return problem ? "application/problem+json" : "application/json";
}

size_t reply_raw(const struct error *e, enum error_form form, const char *request_id,
                 const char *origin, char text[REPLY_RAW_SIZE]) {
  char body[REPLY_ERROR_SIZE], line[128], fresh[REQUEST_ID_SIZE];
  struct reply_text t = {text, text + REPLY_RAW_SIZE - 1};
  const size_t size = reply_error_text(e, form, body);
  const unsigned code = problem_find(e->status)->code;
  snprintf(line, sizeof line, "HTTP/1.1 %u %s\r\nConnection: close\r\n", code,
           MHD_get_reason_phrase_for(code));
  append_text(&t, line);
  /* RFC 9110 requires a Date of a server with a clock; libmicrohttpd adds it to its own responses.
   */
  const time_t now = time(NULL);
  struct tm date;
  if (gmtime_r(&now, &date) &&
      strftime(line, sizeof line, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &date) > 0)
    append_text(&t, line);
  if (asks_to_retry(code)) append_text(&t, "Retry-After: 1\r\n");
  append_text(&t, "X-Request-Id: ");
  append_text(&t, request_id ? request_id : request_id_make_random(fresh));
  if (origin) {
    append_text(&t, "\r\nVary: Origin\r\nAccess-Control-Allow-Origin: ");
    append_text(&t, origin);
    for (const struct reply_field *f = cors_every; f->name; f++) {
      append_text(&t, "\r\n");
      append_text(&t, f->name);
      append_text(&t, ": ");
      append_text(&t, f->value);
    }
  }
  snprintf(line, sizeof line, "\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n",
           error_type(form), size);
  append_text(&t, line);
  append_bytes(&t, body, size);
  *t.at = '\0';
  return (size_t)(t.at - text);
}

/* --- the queue --- */

void reply_add(struct reply *r, const char *name, const char *value) {
  must(r->fields < REPLY_FIELDS);
  r->field[r->fields++] = (struct reply_field){name, value};
}

void reply_add_all(struct reply *r, const struct reply_field *list) {
  for (; list->name; list++) reply_add(r, list->name, list->value);
}

/* Queues the response with its header fields, and drops it. NULL was a failed allocation. */
static bool queue_response(const struct reply *r, struct MHD_Response *response) {
  if (!response) return false;
  bool good = true;
  for (const struct reply_field *f = r->field; good && f < r->field + r->fields; f++)
    good = MHD_add_response_header(response, f->name, f->value) == MHD_YES;
  good = good && MHD_queue_response(r->to, r->code, response) == MHD_YES;
  MHD_destroy_response(response);
  return good;
}

bool reply_bytes(const struct reply *r, const char *bytes, size_t length) {
  return queue_response(r, MHD_create_response_from_buffer(length, (void *)bytes,
                                                           MHD_RESPMEM_PERSISTENT));
}

bool reply_and_free(const struct reply *r, char *bytes, size_t length) {
  struct MHD_Response *response =
      MHD_create_response_from_buffer(length, bytes, MHD_RESPMEM_MUST_FREE);
  if (!response) free(bytes);
  return queue_response(r, response);
}

/* --- pieces --- */

/* Whether the list of pieces fits in the connection's memory. libmicrohttpd (0.9.75) copies it
 * there and aborts the process if it does not. The same memory holds the request's header, an entry
 * for each of its fields, and bytes that the client has sent ahead, up to half of it. The list fits
 * after a small header with few fields and no trailer, whose text is counted nowhere. */
static bool is_room_for_list(const struct reply *r) {
  enum { HEADER_MOST = 16 * 1024, FIELD = 96 };
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(r->to, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  const int fields =
      MHD_get_connection_values(r->to, MHD_HEADER_KIND | MHD_COOKIE_KIND | MHD_GET_ARGUMENT_KIND,
                                NULL, NULL);
  return info && info->header_size + FIELD * (size_t)fields <= HEADER_MOST &&
         MHD_get_connection_values(r->to, MHD_FOOTER_KIND, NULL, NULL) == 0;
}

/* The progress of copy_pieces through a response that libmicrohttpd asks for block by block. */
struct reply_copy {
  const struct iovec *piece, *end;
  uint64_t begin; /* the offset of `piece` in the response */
};

static ssize_t copy_pieces(void *of, uint64_t at, char *out, size_t room) {
  struct reply_copy *c = of;
  while (c->piece < c->end && at - c->begin >= c->piece->iov_len) c->begin += c->piece++->iov_len;
  if (c->piece == c->end) return MHD_CONTENT_READER_END_OF_STREAM;
  const size_t skipped = (size_t)(at - c->begin), left = c->piece->iov_len - skipped;
  const size_t n = left < room ? left : room;
  memcpy(out, (const char *)c->piece->iov_base + skipped, n);
  return (ssize_t)n;
}

/* One piece is sent in the same system call as the header, several in a gathered write, or in
 * blocks if libmicrohttpd has no room for their list. */
bool reply_pieces(const struct reply *r, const struct iovec *piece, size_t pieces) {
  enum { BLOCK = 64 * 1024 };
  _Static_assert(sizeof(struct iovec) == sizeof(struct MHD_IoVec) &&
                     offsetof(struct iovec, iov_len) == offsetof(struct MHD_IoVec, iov_len),
                 "libmicrohttpd's vector is the system's");
  if (pieces == 1) return reply_bytes(r, piece->iov_base, piece->iov_len);
  must(pieces <= UINT_MAX);
  if (is_room_for_list(r))
    return queue_response(r, MHD_create_response_from_iovec((const struct MHD_IoVec *)piece,
                                                            (unsigned)pieces, NULL, NULL));
  struct reply_copy *c = malloc(sizeof *c);
  if (!c) return false;
  *c = (struct reply_copy){.piece = piece, .end = piece + pieces};
  uint64_t bytes = 0;
  for (size_t i = 0; i < pieces; i++) bytes += piece[i].iov_len;
  struct MHD_Response *response =
      MHD_create_response_from_callback(bytes, BLOCK, copy_pieces, c, free);
  if (!response) free(c);
  return queue_response(r, response);
}

bool reply_stream(const struct reply *r,
                  ssize_t (*read)(void *of, uint64_t at, char *out, size_t room), void *of) {
  return queue_response(r, MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, REPLY_STREAM_ROOM,
                                                             read, of, NULL));
}

bool reply_error(struct reply *r, const struct error *e, char text[REPLY_ERROR_SIZE],
                 size_t *length) {
  r->code = problem_find(e->status)->code;
  reply_add(r, "Content-Type", error_type(r->errors));
  if (asks_to_retry(r->code)) reply_add(r, "Retry-After", "1");
  *length = reply_error_text(e, r->errors, text);
  return reply_bytes(r, text, *length);
}
