/* text_rivals: whole tensors read and written with simdjson and with the C++ standard library, as a
 * program that has no reader of its own would. For benchmarks alone. */
#ifndef BENCH_TEXT_RIVALS_H
#define BENCH_TEXT_RIVALS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { RIVAL_PADDING = 256 }; /* bytes readable behind the text; simdjson wants up to 64 */

/* simdjson On-Demand: the numbers of the fields "queries", "keys" and "values" of a body, arrays of
 * depth 3, as float32. Returns how many; 0 if the text is not such a body. */
size_t rival_simdjson(const char *text, size_t length, float *out);

/* std::from_chars at each number of the text, whatever stands between them; 0 if it refuses one. */
size_t rival_from_chars(const char *text, size_t length, float *out);

/* The same of integers; true and false are 1 and 0. */
size_t rival_integers(const char *text, size_t length, int32_t *out);

/* std::to_chars: rows as number_write_rows writes them. */
char *rival_to_chars(char *out, const float *value, size_t rows, size_t width);

#ifdef __cplusplus
}
#endif
#endif
