/* whole_answer: answers of whole models, from the body of a request to their bytes, and what is in
 * those. For test programs alone: it needs cmocka. */
#ifndef TESTS_WHOLE_ANSWER_H
#define TESTS_WHOLE_ANSWER_H

#include <jansson.h>

#include "server/model/answer/stack_answer.h"
#include "tests/support/whole_made.h"

struct whole_answer {
  struct arena arena; /* zero, or made by arena_init with a budget */
  struct stack_request request;
  struct answer answer;
  struct error error;
  char *bytes; /* with a zero behind them */
  size_t size;
};

/* Limits that the tests' requests keep. */
extern const struct body_limits whole_answer_wide;

/* Reads the body of a request, which is v2 where the answer is, and prepares that. */
enum status whole_answer_read(struct whole_answer *a, const struct whole_made *m, enum body_ask ask,
                              const char *body, enum answer_form form);

enum status whole_answer_plan(struct whole_answer *a, const struct whole_made *m,
                              enum answer_form form, const struct body_limits *limits);

/* Writes an answer whose numbers are there. */
void whole_answer_write(struct whole_answer *a);

/* All of it, computed as well, which must go well; `a` is made anew. */
void whole_answer_ask(struct whole_answer *a, const struct whole_made *m, enum body_ask ask,
                      const char *body, enum answer_form form);

/* Plans a written answer again: its own bytes are enough, and one less is not. */
void whole_answer_just_fits(struct whole_answer *a, const struct whole_made *m,
                            enum answer_form form);

void whole_answer_done(struct whole_answer *a);

/* An answer in JSON; the caller frees it. */
json_t *whole_answer_json(const struct whole_answer *a);

/* The bytes of an object of base64, aligned for numbers; the caller frees them. */
unsigned char *whole_answer_base64(const json_t *object, size_t *size);

/* The header of an answer in safetensors, which the caller frees, and where its data begins. */
json_t *whole_answer_header(const struct whole_answer *a, const char **data);

/* The bytes of one of its tensors. */
const char *whole_answer_tensor(const json_t *tensor, const char *data, size_t *size);

#endif
