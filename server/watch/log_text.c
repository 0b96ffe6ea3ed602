/* log_text: a line of a log as it grows. */
#include "server/watch/log_text.h"

#include <string.h>

#include "config/document/text.h"

void log_text_bytes(struct log_text *t, const char *bytes, size_t size) {
  must((size_t)(t->end - t->at) >= size);
  memcpy(t->at, bytes, size);
  t->at += size;
}

void log_text_word(struct log_text *t, const char *word) { log_text_bytes(t, word, strlen(word)); }

void log_text_number(struct log_text *t, uint64_t n) {
  char digits[20], *at = digits + sizeof digits;
  do *--at = (char)('0' + n % 10);
  while (n /= 10);
  log_text_bytes(t, at, (size_t)(digits + sizeof digits - at));
}

/* So many digits, with zeros before. */
static void add_digits(struct log_text *t, uint64_t n, size_t digits) {
  char text[20];
  for (size_t i = digits; i-- > 0; n /= 10) text[i] = (char)('0' + n % 10);
  log_text_bytes(t, text, digits);
}

void log_text_ms(struct log_text *t, uint64_t ns) {
  log_text_number(t, ns / 1000000);
  log_text_bytes(t, ".", 1);
  add_digits(t, ns / 1000 % 1000, 3);
}

/* Not by gmtime_r, which takes a lock of the whole process. In years that begin in March, the day
 * that leap years have more is a year's last. */
void log_text_time(struct log_text *t, const struct timespec *realtime) {
  enum { DAY = 86400, ERA_DAYS = 146097, FROM_MARCH_0000 = 719468 };
  const uint64_t seconds = realtime->tv_sec > 0 ? (uint64_t)realtime->tv_sec : 0;
  const uint64_t days = seconds / DAY + FROM_MARCH_0000, second = seconds % DAY;
  const uint64_t in_era = days % ERA_DAYS;
  const uint64_t year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
  const uint64_t in_year = in_era - (365 * year + year / 4 - year / 100);
  const uint64_t month = (5 * in_year + 2) / 153; /* 0: March */
  add_digits(t, days / ERA_DAYS * 400 + year + (month >= 10), 4);
  log_text_bytes(t, "-", 1);
  add_digits(t, month < 10 ? month + 3 : month - 9, 2);
  log_text_bytes(t, "-", 1);
  add_digits(t, in_year - (153 * month + 2) / 5 + 1, 2);
  log_text_bytes(t, "T", 1);
  add_digits(t, second / 3600, 2);
  log_text_bytes(t, ":", 1);
  add_digits(t, second / 60 % 60, 2);
  log_text_bytes(t, ":", 1);
  add_digits(t, second % 60, 2);
  log_text_bytes(t, ".", 1);
  add_digits(t, (uint64_t)realtime->tv_nsec / 1000, 6);
  log_text_bytes(t, "Z", 1);
}

static char hex(uint32_t n) { return "0123456789abcdef"[n & 15]; }

/* One UTF-16 unit as \uXXXX. Returns its length. */
static size_t put_unit(char out[6], uint32_t unit) {
  const char text[6] = {'\\', 'u', hex(unit >> 12), hex(unit >> 8), hex(unit >> 4), hex(unit)};
  memcpy(out, text, sizeof text);
  return sizeof text;
}

/* The character of `size` bytes, 0: none, as it stands in a JSON string. Returns its length. */
static size_t put_character(char out[12], const char *from, size_t size) {
  const unsigned char *b = (const unsigned char *)from;
  if (size == 0) return put_unit(out, 0xfffd);
  if (size == 1 && b[0] >= 0x20 && b[0] != 0x7f) {
    const bool escaped = b[0] == '"' || b[0] == '\\';
    out[0] = '\\';
    out[escaped] = (char)b[0];
    return 1 + escaped;
  }
  uint32_t c = size == 1 ? b[0] : b[0] & (0x7fu >> size);
  for (size_t i = 1; i < size; i++) c = c << 6 | (b[i] & 0x3fu);
  if (c < 0x10000) return put_unit(out, c);
  const size_t n = put_unit(out, 0xd800 + ((c - 0x10000) >> 10));
  return n + put_unit(out + n, 0xdc00 + ((c - 0x10000) & 0x3ff));
}

/* Bytes at the beginning, at most so many, that stand in a JSON string as they are. */
static size_t plain_bytes(const char *from, size_t most) {
  size_t n = 0;
  while (n < most && from[n] >= 0x20 && from[n] < 0x7f && from[n] != '"' && from[n] != '\\') n++;
  return n;
}

void log_text_json(struct log_text *t, const char *from, size_t most) {
  char one[12];
  for (size_t used = 0;;) {
    const size_t plain = plain_bytes(from, most - used);
    log_text_bytes(t, from, plain);
    used += plain;
    from += plain;
    if (!*from) return;
    const size_t size = text_character(from, strnlen(from, 4));
    const size_t n = put_character(one, from, size);
    if (used + n > most) {
      log_text_bytes(t, "\\u2026", 6);
      return;
    }
    log_text_bytes(t, one, n);
    used += n;
    from += size ? size : 1;
  }
}

void log_text_plain(struct log_text *t, const char *from, size_t most) {
  for (size_t used = 0; *from; from++) {
    const unsigned char c = (unsigned char)*from;
    const bool escaped = c == '"' || c == '\\', odd = c < 0x20 || c >= 0x7f;
    const char text[4] = {'\\', odd ? 'x' : (char)c, hex(c >> 4), hex(c)};
    const size_t n = odd ? 4 : 1 + escaped;
    if (used + n > most) return;
    log_text_bytes(t, text + (!odd && !escaped), n);
    used += n;
  }
}
