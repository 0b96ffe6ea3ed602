/* floats: float32 from the little-endian number formats of files. */
#ifndef CONFIG_FLOATS_H
#define CONFIG_FLOATS_H

#include <stddef.h>

enum floats_type { FLOAT_F32, FLOAT_F16, FLOAT_BF16, FLOAT_F64, FLOAT_NONE };

/* By its name in safetensors: "F32", "F16", "BF16", "F64"; anything else is FLOAT_NONE. */
enum floats_type floats_type_of(const char *name);

size_t floats_type_size(enum floats_type type); /* bytes of a number */

/* Converts `count` numbers, maybe unaligned, each rounded to nearest, ties to even. Returns how
 * many from the start are finite float32: `count` if all are. Infinities and NaN are converted,
 * too. */
size_t floats_convert(enum floats_type type, const void *bytes, size_t count, float *out);

#endif
