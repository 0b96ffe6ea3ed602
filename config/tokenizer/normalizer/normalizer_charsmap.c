/* normalizer_charsmap: Precompiled: SentencePiece's compiled rules, applied as Hugging Face's
 * library does. */
#include <stdlib.h>
#include <string.h>

#include "config/tokenizer/normalizer/charsmap.h"
#include "config/tokenizer/normalizer/normalizer_edit.h"
#include "config/tokenizer/normalizer/normalizer_parts.h"
#include "config/tokenizer/pattern/unicode.h"

struct normalizer_charsmap {
  struct charsmap map;
  struct normalizer_edit_table ascii; /* characters that stay if ASCII follows */
};

/* The replacement of the shortest beginning of a text that is in the map, as in Hugging Face's
 * library (SentencePiece takes the longest). */
static struct charsmap_found find(const struct normalizer_charsmap *m, const char *text,
                                  size_t length) {
  return charsmap_find(&m->map, text, length, false);
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
static bool decode_base64(const struct member_text *from, struct charsmap *m) {
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

static void release_charsmap(void *settings) {
  struct normalizer_charsmap *m = settings;
  if (m) charsmap_done(&m->map);
  free(m);
}

void normalizer_read_charsmap(void *to, const json_t *json, struct error *e) {
  struct normalizer_charsmap *m =
      normalizer_add_step(to, sizeof *m, apply_charsmap, release_charsmap, e);
  const struct member_text text = member_string(json, "precompiled_charsmap", e);
  if (!m) return;
  m->map.bytes = calloc(1, text.length / 4 * 3 + sizeof(uint32_t));
  if (!m->map.bytes)
    error_no_memory(e);
  else if (!decode_base64(&text, &m->map))
    error_set(e, STATUS_CONFIG, "precompiled_charsmap: is not base64");
  if (e->status || charsmap_begin(&m->map, e)) return;
  /* The first of two ASCII characters is a cluster, except of a line's end. */
  normalizer_edit_table_init(&m->ascii);
  for (unsigned c = 0; c < 0x80; c++) {
    const char one = (char)c;
    const struct charsmap_found found = find(m, &one, 1);
    const bool stays = !found.bytes || (found.length == 1 && *found.bytes == one);
    if (!stays || one == '\r') m->ascii.of[c] = NORMALIZER_EDIT_OTHER;
  }
}
