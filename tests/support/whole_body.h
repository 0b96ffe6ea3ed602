/* whole_body: bodies of requests to whole models, read in chunks, and what they become. For test
 * programs alone: it needs cmocka. */
#ifndef TESTS_WHOLE_BODY_H
#define TESTS_WHOLE_BODY_H

#include "server/model/check/stack_body.h"
#include "tests/support/whole_made.h"

struct whole_body {
  struct arena arena; /* zero, or made by arena_init with a budget; the caller frees it */
  struct stack_request request;
  struct error error;
};

extern enum body_ask whole_body_ask; /* what all bodies ask: set by main, or by a test */

/* Limits that the tests' requests keep. */
extern const struct body_limits whole_body_wide;

/* Terms of which nothing is announced. */
struct body_terms whole_body_terms(enum body_form form);

/* Reads a first chunk of `cut` bytes, or of `step` where that is 0, and then chunks of `step`, as
 * body_read_chunks does. */
void whole_body_read(struct whole_body *r, const struct whole_made *m,
                     const struct body_terms *terms, const struct body_limits *limits,
                     const char *bytes, size_t size, size_t cut, size_t step);

/* A text in JSON at once, with wide limits; `r` is made anew. */
void whole_body_text(struct whole_body *r, const struct whole_made *m, const char *text);

/* One that must be accepted. */
void whole_body_accept(struct whole_body *r, const struct whole_made *m, const char *text);

/* A body of safetensors from its header and its data; `r` is made anew. */
void whole_body_safetensors(struct whole_body *r, const struct whole_made *m, const char *header,
                            const void *data, size_t size);

/* Reads a body byte by byte, and cut in two at each place: each time it must be accepted, and pass
 * the check. */
void whole_body_however_cut(const struct whole_made *m, enum body_form form, const char *bytes,
                            size_t size, void (*check)(const struct stack_request *));

/* Reads a body that is accepted in ever larger budgets, in small chunks and in a large one. */
void whole_body_in_any_budget(const struct whole_made *m, enum body_form form, const char *bytes,
                              size_t size);

/* What is wrong with a request: where, and some words of what is said. */
struct whole_body_refused {
  const char *text, *pointer, *words;
};

void whole_body_is_refused(const struct whole_body *r, const struct whole_body_refused *as);

/* Texts in JSON. */
void whole_body_refuse(const struct whole_made *m, const struct whole_body_refused *list,
                       size_t count);
#define WHOLE_BODY_REFUSE(model, list) whole_body_refuse(model, list, sizeof(list) / sizeof *(list))

#endif
