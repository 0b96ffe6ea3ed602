/* base64_level: base64_read and base64_write of each level of instructions; internal to the text
 * modules.
 *
 * All have the contracts of base64.h and differ in speed alone. Those that this processor lacks
 * (cpu_text_level) must not be called; elsewhere than on x86-64 they do not exist. */
#ifndef SERVER_TEXT_BASE64_LEVEL_H
#define SERVER_TEXT_BASE64_LEVEL_H

#include <stddef.h>

size_t base64_read_portable(const char *text, size_t length, unsigned char *out);
size_t base64_read_avx2(const char *text, size_t length, unsigned char *out);
size_t base64_read_avx512(const char *text, size_t length, unsigned char *out);

char *base64_write_portable(char *out, const unsigned char *bytes, size_t size);
char *base64_write_avx2(char *out, const unsigned char *bytes, size_t size);
char *base64_write_avx512(char *out, const unsigned char *bytes, size_t size);

#endif
