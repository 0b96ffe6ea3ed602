/* request_id: identifiers of requests that bring none of their own. */
#include "server/http/request_id.h"

#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/run/clock.h"

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

const char *request_id_new(char id[REQUEST_ID_SIZE]) {
  snprintf(id, REQUEST_ID_SIZE, "%016llx", (unsigned long long)request_id_random());
  return id;
}
