/* log_text: the lines of both logs as text. */
#include "server/watch/log_text.h"

#include <string.h>

#include "config/document/text.h"
#include "server/watch/request_id.h"

/* A growing line. Its parts are bounded so that they fit. */
struct log_text {
  char *at, *end;
};

static void append_bytes(struct log_text *t, const char *bytes, size_t size) {
  must((size_t)(t->end - t->at) >= size);
  memcpy(t->at, bytes, size);
  t->at += size;
}

static void append_word(struct log_text *t, const char *word) {
  append_bytes(t, word, strlen(word));
}

/* Appends a decimal number of at least `least` digits. */
static void append_digits(struct log_text *t, uint64_t n, size_t least) {
  char text[20], *const end = text + sizeof text, *at = end;
  do *--at = (char)('0' + n % 10);
  while ((n /= 10) || (size_t)(end - at) < least);
  append_bytes(t, at, (size_t)(end - at));
}

static void append_number(struct log_text *t, uint64_t n) { append_digits(t, n, 1); }

/* Appends milliseconds: "1.234". */
static void append_ms(struct log_text *t, uint64_t ns) {
  append_number(t, ns / 1000000);
  append_bytes(t, ".", 1);
  append_digits(t, ns / 1000 % 1000, 3);
}

/* --- the time --- */

/* gmtime_r would take a lock of the whole process. Years are counted from March: then the extra day
 * of a leap year is the last of its year. */
void log_text_time(const struct timespec *realtime, char text[LOG_TIME_SIZE]) {
  enum { DAY = 86400, ERA_DAYS = 146097, FROM_MARCH_0000 = 719468 };
  const uint64_t seconds = realtime->tv_sec > 0 ? (uint64_t)realtime->tv_sec : 0;
  const uint64_t days = seconds / DAY + FROM_MARCH_0000, second = seconds % DAY;
  const uint64_t in_era = days % ERA_DAYS;
  const uint64_t year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
  const uint64_t in_year = in_era - (365 * year + year / 4 - year / 100);
  const uint64_t month = (5 * in_year + 2) / 153; /* 0: March */
  struct log_text t = {text, text + LOG_TIME_SIZE};
  append_digits(&t, days / ERA_DAYS * 400 + year + (month >= 10), 4);
  append_bytes(&t, "-", 1);
  append_digits(&t, month < 10 ? month + 3 : month - 9, 2);
  append_bytes(&t, "-", 1);
  append_digits(&t, in_year - (153 * month + 2) / 5 + 1, 2);
  append_bytes(&t, "T", 1);
  append_digits(&t, second / 3600, 2);
  append_bytes(&t, ":", 1);
  append_digits(&t, second / 60 % 60, 2);
  append_bytes(&t, ":", 1);
  append_digits(&t, second % 60, 2);
  append_bytes(&t, ".", 1);
  append_digits(&t, (uint64_t)realtime->tv_nsec / 1000, 6);
  append_bytes(&t, "Z", 2); /* and the NUL */
}

static void append_now(struct log_text *t) {
  struct timespec now;
  char text[LOG_TIME_SIZE];
  clock_gettime(CLOCK_REALTIME, &now);
  log_text_time(&now, text);
  append_word(t, text);
}

/* --- text from outside --- */

static char hex_char(uint32_t n) { return "0123456789abcdef"[n & 15]; }

/* Writes a UTF-16 unit as \uXXXX. Returns the length. */
static size_t escape_unit(char out[6], uint32_t unit) {
  const char text[6] = {
      '\\', 'u', hex_char(unit >> 12), hex_char(unit >> 8), hex_char(unit >> 4), hex_char(unit)};
  memcpy(out, text, sizeof text);
  return sizeof text;
}

/* Writes a character of `size` bytes for a JSON string; size 0: a byte that is not UTF-8. Returns
 * the length. */
static size_t escape_character(char out[12], const char *from, size_t size) {
  const unsigned char *b = (const unsigned char *)from;
  if (size == 0) return escape_unit(out, 0xfffd);
  if (size == 1 && b[0] >= 0x20 && b[0] != 0x7f) {
    const bool escaped = b[0] == '"' || b[0] == '\\';
    out[0] = '\\';
    out[escaped] = (char)b[0];
    return 1 + escaped;
  }
  uint32_t c = size == 1 ? b[0] : b[0] & (0x7fu >> size);
  for (size_t i = 1; i < size; i++) c = c << 6 | (b[i] & 0x3fu);
  if (c < 0x10000) return escape_unit(out, c);
  const size_t n = escape_unit(out, 0xd800 + ((c - 0x10000) >> 10));
  return n + escape_unit(out + n, 0xdc00 + ((c - 0x10000) & 0x3ff));
}

/* Appends the inside of a JSON string of at most `most` + 6 bytes, the six for an ellipsis. */
static void append_json(struct log_text *t, const char *from, size_t most) {
  char one[12];
  for (size_t used = 0;;) {
    size_t plain = 0; /* bytes that need no escape */
    while (plain < most - used && from[plain] >= 0x20 && from[plain] < 0x7f && from[plain] != '"' &&
           from[plain] != '\\')
      plain++;
    append_bytes(t, from, plain);
    used += plain;
    from += plain;
    if (!*from) return;
    const size_t size = text_character(from, strnlen(from, 4));
    const size_t n = escape_character(one, from, size);
    if (used + n > most) {
      append_bytes(t, "\\u2026", 6);
      return;
    }
    append_bytes(t, one, n);
    used += n;
    from += size ? size : 1;
  }
}

/* Appends the inside of a quoted string of at most `most` bytes. */
static void append_quoted(struct log_text *t, const char *from, size_t most) {
  for (size_t used = 0; *from; from++) {
    const unsigned char c = (unsigned char)*from;
    const bool escaped = c == '"' || c == '\\', odd = c < 0x20 || c >= 0x7f;
    const char text[4] = {'\\', odd ? 'x' : (char)c, hex_char(c >> 4), hex_char(c)};
    const size_t n = odd ? 4 : 1 + escaped;
    if (used + n > most) return;
    append_bytes(t, text + (!odd && !escaped), n);
    used += n;
  }
}

/* --- standard error --- */

const char *log_text_level(enum log_level level) {
  static const char *const names[LOG_LEVELS] = {"error", "warning", "info", "debug"};
  return names[level];
}

size_t log_text_message(bool journal, enum log_level level, const char *message,
                        char line[LOG_LINE_SIZE]) {
  static const char *const priority[LOG_LEVELS] = {"<3>", "<4>", "<6>", "<7>"}; /* sd-daemon(3) */
  struct log_text t = {line, line + LOG_LINE_SIZE};
  if (journal) {
    append_word(&t, priority[level]);
  } else {
    append_word(&t, "time=");
    append_now(&t);
    append_bytes(&t, " ", 1);
  }
  append_word(&t, "level=");
  append_word(&t, log_text_level(level));
  append_word(&t, " msg=\"");
  append_quoted(&t, message, (size_t)(t.end - t.at) - 2);
  append_bytes(&t, "\"\n", 2);
  return (size_t)(t.at - line);
}

/* --- the access log --- */

/* The most bytes of each value in the line, without six for an ellipsis. All names and numbers have
 * less than 640. */
enum {
  ID_MOST = 128,
  WORD_MOST = 40,
  CLIENT_MOST = 64,
  ROUTE_MOST = 80,
  PATH_MOST = 480,
  MODEL_MOST = 160,
  AGENT_MOST = 320
};

static void append_string_member(struct log_text *t, const char *name, const char *value,
                                 size_t most) {
  append_word(t, name);
  append_json(t, value, most);
  append_bytes(t, "\"", 1);
}

static void append_number_member(struct log_text *t, const char *name, uint64_t n) {
  append_word(t, name);
  append_number(t, n);
}

size_t log_text_request(const struct log_request *r, char line[LOG_LINE_SIZE]) {
  struct log_text t = {line, line + LOG_LINE_SIZE};
  append_word(&t, "{\"time\":\"");
  append_now(&t);
  append_string_member(&t, "\",\"request_id\":\"", r->id, ID_MOST);
  if (r->traceparent) {
    append_word(&t, ",\"trace_id\":\"");
    append_bytes(&t, traceparent_trace(r->traceparent), TRACEPARENT_TRACE_SIZE);
    append_word(&t, "\",\"parent_id\":\"");
    append_bytes(&t, traceparent_parent(r->traceparent), TRACEPARENT_PARENT_SIZE);
    append_bytes(&t, "\"", 1);
  }
  append_string_member(&t, ",\"listener\":\"", r->listener, WORD_MOST);
  append_string_member(&t, ",\"client\":\"", r->client, CLIENT_MOST);
  append_string_member(&t, ",\"method\":\"", r->method, WORD_MOST);
  append_string_member(&t, ",\"route\":\"", r->route, ROUTE_MOST);
  char path[PATH_MOST + 2]; /* up to the '?'; one byte more than fits, so that it is cut */
  const size_t size = strcspn(r->path, "?#");
  const size_t n = size < sizeof path ? size : sizeof path - 1;
  memcpy(path, r->path, n);
  path[n] = 0;
  append_string_member(&t, ",\"path\":\"", path, PATH_MOST);
  if (r->model && *r->model) append_string_member(&t, ",\"model\":\"", r->model, MODEL_MOST);
  append_number_member(&t, ",\"status\":", r->code);
  if (r->error) append_string_member(&t, ",\"error\":\"", r->error, WORD_MOST);
  append_number_member(&t, ",\"bytes_in\":", r->bytes_in);
  append_number_member(&t, ",\"bytes_out\":", r->bytes_out);
  if (r->tokens) append_number_member(&t, ",\"tokens\":", r->tokens);
  if (r->generated) append_number_member(&t, ",\"generated\":", r->generated);
  if (r->first_token) {
    append_word(&t, ",\"first_token_ms\":");
    append_ms(&t, r->first_token);
  }
  append_word(&t, ",\"total_ms\":");
  append_ms(&t, r->nanoseconds);
  for (enum timeline_stage s = 0; s < STAGE_COUNT; s++) {
    if (!r->timeline->reached[s]) continue;
    append_bytes(&t, ",\"", 2);
    append_word(&t, timeline_name(s));
    append_word(&t, "_ms\":");
    append_ms(&t, r->timeline->ns[s]);
  }
  if (r->agent) append_string_member(&t, ",\"agent\":\"", r->agent, AGENT_MOST);
  append_bytes(&t, "}\n", 2);
  return (size_t)(t.at - line);
}

size_t log_text_lost(uint64_t lines, char line[LOG_LINE_SIZE]) {
  struct log_text t = {line, line + LOG_LINE_SIZE};
  append_word(&t, "{\"time\":\"");
  append_now(&t);
  append_number_member(&t, "\",\"log_lost\":", lines);
  append_bytes(&t, "}\n", 2);
  return (size_t)(t.at - line);
}
