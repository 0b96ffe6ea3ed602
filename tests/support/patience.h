/* patience: how long a test waits for an event that must come. Only a test that hangs may exceed
 * it, so it is many times what a busy machine takes. */
#ifndef TESTS_SUPPORT_PATIENCE_H
#define TESTS_SUPPORT_PATIENCE_H

#include "core/base/clock.h"

#define PATIENCE_NS (300000ull * CLOCK_MS)

#endif
