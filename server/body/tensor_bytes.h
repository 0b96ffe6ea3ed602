/* tensor_bytes: an array that came as bytes: in a safetensors body, behind the JSON of a v2
 * request, or as base64.
 *
 * The bytes are collected as they arrive, in memory that grows with them and never beyond what is
 * expected; floats, flags and 32-bit integers are used where they then lie, other types are
 * converted. Numbers are little-endian and row-major. */
#ifndef SERVER_TENSOR_BYTES_H
#define SERVER_TENSOR_BYTES_H

#include "server/body/tensor.h"

/* Types of numbers, and what they may stand for:
 *   TENSOR_FLOAT    F32, F16, BF16, F64; rounded to nearest, infinities and NaN as they are
 *   TENSOR_FLAG     BOOL, U8; each byte 0 or 1
 *   TENSOR_INTEGER  I32, I64; each within int32 */
enum tensor_dtype {
  DTYPE_F32,
  DTYPE_F16,
  DTYPE_BF16,
  DTYPE_F64,
  DTYPE_I32,
  DTYPE_I64,
  DTYPE_BOOL,
  DTYPE_U8,
  DTYPE_NONE
};

/* By its name in safetensors ("F32"); anything else is DTYPE_NONE. */
enum tensor_dtype tensor_dtype_of(const char *name, size_t length);
size_t tensor_dtype_size(enum tensor_dtype dtype); /* bytes of a number */

/* The type and shape that come with the bytes of an array. */
struct tensor_form {
  enum tensor_dtype dtype;
  unsigned rank;
  size_t dim[TENSOR_DEPTH_MAX];
};

/* Checks that an array of this form keeps the rule, whatever its numbers. *bytes is its size, whose
 * product did not wrap. invalid-request (pointer), too-large (limit max_items). */
enum status tensor_form_check(const struct tensor_form *form, const struct tensor_rule *rule,
                              size_t *bytes, struct error *e);

struct tensor_bytes {
  struct arena *arena;
  unsigned char *data;
  size_t size, capacity;
  size_t most; /* bytes expected; SIZE_MAX: not known */
};

void tensor_bytes_init(struct tensor_bytes *t, size_t most, struct arena *a);

/* Room for `size` more bytes, to be written by the caller, who then counts them in t->size. The
 * caller asks for no more than are expected. NULL with an error. */
unsigned char *tensor_bytes_room(struct tensor_bytes *t, size_t size, struct error *e);

/* Copies bytes, no more than are still missing; returns how many. Fails with an error. */
size_t tensor_bytes_feed(struct tensor_bytes *t, const void *bytes, size_t size, struct error *e);

/* Converts the `count` numbers from byte `at`, a multiple of 4, to the end of the array: to floats
 * or 32-bit integers, which begin at `at` and then end the array. *good is how many from the first
 * are finite, or within 32 bits; integers after these are not converted, floats are. May need
 * room. */
enum status tensor_bytes_convert(struct tensor_bytes *t, size_t at, enum tensor_dtype dtype,
                                 size_t count, size_t *good, struct error *e);

/* All bytes are there: makes them into a tensor of this form, which tensor_form_check has passed.
 * The bytes may be used where they are. invalid-request (pointer of the number), overloaded,
 * out-of-memory. */
enum status tensor_bytes_settle(struct tensor_bytes *t, const struct tensor_form *form,
                                const struct tensor_rule *rule, struct tensor *out,
                                struct error *e);

#endif
