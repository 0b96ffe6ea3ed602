/* request_id: the identifier of a request. */
#include "server/http/request_id.h"

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
