/* text_rivals: tensors through simdjson and the C++ standard library. */
#include "tests/bench/text_rivals.h"

#include <charconv>
#include <simdjson.h>

namespace od = simdjson::ondemand;

size_t rival_simdjson(const char *text, size_t length, float *out) {
  static od::parser parser; /* keeps its memory from one body to the next */
  const float *begin = out;
  try {
    od::document body = parser.iterate(text, length, length + RIVAL_PADDING);
    for (const char *name : {"queries", "keys", "values"})
      for (auto item : body[name].get_array())
        for (auto row : item.get_array())
          for (auto number : row.get_array()) *out++ = static_cast<float>(double(number));
  } catch (const simdjson::simdjson_error &) {
    return 0;
  }
  return static_cast<size_t>(out - begin);
}

size_t rival_from_chars(const char *text, size_t length, float *out) {
  const char *const end = text + length;
  const float *begin = out;
  while (text < end) {
    if (*text != '-' && (*text < '0' || *text > '9')) {
      text++;
      continue;
    }
    const auto read = std::from_chars(text, end, *out++);
    if (read.ec != std::errc()) return 0;
    text = read.ptr;
  }
  return static_cast<size_t>(out - begin);
}

size_t rival_integers(const char *text, size_t length, int32_t *out) {
  const char *const end = text + length;
  const int32_t *begin = out;
  while (text < end) {
    if (*text == 't' || *text == 'f') {
      *out++ = *text == 't';
      text += *text == 't' ? 4 : 5;
    } else if (*text == '-' || (*text >= '0' && *text <= '9')) {
      const auto read = std::from_chars(text, end, *out++);
      if (read.ec != std::errc()) return 0;
      text = read.ptr;
    } else {
      text++;
    }
  }
  return static_cast<size_t>(out - begin);
}

char *rival_to_chars(char *out, const float *value, size_t rows, size_t width) {
  for (size_t r = 0; r < rows; r++) {
    if (r) *out++ = ',';
    *out++ = '[';
    for (size_t i = 0; i < width; i++) {
      if (i) *out++ = ',';
      out = std::to_chars(out, out + 16, *value++).ptr;
    }
    *out++ = ']';
  }
  return out;
}
