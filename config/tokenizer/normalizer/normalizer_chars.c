/* normalizer_chars: steps that change one character at a time, the ends of a text, or the matches
 * of a pattern. */
#include <stdlib.h>
#include <string.h>

#include "config/document/text.h"
#include "config/tokenizer/model/byte_level.h"
#include "config/tokenizer/normalizer/normalizer_edit.h"
#include "config/tokenizer/normalizer/normalizer_parts.h"
#include "config/tokenizer/pattern/pattern.h"
#include "config/tokenizer/pattern/unicode.h"

static struct normalizer_edit_table *add_table(struct normalizer *n,
                                               void (*apply)(const void *table, struct passage *p),
                                               struct error *e) {
  struct normalizer_edit_table *t = normalizer_add_step(n, sizeof *t, apply, NULL, e);
  if (t) normalizer_edit_table_init(t);
  return t;
}

/* --- Lowercase --- */

/* The lower case of a character does not depend on its neighbors: there is no final sigma. */
static void apply_lowercase(const void *table, struct passage *p) {
  struct normalizer_edit edit = normalizer_edit_begin(p);
  for (size_t at = 0, length; normalizer_edit_next(&edit, table, &at); at += length) {
    uint32_t lower[UNICODE_LOWER_MAX];
    char bytes[UNICODE_LOWER_MAX * UNICODE_BYTES_MAX];
    size_t used = 0;
    const size_t count = unicode_lower(unicode_read(p->now.bytes + at, &length), lower);
    for (size_t i = 0; i < count; i++) used += unicode_write(lower[i], bytes + used);
    normalizer_edit_replace(&edit, at, at + length, bytes, used);
  }
  normalizer_edit_end(&edit);
}

void normalizer_read_lowercase(void *to, const json_t *json, struct error *e) {
  (void)json;
  struct normalizer_edit_table *t = add_table(to, apply_lowercase, e);
  for (unsigned c = 'A'; t && c <= 'Z'; c++) t->of[c] = (unsigned char)(c + ('a' - 'A'));
}

/* --- StripAccents --- */

/* Removes marks that are characters of their own; composed letters stay. */
static void apply_strip_accents(const void *none, struct passage *p) {
  (void)none;
  struct normalizer_edit edit = normalizer_edit_begin(p);
  for (size_t at = 0, length; at < p->now.length && !passage_is_over(p, at); at += length) {
    length = unicode_ascii(p->now.bytes + at, p->now.length - at);
    if (length == 0 && unicode_is_mark(unicode_read(p->now.bytes + at, &length)))
      normalizer_edit_replace(&edit, at, at + length, NULL, 0);
  }
  normalizer_edit_end(&edit);
}

void normalizer_read_strip_accents(void *to, const json_t *json, struct error *e) {
  (void)json;
  normalizer_add_step(to, 0, apply_strip_accents, NULL, e);
}

/* --- Nmt --- */

/* SentencePiece's rules of that name for control characters and blanks. */
static void apply_nmt(const void *table, struct passage *p) {
  struct normalizer_edit edit = normalizer_edit_begin(p);
  for (size_t at = 0, length; normalizer_edit_next(&edit, table, &at); at += length) {
    const uint32_t c = unicode_read(p->now.bytes + at, &length);
    const bool blank = c == 0x1680 || (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 ||
                       c == 0x2581 || c == 0xfeff || c == 0xfffd;
    if (c == 0x8f || c == 0x9f)
      normalizer_edit_replace(&edit, at, at + length, NULL, 0);
    else if (blank)
      normalizer_edit_replace(&edit, at, at + length, " ", 1);
  }
  normalizer_edit_end(&edit);
}

void normalizer_read_nmt(void *to, const json_t *json, struct error *e) {
  (void)json;
  struct normalizer_edit_table *t = add_table(to, apply_nmt, e);
  if (!t) return;
  for (unsigned c = 1; c < ' '; c++)
    t->of[c] = c == '\t' || c == '\n' || c == '\f' || c == '\r' ? ' ' : NORMALIZER_EDIT_REMOVED;
  t->of[0x7f] = NORMALIZER_EDIT_REMOVED;
}

/* --- ByteLevel --- */

static void apply_byte_level(const void *table, struct passage *p) {
  struct normalizer_edit edit = normalizer_edit_begin(p);
  for (size_t at = 0, length; normalizer_edit_next(&edit, table, &at); at += length) {
    char bytes[UNICODE_BYTES_MAX * BYTE_LEVEL_BYTES_MAX];
    unicode_read(p->now.bytes + at, &length);
    const size_t used = byte_level_encode(p->now.bytes + at, length, bytes);
    normalizer_edit_replace(&edit, at, at + length, bytes, used);
  }
  normalizer_edit_end(&edit);
}

void normalizer_read_byte_level(void *to, const json_t *json, struct error *e) {
  (void)json;
  struct normalizer_edit_table *t = add_table(to, apply_byte_level, e);
  for (unsigned c = 0; t && c < 0x80; c++)
    if (byte_level_character((unsigned char)c) != c) t->of[c] = NORMALIZER_EDIT_OTHER;
}

/* --- Strip --- */

struct normalizer_strip {
  bool left, right;
};

/* A text of blanks alone becomes empty, whichever end is stripped. */
static void apply_strip(const void *settings, struct passage *p) {
  const struct normalizer_strip *s = settings;
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

void normalizer_read_strip(void *to, const json_t *json, struct error *e) {
  struct normalizer_strip *s = normalizer_add_step(to, sizeof *s, apply_strip, NULL, e);
  if (!s) return;
  s->left = member_flag(json, "strip_left", e);
  s->right = member_flag(json, "strip_right", e);
}

/* --- Prepend and Replace --- */

struct normalizer_content {
  struct pattern *pattern; /* Replace */
  char *bytes;
  size_t length;
};

static void release_content(void *settings) {
  struct normalizer_content *c = settings;
  if (c) pattern_free(c->pattern);
  if (c) free(c->bytes);
  free(c);
}

/* A step with a copy of the text of a member; NULL: no memory. */
static struct normalizer_content *
add_content(struct normalizer *n, const json_t *json, const char *key,
            void (*apply)(const void *settings, struct passage *p), struct error *e) {
  struct normalizer_content *c = normalizer_add_step(n, sizeof *c, apply, release_content, e);
  const struct member_text text = member_string(json, key, e);
  if (!c) return NULL;
  c->length = text.length;
  c->bytes = malloc(text.length + 1);
  if (!c->bytes) error_no_memory(e);
  if (c->bytes) memcpy(c->bytes, text.bytes, text.length);
  return c;
}

/* The prepended bytes come from the first character, like a blank that a pre-tokenizer prepends. */
static void apply_prepend(const void *settings, struct passage *p) {
  const struct normalizer_content *c = settings;
  struct normalizer_edit edit = normalizer_edit_begin(p);
  size_t first;
  if (c->length == 0) return;
  unicode_read(p->now.bytes, &first);
  normalizer_edit_open(&edit, 0);
  passage_append(p, c->bytes, c->length, 0, first);
  normalizer_edit_close(&edit, 0);
  normalizer_edit_end(&edit);
}

void normalizer_read_prepend(void *to, const json_t *json, struct error *e) {
  add_content(to, json, "prepend", apply_prepend, e);
}

/* A match may be empty: then the content is inserted there. */
static void apply_replace(const void *settings, struct passage *p) {
  const struct normalizer_content *c = settings;
  struct normalizer_edit edit = normalizer_edit_begin(p);
  struct pattern_search search;
  if (pattern_search_begin(&search, c->pattern, &p->watch, p->now.bytes, p->now.length, p->e))
    return;
  while (pattern_search_next(&search, p->e) && !passage_is_over(p, search.end))
    normalizer_edit_replace(&edit, search.begin, search.end, c->bytes, c->length);
  pattern_search_end(&search);
  normalizer_edit_end(&edit);
}

void normalizer_read_replace(void *to, const json_t *json, struct error *e) {
  const json_t *pattern = json_object_get(json, "pattern");
  struct normalizer_content *c = add_content(to, json, "content", apply_replace, e);
  if (!pattern) member_refuse(json, "pattern", "{\"String\": text} or {\"Regex\": text}", e);
  if (!c || e->status) return;
  c->pattern = pattern_new(pattern, e);
  if (e->status == STATUS_CONFIG) text_before(e, "pattern: ");
}
