/* body_make: the same request in another form: from JSON text to safetensors, or to JSON with its
 * arrays in base64; and whether two requests that have been read are the same. */
#ifndef TESTS_BODY_MAKE_H
#define TESTS_BODY_MAKE_H

#include "server/attention/attention_body.h"

struct body_made {
  char *bytes; /* malloc'ed to exactly its size */
  size_t size;
};

/* How numbers are written. Floats as "F32", "F16", "BF16" or "F64" (the caller's numbers have that
 * form), integers as "I32" or "I64", flags as "BOOL" or "U8". */
struct body_types {
  const char *floats, *integers, *flags;
};

/* `text` is a request in JSON without ragged arrays. Fields that are no arrays go to
 * __metadata__. */
struct body_made body_safetensors(const char *text, const struct body_types *types);

/* A body from its header as written, with `data_size` zero bytes behind it. */
struct body_made body_raw(const char *header, size_t data_size);

/* Any request in JSON: each array of floats becomes an object, or, where it is ragged or `lists` is
 * set, a list of objects, one for each element of the outermost array. */
struct body_made body_base64(const char *text, const char *dtype, bool lists);

void body_free(struct body_made *b);

/* Fails the test where two calls are not the same, bit for bit. */
void body_assert_same(const struct attention_request *a, const struct attention_request *b,
                      const struct model *m);

#endif
