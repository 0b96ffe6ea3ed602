/* npy: the header of NumPy's array format, read strictly.
 *
 * `\x93NUMPY | u8 major, u8 minor | length, u16 LE (1.0) or u32 LE (2.0, 3.0) | a Python literal`,
 * then the numbers. The literal is {'descr': ..., 'fortran_order': ..., 'shape': ...} in any order,
 * followed by spaces and a line feed. */
#ifndef CONFIG_NPY_H
#define CONFIG_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/checkpoint/safetensors.h"
#include "core/base/status.h"

enum {
  NPY_PREFIX_LEAST = 10,    /* bytes before the literal: version 1.0 */
  NPY_PREFIX_MOST = 12,     /* versions 2.0 and 3.0 */
  NPY_LITERAL_MOST = 10000, /* bytes of a literal: NumPy's own limit */
  NPY_DTYPE_SIZE = 32
};

struct npy {
  char dtype[NPY_DTYPE_SIZE]; /* name in safetensors, or in NumPy if safetensors has none */
  size_t number;              /* bytes of one number; 0 for an unsupported type */
  bool by_columns;            /* Fortran order; false below rank 2, where there is no difference */
  size_t rank;
  uint64_t dim[SAFETENSORS_RANK_MAX];
  uint64_t count; /* product of the dimensions; 1 for rank 0 */
};

/* Finds the lengths of prefix and literal. `bytes` are the first NPY_PREFIX_MOST bytes of the file,
 * or all `size` bytes of a shorter one. STATUS_CONFIG with the reason. */
enum status npy_measure(const unsigned char *bytes, size_t size, size_t *prefix, size_t *literal,
                        struct error *e);

/* Reads the literal. STATUS_CONFIG with the reason. */
enum status npy_parse(const char *literal, size_t size, struct npy *out, struct error *e);

#endif
