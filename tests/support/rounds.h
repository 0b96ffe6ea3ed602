/* rounds: how many rounds a loop over randomly sampled cases makes: all of them in a build without
 * sanitizers, a quarter under the address sanitizer and a tenth under the thread sanitizer, where
 * each round takes many times as long. Some are left in any build: two, or all where there are
 * fewer. Loops over cases that are listed, and those of which every round is needed, do not ask. */
#ifndef TESTS_SUPPORT_ROUNDS_H
#define TESTS_SUPPORT_ROUNDS_H

#include <stddef.h>

#if defined(__has_feature) /* clang */
#if __has_feature(address_sanitizer)
#define ROUNDS_ADDRESS
#elif __has_feature(thread_sanitizer)
#define ROUNDS_THREAD
#endif
#endif

#if defined(__SANITIZE_THREAD__) || defined(ROUNDS_THREAD)
enum { ROUNDS_PART = 10 };
#elif defined(__SANITIZE_ADDRESS__) || defined(ROUNDS_ADDRESS)
enum { ROUNDS_PART = 4 };
#else
enum { ROUNDS_PART = 1 };
#endif

static inline size_t rounds(size_t n) {
  const size_t part = n / ROUNDS_PART;
  return part >= 2 ? part : n < 2 ? n : 2;
}

#endif
