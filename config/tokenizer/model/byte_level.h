/* byte_level: GPT-2's way to write any byte as a visible character: most bytes as the character of
 * the same number, blanks and control bytes as characters from U+0100 on. */
#ifndef CONFIG_BYTE_LEVEL_H
#define CONFIG_BYTE_LEVEL_H

#include <stddef.h>
#include <stdint.h>

enum {
  BYTE_LEVEL_LAST = 0x143, /* the greatest of these characters */
  BYTE_LEVEL_BYTES_MAX = 2 /* bytes of UTF-8 of such a character, at most */
};

uint32_t byte_level_character(unsigned char byte);

/* The byte of a character; -1: it stands for none. */
int byte_level_byte(uint32_t c);

/* Decodes a text of such characters to bytes, which are at most as many. Returns how many;
 * SIZE_MAX: a character stands for no byte. */
size_t byte_level_decode(const char *text, size_t length, char *out);

/* Encodes bytes as such characters; returns how many bytes of UTF-8. */
size_t byte_level_encode(const char *bytes, size_t length, char *out);

#endif
