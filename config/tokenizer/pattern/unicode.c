/* unicode: classes and forms of characters, by utf8proc. */
#include "config/tokenizer/pattern/unicode.h"

#include <string.h>

#include <utf8proc.h>

#include "core/base/status.h"

/* --- bytes --- */

uint32_t unicode_read_before(const char *text, size_t end, size_t *length) {
  size_t begin = end - 1;
  while (((unsigned char)text[begin] & 0xc0) == 0x80) begin--;
  return unicode_read(text + begin, length);
}

size_t unicode_write(uint32_t c, char out[UNICODE_BYTES_MAX]) {
  if (c < 0x80) {
    out[0] = (char)c;
    return 1;
  }
  return (size_t)utf8proc_encode_char((utf8proc_int32_t)c, (utf8proc_uint8_t *)out);
}

size_t unicode_ascii(const char *text, size_t length) {
  size_t at = 0;
  for (uint64_t eight; at + sizeof eight <= length; at += sizeof eight) {
    memcpy(&eight, text + at, sizeof eight);
    if (eight & 0x8080808080808080u) break;
  }
  while (at < length && (unsigned char)text[at] < 0x80) at++;
  return at;
}

/* --- classes --- */

static utf8proc_category_t category_of(uint32_t c) { return utf8proc_category((int32_t)c); }

static bool is_between(uint32_t c, uint32_t first, uint32_t last) {
  return c >= first && c <= last;
}

bool unicode_is_space(uint32_t c) {
  if (c < 0x80) return c == ' ' || is_between(c, '\t', '\r');
  return c == 0x85 || c == 0xa0 || c == 0x1680 || is_between(c, 0x2000, 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool unicode_is_punctuation(uint32_t c) {
  if (c < 0x80)
    return is_between(c, '!', '/') || is_between(c, ':', '@') || is_between(c, '[', '`') ||
           is_between(c, '{', '~');
  const utf8proc_category_t is = category_of(c);
  return is >= UTF8PROC_CATEGORY_PC && is <= UTF8PROC_CATEGORY_PO;
}

bool unicode_is_other(uint32_t c) {
  if (c < 0x80) return c < ' ' || c == 0x7f;
  const utf8proc_category_t is = category_of(c);
  return is == UTF8PROC_CATEGORY_CC || is == UTF8PROC_CATEGORY_CF || is == UTF8PROC_CATEGORY_CO;
}

static bool is_mark(utf8proc_category_t is) {
  return is == UTF8PROC_CATEGORY_MN || is == UTF8PROC_CATEGORY_MC || is == UTF8PROC_CATEGORY_ME;
}

bool unicode_is_mark(uint32_t c) { return c >= 0x80 && is_mark(category_of(c)); }

bool unicode_is_nonspacing(uint32_t c) {
  return c >= 0x80 && category_of(c) == UTF8PROC_CATEGORY_MN;
}

bool unicode_is_numeric(uint32_t c) {
  if (c < 0x80) return is_between(c, '0', '9');
  const utf8proc_category_t is = category_of(c);
  return is == UTF8PROC_CATEGORY_ND || is == UTF8PROC_CATEGORY_NL || is == UTF8PROC_CATEGORY_NO;
}

/* Symbols that are alphabetic (Other_Alphabetic): letters in circles and squares. The other
 * characters of that property are marks. The library does not have it, so that symbols to which
 * later versions of Unicode may give it are not here. */
static bool is_alphabetic_symbol(uint32_t c) {
  return is_between(c, 0x24b6, 0x24e9) || is_between(c, 0x1f130, 0x1f149) ||
         is_between(c, 0x1f150, 0x1f169) || is_between(c, 0x1f170, 0x1f189);
}

bool unicode_is_word(uint32_t c) {
  if (c < 0x80)
    return is_between(c, 'a', 'z') || is_between(c, 'A', 'Z') || is_between(c, '0', '9') ||
           c == '_';
  const utf8proc_category_t is = category_of(c);
  return (is >= UTF8PROC_CATEGORY_LU && is <= UTF8PROC_CATEGORY_LO) || is_mark(is) ||
         is == UTF8PROC_CATEGORY_ND || is == UTF8PROC_CATEGORY_NL || is == UTF8PROC_CATEGORY_PC ||
         c == 0x200c || c == 0x200d || is_alphabetic_symbol(c);
}

enum unicode_case unicode_case(uint32_t c) {
  switch (category_of(c)) {
  case UTF8PROC_CATEGORY_LU:
    return UNICODE_UPPERCASE;
  case UTF8PROC_CATEGORY_LL:
    return UNICODE_LOWERCASE;
  case UTF8PROC_CATEGORY_LT:
    return UNICODE_TITLECASE;
  default:
    return UNICODE_UNCASED;
  }
}

bool unicode_is_letter(uint32_t c) {
  const utf8proc_category_t is = category_of(c);
  return is >= UTF8PROC_CATEGORY_LU && is <= UTF8PROC_CATEGORY_LO;
}

bool unicode_is_decimal(uint32_t c) { return category_of(c) == UTF8PROC_CATEGORY_ND; }

bool unicode_is_printable(uint32_t c) {
  if (c < 0x80) return is_between(c, ' ', '~');
  const utf8proc_category_t is = category_of(c);
  return is != UTF8PROC_CATEGORY_CN && is != UTF8PROC_CATEGORY_ZS && is != UTF8PROC_CATEGORY_ZL &&
         is != UTF8PROC_CATEGORY_ZP && is != UTF8PROC_CATEGORY_CS && !unicode_is_other(c);
}

/* --- other forms --- */

/* The only character with two in lower case is I with a dot. */
size_t unicode_lower(uint32_t c, uint32_t out[UNICODE_LOWER_MAX]) {
  if (c == 0x130) {
    out[0] = 'i';
    out[1] = 0x307;
    return 2;
  }
  if (c < 0x80)
    out[0] = is_between(c, 'A', 'Z') ? c + ('a' - 'A') : c;
  else
    out[0] = (uint32_t)utf8proc_tolower((int32_t)c);
  return 1;
}

size_t unicode_upper(uint32_t c, uint32_t out[UNICODE_UPPER_MAX]) {
  static const struct {
    uint32_t from, to[UNICODE_UPPER_MAX];
  } several[] = {
#define UPPER(character, ...) {character, {__VA_ARGS__}},
#include "config/tokenizer/pattern/unicode_upper.def"
  };
  if (c < 0x80) return out[0] = is_between(c, 'a', 'z') ? c - ('a' - 'A') : c, 1;
  size_t low = 0, high = sizeof several / sizeof *several;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (several[middle].from < c)
      low = middle + 1;
    else
      high = middle;
  }
  if (low < sizeof several / sizeof *several && several[low].from == c) {
    memcpy(out, several[low].to, sizeof several[low].to);
    return out[2] ? 3 : 2;
  }
  out[0] = (uint32_t)utf8proc_toupper((int32_t)c);
  return 1;
}

uint32_t unicode_title(uint32_t c) { return (uint32_t)utf8proc_totitle((int32_t)c); }

size_t unicode_decompose(uint32_t c, bool compatibly, uint32_t out[UNICODE_DECOMPOSED_MAX]) {
  if (c < 0x80) {
    out[0] = c;
    return 1;
  }
  const utf8proc_option_t how = UTF8PROC_DECOMPOSE | (compatibly ? UTF8PROC_COMPAT : 0);
  const utf8proc_ssize_t count = utf8proc_decompose_char((int32_t)c, (utf8proc_int32_t *)out,
                                                         UNICODE_DECOMPOSED_MAX, how, NULL);
  must(count >= 1 && count <= UNICODE_DECOMPOSED_MAX);
  return (size_t)count;
}

uint8_t unicode_order(uint32_t c) {
  return c < 0x80 ? 0 : (uint8_t)utf8proc_get_property((int32_t)c)->combining_class;
}

/* The library composes no two characters, but lists of any length. Stable: a character that was
 * added to Unicode later than its parts is no composition of them. U+11A7 lies before the
 * final consonants of Hangul and is none, but the library has syllables swallow it. */
uint32_t unicode_compose(uint32_t a, uint32_t b) {
  if (b == 0x11a7) return 0;
  utf8proc_int32_t both[2] = {(int32_t)a, (int32_t)b};
  const utf8proc_ssize_t count =
      utf8proc_normalize_utf32(both, 2, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  return count == 1 ? (uint32_t)both[0] : 0;
}

/* Marks, vowels and final consonants of Hangul, and vowels of Kirat Rai. */
bool unicode_may_join(uint32_t c) {
  if (c < 0x300) return false;
  return is_between(c, 0x1161, 0x1175) || is_between(c, 0x11a8, 0x11c2) ||
         is_between(c, 0x16d60, 0x16d6f) || unicode_is_mark(c);
}

size_t unicode_cluster(const char *text, size_t length) {
  size_t end, more;
  if (length == 0) return 0;
  utf8proc_int32_t state = 0, before = (int32_t)unicode_read(text, &end);
  for (; end < length; end += more) {
    const utf8proc_int32_t c = (int32_t)unicode_read(text + end, &more);
    const bool ascii = before < 0x80 && c < 0x80;
    if (ascii ? before != '\r' || c != '\n' : utf8proc_grapheme_break_stateful(before, c, &state))
      break;
    before = c;
  }
  return end;
}
