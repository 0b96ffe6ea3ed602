/* number_run: which level reads the runs, and the one that needs no vector instructions. */
#include "server/text/number_run.h"

#include "core/cpu.h"
#include "server/text/number.h"
#include "server/text/number_fast.h"

static inline bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

size_t number_run_portable(const char *text, const char *end, float *out, size_t room,
                           const char **stop) {
  size_t count = 0;
  const char *p = text, *next;
  *stop = text;
  while (count < room && p < end) {
    if (!number_read_fast(p, &next, out + count) || next >= end) break;
    if (*next != ',' && *next != ']' && *next != '}' && !is_blank(*next)) break;
    count++;
    *stop = next;
    if (*next != ',') break;
    p = next + 1;
    while (p < end && is_blank(*p)) p++;
  }
  return count;
}

size_t number_read_run(const char *text, const char *end, float *out, size_t room,
                       const char **stop) {
  switch (cpu_text_level()) {
#if defined(__x86_64__)
  case CPU_AVX512:
    return number_run_avx512(text, end, out, room, stop);
  case CPU_AVX2:
    return number_run_avx2(text, end, out, room, stop);
#endif
  default:
    return number_run_portable(text, end, out, room, stop);
  }
}
