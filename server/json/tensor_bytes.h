/* tensor_bytes: an array that came as bytes: in a safetensors body, behind the JSON of a v2
 * request, or as base64.
 *
 * Numbers are made of the bytes as these arrive, in memory that grows with them and never beyond
 * what is expected: floats of 32 bits, 32-bit integers, flags. So the end of an array costs no more
 * than any other part of it. The bytes are little-endian and row-major. */
#ifndef SERVER_TENSOR_BYTES_H
#define SERVER_TENSOR_BYTES_H

#include "server/json/tensor.h"

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
  unsigned char *data; /* what was made, aligned to 64 bytes */
  size_t size, capacity;
  size_t margin; /* bytes that are asked for beyond what is expected: see tensor_bytes_room */

  /* Of the array that arrives: several may stand in the same memory, one behind the other. */
  enum tensor_dtype dtype;            /* DTYPE_NONE: not known, its bytes are kept as they are */
  size_t expected, came;              /* bytes; SIZE_MAX: not known */
  bool bad;                           /* a number was not finite, not within 32 bits, or no flag: */
  size_t good;                        /* which one */
  unsigned char part[sizeof(double)]; /* of a number that was cut */
};

void tensor_bytes_init(struct tensor_bytes *t, enum tensor_dtype dtype, size_t expected,
                       struct arena *a);

/* Another array arrives, which will stand behind what is there. */
void tensor_bytes_next(struct tensor_bytes *t, enum tensor_dtype dtype, size_t expected);

/* Takes bytes, no more than are still missing; returns how many. Fails with an error. */
size_t tensor_bytes_feed(struct tensor_bytes *t, const void *bytes, size_t size, struct error *e);

/* Do the bytes become something else? If not, they may be written to their place: there is room for
 * `size` more, and those that were written are then counted. NULL with an error. */
bool tensor_bytes_converts(const struct tensor_bytes *t);
unsigned char *tensor_bytes_room(struct tensor_bytes *t, size_t size, struct error *e);
void tensor_bytes_wrote(struct tensor_bytes *t, size_t size);

/* Have all bytes come that are expected? */
static inline bool tensor_bytes_whole(const struct tensor_bytes *t) {
  return t->came == t->expected;
}

/* Makes the array into a tensor of this form, which tensor_form_check has passed.
 * invalid-request (pointer of the number). */
enum status tensor_bytes_settle(const struct tensor_bytes *t, const struct tensor_form *form,
                                const struct tensor_rule *rule, struct tensor *out,
                                struct error *e);

#endif
