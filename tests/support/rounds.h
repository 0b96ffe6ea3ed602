/* rounds: how many rounds a loop over randomly sampled cases makes: all of them in a build without
 * sanitizers, a quarter under asan and a tenth under tsan, where each round takes many
 * times as long. At a lower level of instructions, where only the kernels differ, it is a quarter at
 * most. Some are left in any build: two, or all where there are fewer. Loops over cases that are
 * listed, and those of which every round is needed, do not ask. */
#ifndef TESTS_SUPPORT_ROUNDS_H
#define TESTS_SUPPORT_ROUNDS_H

#include <stddef.h>
#include <stdlib.h>

#ifndef ROUNDS_PART /* the Makefile defines it for asan and tsan */
#define ROUNDS_PART 1
#endif

static inline size_t rounds(size_t n) {
  const size_t part = n / (ROUNDS_PART < 4 && getenv("ATTEND_CPU") ? 4 : ROUNDS_PART);
  return part >= 2 ? part : n < 2 ? n : 2;
}

#endif
