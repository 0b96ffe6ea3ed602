/* traceparent: the header field traceparent (W3C Trace Context, level 1). */
#include "server/watch/traceparent.h"

#include <string.h>

/* Are the first `size` bytes digits? A NUL is none. */
static bool is_hex(const char *at, size_t size) { return strspn(at, "0123456789abcdef") >= size; }

static bool is_zero(const char *at, size_t size) { return strspn(at, "0") >= size; }

bool traceparent_is_valid(const char *value) {
  enum { SIZE = 55 };
  size_t size = strlen(value);
  while (size && strchr(" \t", value[size - 1])) size--;
  if (size < SIZE || value[2] != '-' || value[35] != '-' || value[52] != '-') return false;
  if (!is_hex(value, 2) || !is_hex(value + 3, TRACEPARENT_TRACE_SIZE) ||
      !is_hex(value + 36, TRACEPARENT_PARENT_SIZE) || !is_hex(value + 53, 2))
    return false;
  if (!memcmp(value, "ff", 2) || is_zero(value + 3, TRACEPARENT_TRACE_SIZE) ||
      is_zero(value + 36, TRACEPARENT_PARENT_SIZE))
    return false;
  return size == SIZE || (memcmp(value, "00", 2) && value[SIZE] == '-');
}
