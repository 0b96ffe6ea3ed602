/* buffer: a text that grows in the memory of its bounds. */
#ifndef CONFIG_BUFFER_H
#define CONFIG_BUFFER_H

#include <string.h>

#include "config/template/value/value.h"

struct buffer {
  char *text; /* not ended by a zero */
  size_t length, room;
  size_t most; /* bytes that it may have; 0: as many as there is memory */
};

/* Append; false after a failure. */
bool buffer_add(struct bounds *b, struct buffer *to, const char *text, size_t length);
bool buffer_print(struct bounds *b, struct buffer *to, const char *format, ...)
    __attribute__((format(printf, 3, 4))); /* at most 500 bytes */
bool buffer_repeat(struct bounds *b, struct buffer *to, const char *text, size_t length,
                   int64_t times); /* not at all if it is negative */

static inline bool buffer_word(struct bounds *b, struct buffer *to, const char *text) {
  return buffer_add(b, to, text, strlen(text));
}

/* The text as a value. The buffer is not used afterwards. */
struct value buffer_value(struct bounds *b, struct buffer *of);

#endif
