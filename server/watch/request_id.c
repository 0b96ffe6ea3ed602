/* request_id: the identifiers that a request has in its response and in the log. */
#include "server/watch/request_id.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/base/clock.h"

bool request_id_is_valid(const char *id) {
  const size_t size = strnlen(id, REQUEST_ID_SIZE);
  for (size_t i = 0; i < size; i++) {
    const unsigned char c = (unsigned char)id[i];
    if (!(c < 128 && isalnum(c)) && c != '.' && c != '_' && c != '-') return false;
  }
  return size > 0 && size < REQUEST_ID_SIZE;
}

uint64_t request_id_random(void) {
  uint64_t number;
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
    number = clock_now() ^ (uint64_t)getpid() << 32;
  return number;
}

void request_id_make(char id[REQUEST_ID_SIZE], uint32_t process, uint64_t connection,
                     unsigned number) {
  snprintf(id, REQUEST_ID_SIZE, "%08x%08llx%04x", process, (unsigned long long)connection, number);
}

const char *request_id_make_random(char id[REQUEST_ID_SIZE]) {
  snprintf(id, REQUEST_ID_SIZE, "%016llx", (unsigned long long)request_id_random());
  return id;
}

/* --- traceparent --- */

/* Whether the first `size` bytes are digits; a NUL is not one. */
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
