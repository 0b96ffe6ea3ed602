/* text: UTF-8, numbers, model names, messages of one line. */
#include "config/document/text.h"

#include <stdio.h>
#include <string.h>

#include "core/base/size.h"

/* The second byte's bounds depend on the first: they exclude overlong forms, surrogates and code
 * points above U+10FFFF. */
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
  for (size_t length; size > 0; at += length, size -= length) {
    length = text_character(at, size);
    if (length == 0) return false;
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

bool text_ends_with(const char *text, const char *end) {
  const size_t length = strlen(text), tail = strlen(end);
  return length >= tail && memcmp(text + length - tail, end, tail) == 0;
}

const char *text_file_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

bool text_is_path_word(const char *word) {
  static const char *const words[] = {
      "attention", "heads",    "encode",   "classify",   "classify_tokens", "question", "fill",
      "score",     "generate", "tokenize", "detokenize", "render",          "layers",   "ready",
      "infer",     "versions", NULL};
  size_t i = 0;
  while (words[i] && strcmp(words[i], word) != 0) i++;
  return words[i];
}

/* The length of the part of a model's name at `at`; 0: there is none. */
static size_t part_length(const char *at) {
  const size_t length =
      strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");
  return length <= MODEL_NAME_PART ? length : 0;
}

bool text_is_model_name(const char *name) {
  const size_t first = part_length(name);
  if (first == 0 || name[first] != '/') return first > 0 && name[first] == '\0';
  const char *second = name + first + 1;
  const size_t length = part_length(second);
  return length > 0 && second[length] == '\0' && !text_is_path_word(second);
}

const char *text_tail(const char *path) {
  size_t length = strlen(path);
  return length > 120 ? path + length - 120 : path;
}

size_t text_visible(const char *text) {
  static const uint32_t hidden[][2] = {
      {0x00, 0x1f},     {0x7f, 0x9f},     {0x061c, 0x061c}, {0x200e, 0x200f},
      {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff},
  };
  static const unsigned char mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07}; /* of the first byte, by size */
  const size_t size = text_character(text, strnlen(text, 4));
  uint32_t code = size > 0 ? (unsigned char)text[0] & mask[size] : 0;
  for (size_t i = 1; i < size; i++) code = code << 6 | ((unsigned char)text[i] & 0x3f);
  for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
    if (code >= hidden[i][0] && code <= hidden[i][1]) return 0;
  return size;
}

/* Replaces each character that is not visible; none becomes longer. */
static void make_visible(char *text) {
  char *to = text;
  for (const char *at = text; *at;) {
    const size_t visible = text_visible(at), size = text_character(at, strnlen(at, 4));
    if (visible == 0) *to++ = '?';
    for (size_t i = 0; i < visible; i++) *to++ = at[i];
    at += size_max(size, 1);
  }
  *to = '\0';
}

enum status text_plain(struct error *e) {
  make_visible(e->detail);
  return e->status;
}

const char *text_shown(const char *text, char out[TEXT_SHOWN]) {
  snprintf(out, TEXT_SHOWN, "%s", text);
  make_visible(out);
  return out;
}

enum status text_before(struct error *e, const char *format, ...) {
  char detail[ERROR_DETAIL_SIZE];
  memcpy(detail, e->detail, sizeof detail);
  va_list args;
  va_start(args, format);
  const int size = vsnprintf(e->detail, sizeof e->detail, format, args);
  va_end(args);
  const size_t used = size < 0 ? 0 : size_min((size_t)size, sizeof e->detail - 1);
  snprintf(e->detail + used, sizeof e->detail - used, "%s", detail);
  return e->status;
}
