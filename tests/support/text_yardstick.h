/* text_yardstick: the C++ standard library's number texts, for tests and benchmarks to compare
 * with. */
#ifndef TESTS_TEXT_YARDSTICK_H
#define TESTS_TEXT_YARDSTICK_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* std::to_chars(float): returns the end; at most 16 bytes are written. */
char *yardstick_write(char *out, float value);

/* std::from_chars(float) on text[0 .. length): false if it is not wholly a number in range. */
bool yardstick_read(const char *text, size_t length, float *value);

#ifdef __cplusplus
}
#endif
#endif
