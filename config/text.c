/* text: UTF-8, numbers, model names, messages of one line. */
#include "config/text.h"

#include <string.h>

/* The second byte's bounds depend on the first: that is what keeps out overlong forms, surrogates
 * and what lies beyond the last plane. */
size_t text_character(const void *bytes, size_t left) {
  const unsigned char *at = bytes;
  if (left == 0) return 0;
  unsigned char lead = at[0], low = 0x80, high = 0xbf;
  size_t length;
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  if (lead < 0xe0) {
    length = 2;
  } else if (lead < 0xf0) {
    length = 3;
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
  } else {
    length = 4;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
  }
  if (left < length || at[1] < low || at[1] > high) return 0;
  for (size_t i = 2; i < length; i++)
    if ((at[i] & 0xc0) != 0x80) return 0;
  return length;
}

bool text_is_utf8(const void *bytes, size_t size) {
  const unsigned char *at = bytes;
  for (size_t step; size > 0; at += step, size -= step) {
    step = text_character(at, size);
    if (step == 0) return false;
  }
  return true;
}

bool text_decimal(const char *text, uint64_t *out) {
  uint64_t n = 0;
  if (!*text) return false;
  for (; *text; text++) {
    if (*text < '0' || *text > '9') return false;
    if (__builtin_mul_overflow(n, 10u, &n)) return false;
    if (__builtin_add_overflow(n, (uint64_t)(*text - '0'), &n)) return false;
  }
  *out = n;
  return true;
}

bool text_is_model_name(const char *name) {
  size_t length = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");
  return length >= 1 && length <= 64 && name[length] == '\0';
}

const char *text_tail(const char *path) {
  size_t length = strlen(path);
  return length > 120 ? path + length - 120 : path;
}

enum status text_plain(struct error *e) {
  for (char *at = e->detail; *at; at++)
    if ((unsigned char)*at < 0x20 || *at == 0x7f) *at = '?';
  return e->status;
}
