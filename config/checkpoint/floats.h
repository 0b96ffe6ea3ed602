/* floats: float32 from the little-endian number formats of files. */
#ifndef CONFIG_FLOATS_H
#define CONFIG_FLOATS_H

#include <stdbool.h>
#include <stddef.h>

enum floats_type { FLOAT_F32, FLOAT_F16, FLOAT_BF16, FLOAT_F64, FLOAT_NONE };

/* The type that safetensors calls "F32", "F16", "BF16" or "F64"; FLOAT_NONE for any other name. */
enum floats_type floats_type_of(const char *name);

size_t floats_type_size(enum floats_type type); /* bytes of a number */

/* Converts `count` numbers, which may be unaligned; each is rounded to nearest, ties to even.
 * Returns the index of the first that is not a finite float32, or `count`. All are converted. */
size_t floats_convert(enum floats_type type, const void *bytes, size_t count, float *out);

bool floats_are_finite(const float *numbers, size_t count);

#endif
