/* level_asked: programs that measure or search one level of text's instructions. */
#ifndef TESTS_LEVEL_ASKED_H
#define TESTS_LEVEL_ASKED_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/cpu.h"

/* Is text read and written by the level that ATTEND_CPU names, if it names any? If not, says so. */
static inline bool level_asked_is_here(void) {
  const char *asked = getenv("ATTEND_CPU");
  if (!asked || strcmp(asked, cpu_level_name(cpu_text_level())) == 0) return true;
  printf("# %s: not on this processor\n", asked);
  return false;
}

#endif
