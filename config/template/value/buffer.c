/* buffer: a text that grows in the memory of its bounds. */
#include "config/template/value/buffer.h"

#include <stdarg.h>
#include <stdio.h>

enum { FIRST = 64, PRINTED = 512 };

bool buffer_add(struct bounds *b, struct buffer *to, const char *text, size_t length) {
  if (to->most && length > to->most - to->length)
    return bounds_fail(b, "the template writes more than %zu bytes", to->most);
  if (!bounds_text(b, length)) return false;
  if (to->room - to->length < length) {
    const size_t least = to->length + length + FIRST;
    if (!bounds_grow(b, &to->text, &to->room, least, 1)) return false;
  }
  if (length) memcpy(to->text + to->length, text, length);
  to->length += length;
  return true;
}

bool buffer_print(struct bounds *b, struct buffer *to, const char *format, ...) {
  char text[PRINTED];
  va_list args;
  va_start(args, format);
  const int length = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  must(length >= 0 && length < PRINTED);
  return buffer_add(b, to, text, (size_t)length);
}

bool buffer_repeat(struct bounds *b, struct buffer *to, const char *text, size_t length,
                   int64_t times) {
  for (int64_t i = 0; length > 0 && i < times; i++)
    if (!buffer_add(b, to, text, length) || !bounds_step(b, 1)) return false;
  return true;
}

struct value buffer_value(struct bounds *b, struct buffer *of) {
  of->most = 0;
  if (!buffer_add(b, of, "", 1)) return VALUE_FAILED;
  return value_text(of->text, of->length - 1);
}
