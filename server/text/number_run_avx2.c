/* number_run_avx2: */
#include "server/text/number_run.h"
size_t number_run_avx2(const char *text, const char *end, float *out, size_t room,
                       const char **stop) {
  return number_run_portable(text, end, out, room, stop);
}
