/* poisoned: the allocator of the unit tests (POISONED in the Makefile): what is not cleared holds NaN,
 * and one allocation of so many may fail. */
#ifndef TESTS_POISONED_H
#define TESTS_POISONED_H

#include <stddef.h>

/* The n-th allocation from now on fails; 0: none does. */
void poisoned_fail(size_t n);

/* How many there have been since then. */
size_t poisoned_count(void);

#endif
