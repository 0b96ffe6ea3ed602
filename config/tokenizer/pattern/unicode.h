/* unicode: characters, their classes, and their other forms; the only caller of utf8proc.
 *
 * All text is well-formed UTF-8. Classes are those of the library's version of Unicode: an older
 * one has fewer characters. */
#ifndef CONFIG_UNICODE_H
#define CONFIG_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  UNICODE_BYTES_MAX = 4,       /* of a character */
  UNICODE_LOWER_MAX = 2,       /* characters that one becomes in lower case */
  UNICODE_UPPER_MAX = 3,       /* ... in upper case */
  UNICODE_DECOMPOSED_MAX = 18, /* ... decomposed, by compatibility too */
};

/* The character that begins at `text`, and how many bytes it has. */
static inline uint32_t unicode_read(const char *text, size_t *length) {
  const unsigned char *at = (const unsigned char *)text;
  if (at[0] < 0x80) return *length = 1, at[0];
  if (at[0] < 0xe0) return *length = 2, (at[0] & 0x1fu) << 6 | (at[1] & 0x3fu);
  if (at[0] < 0xf0)
    return *length = 3, (at[0] & 0x0fu) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu);
  return *length = 4,
         (at[0] & 0x07u) << 18 | (at[1] & 0x3fu) << 12 | (at[2] & 0x3fu) << 6 | (at[3] & 0x3fu);
}

/* The character that ends right before byte `end`, which is not 0, and how many bytes it has. */
uint32_t unicode_read_before(const char *text, size_t end, size_t *length);
size_t unicode_write(uint32_t c, char out[UNICODE_BYTES_MAX]); /* returns how many bytes */

/* How many bytes at the beginning of a text are ASCII. */
size_t unicode_ascii(const char *text, size_t length);

bool unicode_is_space(uint32_t c); /* White_Space */
/* Punctuation, and all ASCII symbols: !"#$%&'()*+,-./:;<=>?@[\]^_`{|}~ */
bool unicode_is_punctuation(uint32_t c);
bool unicode_is_other(uint32_t c); /* control, format, private use */
bool unicode_is_mark(uint32_t c);
bool unicode_is_nonspacing(uint32_t c); /* a nonspacing mark */
bool unicode_is_numeric(uint32_t c);
bool unicode_is_word(uint32_t c); /* alphabetic, mark, decimal digit, connector, joiner: \w */

bool unicode_is_letter(uint32_t c);
bool unicode_is_decimal(uint32_t c);
bool unicode_is_printable(uint32_t c); /* neither unassigned, control, format nor space but ' ' */

enum unicode_case { UNICODE_UNCASED, UNICODE_UPPERCASE, UNICODE_LOWERCASE, UNICODE_TITLECASE };
enum unicode_case unicode_case(uint32_t c);

/* The lower case of a character, independent of its neighbors; returns how many characters. */
size_t unicode_lower(uint32_t c, uint32_t out[UNICODE_LOWER_MAX]);

/* The upper case of a character; returns how many characters. The title case, of one character. */
size_t unicode_upper(uint32_t c, uint32_t out[UNICODE_UPPER_MAX]);
uint32_t unicode_title(uint32_t c);

/* The full decomposition, by compatibility or canonical; returns how many characters. */
size_t unicode_decompose(uint32_t c, bool compatibly, uint32_t out[UNICODE_DECOMPOSED_MAX]);

uint8_t unicode_order(uint32_t c);                /* canonical combining class */
uint32_t unicode_compose(uint32_t a, uint32_t b); /* 0: they do not compose */

/* Whether it may be the second character of a composition; true also for some that never are. */
bool unicode_may_join(uint32_t c);

/* Bytes of the first extended grapheme cluster. */
size_t unicode_cluster(const char *text, size_t length);

#endif
