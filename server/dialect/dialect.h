/* dialect: what makes up a request in the words of another service: the fields that it may have,
 * what they ask for in ours, and how its answer is written. Each dialect is one constant of its own
 * file, and has a row in server/route/dialects.c. */
#ifndef SERVER_DIALECT_H
#define SERVER_DIALECT_H

#include "server/answer/answer.h"
#include "server/dialect/dialect_stack.h"
#include "server/model/answer/stack_stream.h"
#include "server/tokenize/tokenize_body.h"

struct dialect {
  const struct contract *contract; /* its values begin with struct dialect_values */
  size_t values_bytes;             /* of the struct of its small values */

  /* Sets the values that are not zero where no field says so; NULL: all are. Whatever has no fixed
   * size is read into the arena. */
  void (*init)(void *values, struct arena *a);

  /* Gives the model's reading what was read, and checks it: dialect_stack_check makes `out`. */
  enum status (*ask)(struct dialect_stack *s, const struct contract_reading *read,
                     struct stack_request *out);

  /* Plans the answer, from the model of this name, to a request whose run is prepared. Fails as
   * answer_plan does. */
  enum status (*answer)(struct answer *a, const struct contract_reading *read, const char *model,
                        const struct stack_request *r, size_t max_bytes);

  /* The same of a request that is answered by a stream; NULL: none is. */
  enum status (*stream)(struct stack_stream *s, const struct contract_reading *read,
                        const char *model, const struct stack_request *r);

  /* In the place of these three, of a dialect that asks the tokenizer alone: makes tokens of texts,
   * or texts of tokens, and plans the answer. Else NULL. */
  enum status (*tokenize)(const struct contract_reading *read, const struct whole *w,
                          const struct body_limits *limits, struct tokenize_request *out);
  enum status (*tell)(struct answer *a, const struct contract_reading *read,
                      const struct tokenize_request *r, size_t max_bytes);
};

#endif
