/* base64: bytes as text, in the standard alphabet with padding (RFC 4648, section 4), strictly. */
#ifndef SERVER_TEXT_BASE64_H
#define SERVER_TEXT_BASE64_H

#include <stdbool.h>
#include <stddef.h>

enum {
  BASE64_READ_MARGIN = 64, /* bytes after the output that base64_read may overwrite */
  BASE64_WRITE_MARGIN = 64 /* bytes after the output that base64_write may overwrite */
};

/* How many characters `bytes` bytes become, padding included. */
static inline size_t base64_length(size_t bytes) { return (bytes + 2) / 3 * 4; }

/* Reads whole groups of four characters of the alphabet, without padding, from the beginning of
 * `text` up to the first character that is not of the alphabet. Returns how many characters were
 * read, a multiple of four; `out` gets three bytes for each four, and has room for these and
 * BASE64_READ_MARGIN more. Nothing is read beyond text[length - 1]. */
size_t base64_read(const char *text, size_t length, unsigned char *out);

/* Reads the last group of a text, which ends with one or two '=', into one or two bytes. Returns
 * how many; 0 if the four characters are no such group, or bits that must be zero are not. */
size_t base64_read_last(const char text[4], unsigned char out[2]);

/* Writes all bytes, the last group padded. Returns the end of the text, after which
 * BASE64_WRITE_MARGIN bytes may be overwritten. */
char *base64_write(char *out, const void *bytes, size_t size);

/* --- base64_read and base64_write of each level of instructions, for base64*.c and tests alone; as
 * in number_level.h --- */

size_t base64_read_portable(const char *text, size_t length, unsigned char *out);
size_t base64_read_avx2(const char *text, size_t length, unsigned char *out);
size_t base64_read_avx512(const char *text, size_t length, unsigned char *out);

char *base64_write_portable(char *out, const unsigned char *bytes, size_t size);
char *base64_write_avx2(char *out, const unsigned char *bytes, size_t size);
char *base64_write_avx512(char *out, const unsigned char *bytes, size_t size);

#endif
