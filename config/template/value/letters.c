/* letters: the characters of a text: upper and lower case, spaces, classes, as Python has them. */
#include "config/template/value/letters.h"

#include <stdlib.h>

#include "config/template/value/buffer.h"
#include "config/tokenizer/pattern/unicode.h"

bool letters_is_space(uint32_t c) { return (c >= 0x1c && c <= 0x1f) || unicode_is_space(c); }

/* --- stripping --- */

/* The characters that are stripped: a bit for each of ASCII, the others sorted. */
struct strip_set {
  bool spaces; /* all spaces instead */
  uint64_t ascii[2];
  uint32_t *other;
  size_t others;
};

static int order_characters(const void *x, const void *y) {
  const uint32_t first = *(const uint32_t *)x, second = *(const uint32_t *)y;
  return (first > second) - (first < second);
}

static bool read_set(struct bounds *b, struct value set, struct strip_set *s) {
  size_t others = 0, length;
  *s = (struct strip_set){.spaces = !set.kind};
  if (!set.kind) return true;
  if (!bounds_text(b, set.length)) return false;
  for (size_t i = 0; i < set.length; i += length) {
    const uint32_t c = unicode_read(set.text + i, &length);
    if (c < 0x80)
      s->ascii[c / 64] |= UINT64_C(1) << c % 64;
    else
      others++;
  }
  if (others == 0) return true;
  if (!bounds_step(b, others) || !(s->other = bounds_alloc(b, others * sizeof *s->other)))
    return false;
  for (size_t i = 0; i < set.length; i += length) {
    const uint32_t c = unicode_read(set.text + i, &length);
    if (c >= 0x80) s->other[s->others++] = c;
  }
  qsort(s->other, others, sizeof *s->other, order_characters);
  return true;
}

static bool is_in(uint32_t c, const struct strip_set *s) {
  if (s->spaces) return letters_is_space(c);
  if (c < 0x80) return s->ascii[c / 64] >> c % 64 & 1;
  return s->others && bsearch(&c, s->other, s->others, sizeof c, order_characters);
}

struct value letters_strip(struct bounds *b, struct value text, struct value set, bool left,
                           bool right) {
  struct strip_set s;
  size_t begin = 0, end = text.length, length;
  if (!read_set(b, set, &s)) return VALUE_FAILED;
  for (; left && begin < end && is_in(unicode_read(text.text + begin, &length), &s);
       begin += length)
    if (!bounds_text(b, length)) return VALUE_FAILED;
  for (; right && end > begin && is_in(unicode_read_before(text.text, end, &length), &s);
       end -= length)
    if (!bounds_text(b, length)) return VALUE_FAILED;
  if (end - begin == text.length) return text;
  return end == text.length ? value_text(text.text + begin, end - begin)
                            : value_copy(b, text.text + begin, end - begin);
}

/* --- case --- */

static bool add_character(struct bounds *b, struct buffer *to, uint32_t c) {
  char bytes[UNICODE_BYTES_MAX];
  return buffer_add(b, to, bytes, unicode_write(c, bytes));
}

static bool is_cased(uint32_t c) { return unicode_case(c) != UNICODE_UNCASED; }

/* A character between letters that does not end a word: a mark, an apostrophe. */
static bool is_ignored(uint32_t c) {
  return c == '\'' || c == '.' || c == ':' || c == '^' || c == '`' || c == 0xa8 || c == 0xad ||
         c == 0xaf || c == 0xb4 || c == 0xb7 || c == 0xb8 || c == 0x2019 || c == 0x2018 ||
         unicode_is_mark(c);
}

/* Is the sigma at byte `at` at the end of a word? */
static bool is_final(struct value text, size_t at, size_t length) {
  size_t before = at, after = at + length, size;
  uint32_t c = 0;
  while (before > 0 && is_ignored(c = unicode_read_before(text.text, before, &size)))
    before -= size;
  if (before == 0 || !is_cased(c)) return false;
  while (after < text.length && is_ignored(c = unicode_read(text.text + after, &size)))
    after += size;
  return after == text.length || !is_cased(c);
}

static bool add_lower(struct bounds *b, struct buffer *to, struct value text, size_t at, uint32_t c,
                      size_t length) {
  enum { SIGMA = 0x3a3, FINAL_SIGMA = 0x3c2 };
  uint32_t lower[UNICODE_LOWER_MAX];
  if (c == SIGMA && is_final(text, at, length)) return add_character(b, to, FINAL_SIGMA);
  for (size_t i = 0, count = unicode_lower(c, lower); i < count; i++)
    if (!add_character(b, to, lower[i])) return false;
  return true;
}

static bool add_upper(struct bounds *b, struct buffer *to, uint32_t c) {
  uint32_t upper[UNICODE_UPPER_MAX];
  for (size_t i = 0, count = unicode_upper(c, upper); i < count; i++)
    if (!add_character(b, to, upper[i])) return false;
  return true;
}

/* The title case of a character that is several in upper case begins with a capital. */
enum { SHARP_S = 0xdf }; /* newer Unicode has a capital one, which Python does not take */

static bool add_title(struct bounds *b, struct buffer *to, uint32_t c) {
  uint32_t upper[UNICODE_UPPER_MAX], title = unicode_title(c);
  const size_t count = unicode_upper(c, upper);
  if ((title != c && c != SHARP_S) || count == 1) return add_character(b, to, title);
  bool done = add_character(b, to, upper[0]);
  for (size_t i = 1; i < count && done; i++) {
    uint32_t lower[UNICODE_LOWER_MAX];
    unicode_lower(upper[i], lower);
    done = add_character(b, to, lower[0]);
  }
  return done;
}

static bool begins_word(uint32_t c) {
  return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || letters_is_space(c);
}

struct value letters_case(struct bounds *b, struct value text, enum letters_case to) {
  struct buffer out = {0};
  bool first = true,
       done = bounds_text(b, text.length); /* is the next letter the first one of a word? */
  for (size_t i = 0, length; done && i < text.length; i += length) {
    const uint32_t c = unicode_read(text.text + i, &length);
    const bool upper = to == LETTERS_UPPER || (to == LETTERS_FILTER_TITLE && first) ||
                       (to == LETTERS_SWAPPED && unicode_case(c) == UNICODE_LOWERCASE);
    if (upper)
      done = add_upper(b, &out, c);
    else if ((to == LETTERS_CAPITALIZED || to == LETTERS_TITLE) && first)
      done = add_title(b, &out, c);
    else if (to == LETTERS_SWAPPED && unicode_case(c) != UNICODE_UPPERCASE)
      done = add_character(b, &out, c);
    else
      done = add_lower(b, &out, text, i, c, length);
    first = to == LETTERS_FILTER_TITLE ? begins_word(c) : to == LETTERS_TITLE && !is_cased(c);
  }
  return done ? buffer_value(b, &out) : VALUE_FAILED;
}

/* --- classes --- */

/* Digits that are no decimals: superscripts and circled digits, which str.isdigit() takes. */
static bool is_special_digit(uint32_t c) {
  return c == 0xb2 || c == 0xb3 || c == 0xb9 || (c >= 0x2070 && c <= 0x2079 && c != 0x2071) ||
         (c >= 0x2080 && c <= 0x2089) || (c >= 0x2460 && c <= 0x2468) || c == 0x24ea;
}

static bool is_of(uint32_t c, enum letters_class is) {
  switch (is) {
  case LETTERS_ALPHA:
    return unicode_is_letter(c);
  case LETTERS_ALNUM:
    return unicode_is_letter(c) || unicode_is_numeric(c);
  case LETTERS_DECIMAL:
    return unicode_is_decimal(c);
  case LETTERS_DIGIT:
    return unicode_is_decimal(c) || is_special_digit(c);
  case LETTERS_NUMERIC:
    return unicode_is_numeric(c);
  case LETTERS_SPACE:
    return letters_is_space(c);
  case LETTERS_ARE_LOWER:
    return unicode_case(c) == UNICODE_LOWERCASE;
  case LETTERS_ARE_UPPER:
    return unicode_case(c) == UNICODE_UPPERCASE;
  default:
    return c < 0x80;
  }
}

bool letters_are(struct bounds *b, struct value text, enum letters_class is, bool *are) {
  const bool cases = is == LETTERS_ARE_LOWER || is == LETTERS_ARE_UPPER;
  *are = is == LETTERS_ASCII;
  if (!bounds_text(b, text.length)) return false;
  for (size_t i = 0, length; i < text.length; i += length) {
    const uint32_t c = unicode_read(text.text + i, &length);
    if (cases && !is_cased(c)) continue;
    *are = is_of(c, is);
    if (!*are) break;
  }
  return true;
}

/* --- lines --- */

static bool ends_line(uint32_t c) {
  return (c >= '\n' && c <= '\r') || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

size_t letters_line(struct value text, size_t at, size_t *end) {
  for (size_t i = at, length; i < text.length; i += length) {
    const uint32_t c = unicode_read(text.text + i, &length);
    if (!ends_line(c)) continue;
    *end = c == '\r' && i + 1 < text.length && text.text[i + 1] == '\n' ? 2 : length;
    return i - at;
  }
  *end = 0;
  return text.length - at;
}
