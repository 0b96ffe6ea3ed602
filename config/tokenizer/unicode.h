/* unicode: characters, their classes, and their other forms; the only caller of utf8proc.
 *
 * Text is well-formed UTF-8 everywhere. Classes are those of the library's Unicode. */
#ifndef CONFIG_UNICODE_H
#define CONFIG_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  UNICODE_BYTES_MAX = 4,       /* of a character */
  UNICODE_LOWER_MAX = 3,       /* characters that one becomes in lower case */
  UNICODE_DECOMPOSED_MAX = 18, /* ... decomposed, by compatibility too */
};

/* The character that begins at `text`, and how many bytes it has. */
uint32_t unicode_read(const char *text, size_t *length);
size_t unicode_write(uint32_t c, char out[UNICODE_BYTES_MAX]); /* returns how many bytes */

/* Bytes of the longest beginning of a text that is ASCII. */
size_t unicode_ascii(const char *text, size_t length);

bool unicode_is_space(uint32_t c); /* White_Space */
bool unicode_is_punctuation(
    uint32_t c);                   /* of ASCII also symbols: !"#$%&'()*+,-./:;<=>?@[\]^_`{|}~ */
bool unicode_is_other(uint32_t c); /* control, format, unassigned, private use, surrogate */
bool unicode_is_mark(uint32_t c);
bool unicode_is_nonspacing(uint32_t c); /* a mark of that kind */
bool unicode_is_numeric(uint32_t c);
bool unicode_is_word(uint32_t c); /* alphabetic, mark, decimal digit, connector, joiner: \w */

/* In lower case, wherever it stands. Returns how many characters. */
size_t unicode_lower(uint32_t c, uint32_t out[UNICODE_LOWER_MAX]);

/* Decomposes, by compatibility or canonically, all the way; returns how many characters. */
size_t unicode_decompose(uint32_t c, bool compatibly, uint32_t out[UNICODE_DECOMPOSED_MAX]);

uint8_t unicode_order(uint32_t c);                /* canonical combining class */
uint32_t unicode_compose(uint32_t a, uint32_t b); /* of both; 0: they have no composition */

/* Bytes of the first grapheme cluster, by the extended rules. */
size_t unicode_cluster(const char *text, size_t length);

#endif
