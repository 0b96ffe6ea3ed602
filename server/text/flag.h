/* flag: JSON's true and false, and 1 and 0 for them, many at a time. Pure functions, no memory. The
 * reader is chosen by the processor's instructions (cpu_text_level); it is the portable one if the
 * text ends soon. */
#ifndef SERVER_TEXT_FLAG_H
#define SERVER_TEXT_FLAG_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "server/number/number.h"

enum { FLAG_READ_MARGIN = NUMBER_READ_MARGIN /* bytes readable after the given text */ };

/* The length of the flag at `text` if a comma or ']' follows at once; else 0. */
static inline size_t flag_length(const char *text) {
  size_t length = 1;
  if (*text == 't' && memcmp(text, "true", 4) == 0)
    length = 4;
  else if (*text == 'f' && memcmp(text, "false", 5) == 0)
    length = 5;
  else if (*text != '0' && *text != '1')
    return 0;
  return text[length] == ',' || text[length] == ']' ? length : 0;
}

/* Reads up to `room` flags separated by one comma, with or without blanks after it, the first of
 * them at `text`. Each begins before `end` and has a flag_length. A stretch may end anywhere, also
 * before its first flag. Returns how many were read, as 1 and 0; *stop is the byte after the last
 * one, or `text`. No byte before `text` is read. */
size_t flag_read_stretch(const char *text, const char *end, uint8_t *out, size_t room,
                         const char **stop);

/* --- flag_read_stretch of each level of instructions, for flag*.c and tests alone; as in
 * number_level.h --- */

size_t flag_stretch_portable(const char *text, const char *end, uint8_t *out, size_t room,
                             const char **stop);
size_t flag_stretch_avx2(const char *text, const char *end, uint8_t *out, size_t room,
                         const char **stop);

#endif
