/* normalizer_bert: BertNormalizer: removes control characters, surrounds Chinese characters by
 * blanks, strips accents and lowers case; all in one pass. */
#include <string.h>

#include "config/tokenizer/normalizer/normalizer_letters.h"
#include "config/tokenizer/normalizer/normalizer_parts.h"
#include "config/tokenizer/pattern/unicode.h"

/* Code points below TABLED, of most alphabets, are looked up. */
enum { TABLED = 0x3400, REMOVED = 0xfffe, OTHER = 0xffff };

struct normalizer_bert {
  bool cleans, parts_chinese, strips, lowers;
  struct normalizer_edit_table ascii;
  uint16_t becomes[TABLED]; /* one character that marks do not pass, or REMOVED, or OTHER */
};

/* --- one character --- */

enum { PARTS_MAX = 2 + UNICODE_DECOMPOSED_MAX * UNICODE_LOWER_MAX };

struct bert_parts {
  struct normalizer_letter part[PARTS_MAX];
  size_t count;
};

static void add_part(struct bert_parts *b, uint32_t c, uint8_t order) {
  b->part[b->count++] = (struct normalizer_letter){.c = c, .order = order};
}

/* The blocks that BERT's own tokenizer names. */
static bool is_chinese(uint32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
         (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b81f) ||
         (c >= 0x2b920 && c <= 0x2ceaf) || (c >= 0xf900 && c <= 0xfaff) ||
         (c >= 0x2f800 && c <= 0x2fa1f);
}

static void add_lowered(const struct normalizer_bert *b, uint32_t c, uint8_t order,
                        struct bert_parts *to) {
  uint32_t lower[UNICODE_LOWER_MAX] = {c};
  const size_t count = b->lowers ? unicode_lower(c, lower) : 1;
  for (size_t i = 0; i < count; i++) add_part(to, lower[i], order);
}

/* The parts that replace a character: maybe none. */
static void change(const struct normalizer_bert *b, uint32_t c, struct bert_parts *to) {
  to->count = 0;
  if (b->cleans) {
    const bool blank = c == '\t' || c == '\n' || c == '\r';
    if (!blank && (c == 0xfffd || unicode_is_other(c))) return;
    if (unicode_is_space(c)) c = ' ';
  }
  const bool chinese = b->parts_chinese && is_chinese(c);
  if (chinese) add_part(to, ' ', 0);
  uint32_t part[UNICODE_DECOMPOSED_MAX] = {c};
  const size_t count = b->strips ? unicode_decompose(c, false, part) : 1;
  for (size_t i = 0; i < count; i++) {
    const uint8_t order = b->strips ? unicode_order(part[i]) : 0;
    if (!b->strips || !unicode_is_nonspacing(part[i]))
      add_lowered(b, part[i], order, to);
    else if (order == 0) /* removed, but only after the marks around it have been sorted */
      add_part(to, NORMALIZER_LETTERS_NONE, 0);
  }
  if (chinese) add_part(to, ' ', 0);
}

/* --- the text --- */

/* Ideographs of the first plane do not decompose, and have no lower case. */
static bool is_ideograph(uint32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf);
}

/* A syllable of Hangul decomposes to letters, none of which is removed or has a lower case. */
static bool is_syllable(uint32_t c) { return c >= 0xac00 && c <= 0xd7a3; }

/* Writes the bytes that replace a character; SIZE_MAX: marks may have to be sorted. */
static size_t write_quickly(const struct normalizer_bert *b, uint32_t c, char *to) {
  uint32_t letter[UNICODE_DECOMPOSED_MAX] = {c};
  size_t count = 1, used = 0;
  if (c < TABLED) {
    if (b->becomes[c] == OTHER) return SIZE_MAX;
    if (b->becomes[c] == REMOVED) return 0;
    letter[0] = b->becomes[c];
  } else if (is_ideograph(c) && b->parts_chinese) {
    letter[0] = letter[2] = ' ';
    letter[1] = c;
    count = 3;
  } else if (is_syllable(c) && b->strips) {
    count = unicode_decompose(c, false, letter);
  } else if (!is_ideograph(c) && !is_syllable(c)) {
    return SIZE_MAX;
  }
  for (size_t i = 0; i < count; i++) used += unicode_write(letter[i], to + used);
  return used;
}

/* Adds the letters of the character at `at`, and of the next ones while the last letter is a mark
 * that may have to be sorted among others; returns where the characters end. */
static size_t gather(const struct normalizer_bert *b, struct passage *p, size_t at,
                     struct normalizer_letters *l) {
  const struct passage_bytes *now = &p->now;
  size_t length;
  do {
    struct bert_parts parts;
    change(b, unicode_read(now->bytes + at, &length), &parts);
    for (size_t i = 0; i < parts.count; i++) {
      parts.part[i].from = (uint32_t)at;
      parts.part[i].to = (uint32_t)(at + length);
      normalizer_letters_add(l, &parts.part[i]);
    }
    at += length;
  } while (!passage_is_over(p, at) && l->count > 0 && l->letter[l->count - 1].order &&
           at < now->length && b->ascii.of[(unsigned char)now->bytes[at]] >= 0x80);
  return at;
}

static void apply_bert(const void *settings, struct passage *p) {
  const struct normalizer_bert *b = settings;
  struct normalizer_edit edit = normalizer_edit_begin(p);
  struct normalizer_letters letters;
  normalizer_letters_init(&letters, &edit);
  for (size_t at = 0, length; normalizer_edit_next(&edit, &b->ascii, &at); at += length) {
    char bytes[3 * UNICODE_BYTES_MAX];
    const size_t written = write_quickly(b, unicode_read(p->now.bytes + at, &length), bytes);
    if (written != SIZE_MAX) {
      normalizer_edit_replace(&edit, at, at + length, bytes, written);
      continue;
    }
    length = gather(b, p, at, &letters) - at;
    normalizer_letters_sort(&letters);
    normalizer_letters_write(&letters, at, at + length);
  }
  normalizer_edit_end(&edit);
}

/* --- reading --- */

void normalizer_read_bert(void *to, const json_t *json, struct error *e) {
  struct normalizer_bert *b = normalizer_add_step(to, sizeof *b, apply_bert, NULL, e);
  if (!b) return;
  const json_t *strips = json_object_get(json, "strip_accents");
  b->cleans = member_flag(json, "clean_text", e);
  b->parts_chinese = member_flag(json, "handle_chinese_chars", e);
  b->lowers = member_flag(json, "lowercase", e);
  b->strips = json_is_boolean(strips) ? json_is_true(strips) : b->lowers;
  if (strips && !json_is_boolean(strips) && !json_is_null(strips))
    member_refuse(json, "strip_accents", "true, false or null", e);
  /* The tables have what `change` makes of each character alone. ASCII is never OTHER. */
  normalizer_edit_table_init(&b->ascii);
  for (uint32_t c = 0; c < TABLED; c++) {
    struct bert_parts parts;
    change(b, c, &parts);
    const struct normalizer_letter *first = &parts.part[0];
    b->becomes[c] = OTHER;
    if (parts.count == 0 || (parts.count == 1 && first->c == NORMALIZER_LETTERS_NONE))
      b->becomes[c] = REMOVED;
    else if (parts.count == 1 && first->order == 0)
      b->becomes[c] = (uint16_t)first->c;
    if (c < 0x80)
      b->ascii.of[c] = b->becomes[c] == REMOVED ? NORMALIZER_EDIT_REMOVED : (unsigned char)first->c;
  }
}
