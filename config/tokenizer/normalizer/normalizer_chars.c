/* normalizer_chars: steps that change one character at a time, the ends of a text, or what a
 * pattern finds. */
#include <stdlib.h>
#include <string.h>

#include "config/document/text.h"
#include "config/tokenizer/model/byte_level.h"
#include "config/tokenizer/normalizer/normalizer_edit.h"
#include "config/tokenizer/normalizer/normalizer_parts.h"
#include "config/tokenizer/pattern/pattern.h"
#include "config/tokenizer/pattern/unicode.h"

/* --- Lowercase --- */

/* A character in lower case does not depend on those around it: no sigma is a last one. */

static void *read_lowercase(const json_t *json, struct error *e) {
  (void)json;
  struct normalizer_edit_table *t = normalizer_make(sizeof *t, e);
  if (!t) return NULL;
  normalizer_edit_table_init(t);
  for (unsigned c = 'A'; c <= 'Z'; c++) t->of[c] = (unsigned char)(c + ('a' - 'A'));
  return t;
}

static void apply_lowercase(const void *made, struct passage *p) {
  struct normalizer_edit edit = normalizer_edit_begin(p);
  for (size_t at = 0, length;
       (at = normalizer_edit_ascii(&edit, made, at)) < p->now.length && !passage_is_over(p, at);
       at += length) {
    uint32_t lower[UNICODE_LOWER_MAX];
    char bytes[UNICODE_LOWER_MAX * UNICODE_BYTES_MAX];
    size_t used = 0;
    const size_t count = unicode_lower(unicode_read(p->now.bytes + at, &length), lower);
    for (size_t i = 0; i < count; i++) used += unicode_write(lower[i], bytes + used);
    normalizer_edit_replace(&edit, at, at + length, bytes, used);
  }
  normalizer_edit_end(&edit);
}

const struct normalizer_kind normalizer_kind_lowercase = {
    {"Lowercase", ""}, read_lowercase, apply_lowercase, NULL};

/* --- StripAccents --- */

/* Marks are removed where they are characters of their own: who wants more decomposes before. */

static void apply_strip_accents(const void *made, struct passage *p) {
  (void)made;
  struct normalizer_edit edit = normalizer_edit_begin(p);
  for (size_t at = 0, length; at < p->now.length && !passage_is_over(p, at); at += length) {
    length = unicode_ascii(p->now.bytes + at, p->now.length - at);
    if (length == 0 && unicode_is_mark(unicode_read(p->now.bytes + at, &length)))
      normalizer_edit_replace(&edit, at, at + length, NULL, 0);
  }
  normalizer_edit_end(&edit);
}

const struct normalizer_kind normalizer_kind_strip_accents = {
    {"StripAccents", ""}, NULL, apply_strip_accents, NULL};

/* --- Nmt --- */

/* What SentencePiece's rules of that name do with control characters and blanks. */

static void *read_nmt(const json_t *json, struct error *e) {
  (void)json;
  struct normalizer_edit_table *t = normalizer_make(sizeof *t, e);
  if (!t) return NULL;
  normalizer_edit_table_init(t);
  for (unsigned c = 1; c < ' '; c++)
    t->of[c] = c == '\t' || c == '\n' || c == '\f' || c == '\r' ? ' ' : NORMALIZER_EDIT_REMOVED;
  t->of[0x7f] = NORMALIZER_EDIT_REMOVED;
  return t;
}

static bool is_blank_to_nmt(uint32_t c) {
  return c == 0x1680 || (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
         c == 0xfeff || c == 0xfffd;
}

static void apply_nmt(const void *made, struct passage *p) {
  struct normalizer_edit edit = normalizer_edit_begin(p);
  for (size_t at = 0, length;
       (at = normalizer_edit_ascii(&edit, made, at)) < p->now.length && !passage_is_over(p, at);
       at += length) {
    const uint32_t c = unicode_read(p->now.bytes + at, &length);
    if (c == 0x8f || c == 0x9f)
      normalizer_edit_replace(&edit, at, at + length, NULL, 0);
    else if (is_blank_to_nmt(c))
      normalizer_edit_replace(&edit, at, at + length, " ", 1);
  }
  normalizer_edit_end(&edit);
}

const struct normalizer_kind normalizer_kind_nmt = {{"Nmt", ""}, read_nmt, apply_nmt, NULL};

/* --- ByteLevel --- */

static void *read_byte_level(const json_t *json, struct error *e) {
  (void)json;
  struct normalizer_edit_table *t = normalizer_make(sizeof *t, e);
  if (!t) return NULL;
  normalizer_edit_table_init(t);
  for (unsigned c = 0; c < 0x80; c++)
    if (byte_level_character((unsigned char)c) != c) t->of[c] = NORMALIZER_EDIT_OTHER;
  return t;
}

static void apply_byte_level(const void *made, struct passage *p) {
  struct normalizer_edit edit = normalizer_edit_begin(p);
  for (size_t at = 0, length;
       (at = normalizer_edit_ascii(&edit, made, at)) < p->now.length && !passage_is_over(p, at);
       at += length) {
    char bytes[UNICODE_BYTES_MAX * BYTE_LEVEL_BYTES_MAX];
    unicode_read(p->now.bytes + at, &length);
    const size_t used = byte_level_encode(p->now.bytes + at, length, bytes);
    normalizer_edit_replace(&edit, at, at + length, bytes, used);
  }
  normalizer_edit_end(&edit);
}

const struct normalizer_kind normalizer_kind_byte_level = {
    {"ByteLevel", ""}, read_byte_level, apply_byte_level, NULL};

/* --- Strip --- */

struct normalizer_strip {
  bool left, right;
};

static void *read_strip(const json_t *json, struct error *e) {
  struct normalizer_strip *s = normalizer_make(sizeof *s, e);
  if (!s) return NULL;
  s->left = member_flag(json, "strip_left", e);
  s->right = member_flag(json, "strip_right", e);
  return s;
}

/* Of a text of blanks alone nothing is left, whichever end is stripped. */
static void apply_strip(const void *made, struct passage *p) {
  const struct normalizer_strip *s = made;
  const char *text = p->now.bytes;
  size_t begin = 0, end = p->now.length, length = 0;
  while (s->left && begin < end && unicode_is_space(unicode_read(text + begin, &length)))
    begin += length;
  while (s->right && begin < end && unicode_is_space(unicode_read_before(text, end, &length)))
    end -= length;
  struct normalizer_edit edit = normalizer_edit_begin(p);
  normalizer_edit_replace(&edit, 0, begin, NULL, 0);
  normalizer_edit_replace(&edit, end, p->now.length, NULL, 0);
  normalizer_edit_end(&edit);
}

const struct normalizer_kind normalizer_kind_strip = {
    {"Strip", "strip_left strip_right "}, read_strip, apply_strip, NULL};

/* --- Prepend and Replace --- */

struct normalizer_content {
  struct pattern *pattern; /* NULL: it goes in front of the text */
  char *bytes;
  size_t length;
};

static void release_content(void *made) {
  struct normalizer_content *c = made;
  if (c) pattern_free(c->pattern);
  if (c) free(c->bytes);
  free(c);
}

static struct normalizer_content *read_content(const json_t *json, const char *key,
                                               struct error *e) {
  struct normalizer_content *c = normalizer_make(sizeof *c, e);
  const struct member_text text = member_string(json, key, e);
  if (!c || !text.bytes) return c;
  c->length = text.length;
  c->bytes = normalizer_make(text.length + 1, e);
  if (c->bytes) memcpy(c->bytes, text.bytes, text.length);
  return c;
}

static void *read_prepend(const json_t *json, struct error *e) {
  return read_content(json, "prepend", e);
}

/* What is put in front came from the first character, as a blank does that a pre-tokenizer puts
 * there. */
static void apply_prepend(const void *made, struct passage *p) {
  const struct normalizer_content *c = made;
  struct normalizer_edit edit = normalizer_edit_begin(p);
  size_t first;
  if (c->length == 0) return;
  unicode_read(p->now.bytes, &first);
  normalizer_edit_open(&edit, 0);
  passage_append(p, c->bytes, c->length, 0, first);
  normalizer_edit_close(&edit, 0);
  normalizer_edit_end(&edit);
}

const struct normalizer_kind normalizer_kind_prepend = {
    {"Prepend", "prepend "}, read_prepend, apply_prepend, release_content};

static void *read_replace(const json_t *json, struct error *e) {
  const json_t *pattern = json_object_get(json, "pattern");
  struct normalizer_content *c = read_content(json, "content", e);
  if (!pattern) member_refuse(json, "pattern", "{\"String\": text} or {\"Regex\": text}", e);
  if (!c || e->status) return c;
  c->pattern = pattern_new(pattern, e);
  if (e->status == STATUS_CONFIG) text_before(e, "pattern: ");
  return c;
}

/* A match may be empty: then the content is put in there. */
static void apply_replace(const void *made, struct passage *p) {
  const struct normalizer_content *c = made;
  struct normalizer_edit edit = normalizer_edit_begin(p);
  struct pattern_search search;
  if (pattern_search_begin(&search, c->pattern, &p->watch, p->now.bytes, p->now.length, p->e))
    return;
  while (pattern_search_next(&search, p->e) && !passage_is_over(p, search.end))
    normalizer_edit_replace(&edit, search.begin, search.end, c->bytes, c->length);
  pattern_search_end(&search);
  normalizer_edit_end(&edit);
}

const struct normalizer_kind normalizer_kind_replace = {
    {"Replace", "pattern content "}, read_replace, apply_replace, release_content};
