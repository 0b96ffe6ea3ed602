/* text_yardstick: the C++ standard library's number texts. */
#include "tests/support/text_yardstick.h"

#include <charconv>

char *yardstick_write(char *out, float value) { return std::to_chars(out, out + 16, value).ptr; }

bool yardstick_read(const char *text, size_t length, float *value) {
  auto result = std::from_chars(text, text + length, *value);
  return result.ec == std::errc() && result.ptr == text + length;
}
