/* body_read: a body of an attention request, read in chunks. */
#ifndef TESTS_BODY_READ_H
#define TESTS_BODY_READ_H

#include "server/attention/attention_body.h"

struct body_result {
  struct arena arena; /* zero, or made by arena_init with a budget */
  struct attention_request request;
  struct error error;
};

/* Limits that the tests' requests keep. */
extern const struct body_limits body_read_wide;

/* Terms of which nothing is announced. */
struct body_terms body_read_terms(enum body_ask ask, enum body_form form);

/* Feeds a first chunk of `cut` bytes, or of `step` where that is 0, and then chunks of `step`. Each
 * is in memory of its own size, so that a sanitizer sees a read beyond it. Fails the test where a
 * status that is returned is not that of the body's error. */
void body_read_chunks(struct body *b, const struct error *e, const char *bytes, size_t size,
                      size_t cut, size_t step);

/* Reads a body in such chunks. Likewise where the last status is not that of the error. The caller
 * frees the arena. */
void body_read(struct body_result *r, const struct model *m, const struct body_terms *terms,
               const struct body_limits *limits, const char *bytes, size_t size, size_t cut,
               size_t step);

#endif
