/* tensor_bytes: an array that came as bytes: in a safetensors body, after the JSON of a v2 request,
 * or as base64.
 *
 * The bytes become numbers as they arrive: floats of 32 bits, 32-bit integers, flags. Memory grows
 * with them, never beyond the expected size. The end of an array costs no more than any other part
 * of it. The bytes are little-endian and row-major. */
#ifndef SERVER_TENSOR_BYTES_H
#define SERVER_TENSOR_BYTES_H

#include "server/json/tensor.h"

/* Types of numbers as they are sent, for each type of field:
 *   TENSOR_FLOAT    F32, F16, BF16, F64; rounded to nearest, infinities and NaN unchanged
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

/* Returns the type of this name in safetensors ("F32"), or DTYPE_NONE. */
enum tensor_dtype tensor_dtype_of(const char *name, size_t length);
size_t tensor_dtype_size(enum tensor_dtype dtype); /* bytes of a number */

/* The type and shape sent with the bytes of an array. */
struct tensor_form {
  enum tensor_dtype dtype;
  unsigned rank;
  size_t dim[TENSOR_DEPTH_MAX];
};

/* Checks that an array of this form satisfies the rule, whatever its numbers, and sets *bytes to
 * its size. Returns the status of `e`: invalid-request (pointer), too-large (limit max_items). */
enum status tensor_form_check(const struct tensor_form *form, const struct tensor_rule *rule,
                              size_t *bytes, struct error *e);

struct tensor_bytes {
  struct arena *arena;
  unsigned char *data; /* the numbers, aligned to 64 bytes */
  size_t size, capacity;
  size_t margin; /* bytes of memory after the expected ones: see tensor_bytes_room */

  /* The array that arrives: several may follow each other in the same memory. */
  enum tensor_dtype dtype;            /* DTYPE_NONE: unknown, its bytes are not converted */
  size_t expected, came;              /* bytes; SIZE_MAX: unknown */
  bool bad;                           /* a number was not finite, not within 32 bits, or no flag */
  size_t good;                        /* numbers before the first bad one */
  unsigned char part[sizeof(double)]; /* the first bytes of a number that a chunk cuts */
};

void tensor_bytes_init(struct tensor_bytes *t, enum tensor_dtype dtype, size_t expected,
                       struct arena *a);

/* Begins another array, after the numbers of those before it. */
void tensor_bytes_next(struct tensor_bytes *t, enum tensor_dtype dtype, size_t expected);

/* Reads bytes of the array and returns how many: no more than it lacks. Returns 0 with an error
 * after a failure. */
size_t tensor_bytes_feed(struct tensor_bytes *t, const void *bytes, size_t size, struct error *e);

/* Returns whether the bytes are converted. If not, they may be written in place: tensor_bytes_room
 * returns the address of at least `size` free bytes, or NULL with an error, and tensor_bytes_wrote
 * counts those that were written. */
bool tensor_bytes_converts(const struct tensor_bytes *t);
unsigned char *tensor_bytes_room(struct tensor_bytes *t, size_t size, struct error *e);
void tensor_bytes_wrote(struct tensor_bytes *t, size_t size);

/* Returns whether all expected bytes have arrived. */
static inline bool tensor_bytes_whole(const struct tensor_bytes *t) {
  return t->came == t->expected;
}

/* Makes a tensor from the complete array; tensor_form_check has accepted the form. Returns the
 * status of `e`: invalid-request (pointer of the bad number). */
enum status tensor_bytes_finish(const struct tensor_bytes *t, const struct tensor_form *form,
                                const struct tensor_rule *rule, struct tensor *out,
                                struct error *e);

#endif
