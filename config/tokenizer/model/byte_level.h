/* byte_level: GPT-2's way to write any byte as a character that can be seen: most bytes as the
 * character of their number, blanks and control bytes as characters from U+0100 on. */
#ifndef CONFIG_BYTE_LEVEL_H
#define CONFIG_BYTE_LEVEL_H

#include <stddef.h>
#include <stdint.h>

enum { BYTE_LEVEL_LAST = 0x143 }; /* the greatest of these characters */

/* The character of a byte. */
uint32_t byte_level_character(unsigned char byte);

/* The byte of a character; -1: it is none of these. */
int byte_level_byte(uint32_t c);

/* Reads a text of such characters as bytes, which are no longer than the text. Returns how many
 * bytes; SIZE_MAX: a character is none of these. */
size_t byte_level_decode(const char *text, size_t length, char *out);

enum { BYTE_LEVEL_BYTES_MAX = 2 }; /* bytes of UTF-8 that a byte is written as, at most */

/* Writes bytes as such characters; returns how many bytes of UTF-8. */
size_t byte_level_encode(const char *bytes, size_t length, char *out);

#endif
