/* normalizer_charsmap: Precompiled: SentencePiece's compiled rules: a trie of texts, and the text
 * that replaces each. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "config/document/text.h"
#include "config/tokenizer/normalizer/normalizer_edit.h"
#include "config/tokenizer/normalizer/normalizer_parts.h"
#include "config/tokenizer/pattern/unicode.h"

struct normalizer_charsmap {
  unsigned char *bytes; /* [size] owned: the size of the trie in bytes, the trie, the texts */
  size_t size;
  const uint32_t *unit; /* [units] the trie */
  size_t units;
  const char *text; /* [length] replacements, each ends before a NUL */
  size_t length;
  struct normalizer_edit_table ascii; /* characters that stay if ASCII follows */
};

/* --- the trie --- */

/* The format is darts-clone's. A unit has the byte that leads to it, and an offset: the place of
 * its child is the unit's place XOR the offset XOR the child's byte. A value's unit has the highest
 * bit. */
#define VALUE_BIT (UINT32_C(1) << 31)

static size_t offset_of(uint32_t unit) { return (size_t)(unit >> 10) << ((unit >> 6) & 8); }

struct charsmap_found {
  const char *bytes;
  size_t length;
};

/* The replacement of the shortest beginning of a text that is in the trie, as in Hugging Face's
 * library (SentencePiece takes the longest); .bytes NULL: none is. */
static struct charsmap_found find(const struct normalizer_charsmap *m, const char *text,
                                  size_t length) {
  size_t place = offset_of(m->unit[0]);
  for (size_t i = 0; i < length && text[i]; i++) {
    const unsigned char byte = (unsigned char)text[i];
    place ^= byte;
    if (place >= m->units) break;
    const uint32_t unit = m->unit[place];
    if ((unit & (VALUE_BIT | 0xff)) != byte) break;
    place ^= offset_of(unit);
    const bool has_value = unit >> 8 & 1;
    if (!has_value) continue;
    if (place >= m->units || !(m->unit[place] & VALUE_BIT)) break;
    const size_t at = m->unit[place] & ~VALUE_BIT;
    return (struct charsmap_found){m->text + at, strnlen(m->text + at, m->length - at)};
  }
  return (struct charsmap_found){0};
}

/* --- the text --- */

/* Replaces a cluster as a whole if it is short; else, or if it is not in the trie, each of its
 * characters. */
static void replace_cluster(const struct normalizer_charsmap *m, struct normalizer_edit *edit,
                            size_t at, size_t size) {
  enum { SHORT = 6 }; /* bytes, as in SentencePiece */
  const char *text = edit->p->now.bytes;
  struct charsmap_found found = {0};
  if (size < SHORT) found = find(m, text + at, size);
  if (found.bytes) {
    normalizer_edit_replace(edit, at, at + size, found.bytes, found.length);
    return;
  }
  for (size_t length, end = at + size; at < end && !passage_is_over(edit->p, at); at += length) {
    unicode_read(text + at, &length);
    found = find(m, text + at, length);
    if (found.bytes) normalizer_edit_replace(edit, at, at + length, found.bytes, found.length);
  }
}

/* An ASCII character before another one may begin a cluster with it. */
static void apply_charsmap(const void *settings, struct passage *p) {
  const struct normalizer_charsmap *m = settings;
  const struct passage_bytes *now = &p->now;
  struct normalizer_edit edit = normalizer_edit_begin(p);
  for (size_t begin = 0, at, size;; begin = at + size) {
    at = normalizer_edit_ascii(&edit, &m->ascii, begin);
    if (at == now->length || passage_is_over(p, at)) break;
    if (at > begin && (unsigned char)now->bytes[at] >= 0x80) at--;
    size = unicode_cluster(now->bytes + at, now->length - at);
    replace_cluster(m, &edit, at, size);
  }
  normalizer_edit_end(&edit);
}

/* --- base64 --- */

static int value_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Strict: padded, and without bits after the last byte. */
static bool decode_base64(const struct member_text *from, struct normalizer_charsmap *m) {
  size_t digits = from->length;
  uint32_t bits = 0;
  if (digits % 4) return false;
  for (int i = 0; i < 2 && digits > 0 && from->bytes[digits - 1] == '='; i++) digits--;
  for (size_t i = 0; i < digits; i++) {
    const int value = value_of(from->bytes[i]);
    if (value < 0) return false;
    bits = bits << 6 | (uint32_t)value;
    const unsigned left = (unsigned)(i + 1) * 6 % 8;
    if (i % 4 > 0) m->bytes[m->size++] = (unsigned char)(bits >> left);
  }
  const unsigned rest = (unsigned)(digits * 6 % 8);
  return digits % 4 != 1 && (bits & ((1u << rest) - 1)) == 0;
}

/* --- reading --- */

/* Finds the trie and the texts in the decoded bytes, and checks them. */
static enum status read_sections(struct normalizer_charsmap *m, struct error *e) {
  uint32_t *unit = (uint32_t *)m->bytes;
  const size_t bytes = m->size < sizeof *unit ? 0 : le32toh(*unit);
  m->units = bytes / sizeof *unit;
  if (m->units == 0 || m->size - sizeof *unit < m->units * sizeof *unit)
    return error_set(e, STATUS_CONFIG, "precompiled_charsmap: a trie of %zu bytes in %zu", bytes,
                     m->size);
  m->unit = unit + 1;
  for (size_t i = 0; i < m->units; i++) unit[i + 1] = le32toh(unit[i + 1]);
  m->text = (const char *)(m->unit + m->units);
  m->length = m->size - (1 + m->units) * sizeof *unit;
  if (!text_is_utf8(m->text, m->length))
    return error_set(e, STATUS_CONFIG, "precompiled_charsmap: the texts are not UTF-8");
  /* A value is the place of a text, where a character begins. */
  for (size_t i = 0; i < m->units; i++) {
    const size_t at = m->unit[i] & ~VALUE_BIT;
    if (!(m->unit[i] & VALUE_BIT)) continue;
    if (at > m->length || (at < m->length && ((unsigned char)m->text[at] & 0xc0) == 0x80))
      return error_set(e, STATUS_CONFIG,
                       "precompiled_charsmap: unit %zu of the trie points at no text", i);
  }
  return STATUS_OK;
}

static void release_charsmap(void *settings) {
  struct normalizer_charsmap *m = settings;
  if (m) free(m->bytes);
  free(m);
}

void normalizer_read_charsmap(void *to, const json_t *json, struct error *e) {
  struct normalizer_charsmap *m =
      normalizer_add_step(to, sizeof *m, apply_charsmap, release_charsmap, e);
  const struct member_text text = member_string(json, "precompiled_charsmap", e);
  if (!m) return;
  m->bytes = calloc(1, text.length / 4 * 3 + sizeof(uint32_t));
  if (!m->bytes)
    error_no_memory(e);
  else if (!decode_base64(&text, m))
    error_set(e, STATUS_CONFIG, "precompiled_charsmap: is not base64");
  if (e->status || read_sections(m, e)) return;
  /* The first of two ASCII characters is a cluster, except of a line's end. */
  normalizer_edit_table_init(&m->ascii);
  for (unsigned c = 0; c < 0x80; c++) {
    const char one = (char)c;
    const struct charsmap_found found = find(m, &one, 1);
    const bool stays = !found.bytes || (found.length == 1 && *found.bytes == one);
    if (!stays || one == '\r') m->ascii.of[c] = NORMALIZER_EDIT_OTHER;
  }
}
