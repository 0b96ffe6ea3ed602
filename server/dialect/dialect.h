/* dialect: an endpoint of another service's API: its fields, the request of our own that they make,
 * and the format of its response. Each dialect is one constant of its own file, and has a row in
 * server/route/dialects.c. All functions get their memory from the arena of what was read, and
 * leave an error in its `e`, too. */
#ifndef SERVER_DIALECT_H
#define SERVER_DIALECT_H

#include "server/answer/answer.h"
#include "server/dialect/dialect_stack.h"
#include "server/model/answer/stack_stream.h"
#include "server/tokenize/tokenize_body.h"

struct dialect {
  const struct contract *contract; /* its values begin with struct dialect_values */
  size_t values_bytes;             /* of the struct of its small values */

  /* Sets the defaults that are not zero; NULL: all are zero. Small values of any length are read
   * into the arena. */
  void (*init)(void *values, struct arena *a);

  /* Sets the model's fields by those that were read, and checks them: dialect_stack_check makes
   * `out`. */
  enum status (*ask)(struct dialect_stack *s, const struct contract_reading *read,
                     struct stack_request *out);

  /* Plans the response, from the model of this name, to a request whose run is prepared. Fails as
   * answer_plan does. */
  enum status (*answer)(struct answer *a, const struct contract_reading *read, const char *model,
                        const struct stack_request *r, size_t max_bytes);

  /* The same for a streamed response; NULL: the dialect does not stream. */
  enum status (*stream)(struct stack_stream *s, const struct contract_reading *read,
                        const char *model, const struct stack_request *r);

  /* Instead of these three, for a dialect that needs only a tokenizer: makes tokens of texts, or
   * texts of tokens; and plans the response. Else NULL. */
  enum status (*tokenize)(const struct contract_reading *read, const struct whole *w,
                          const struct body_limits *limits, struct tokenize_request *out);
  enum status (*answer_tokenized)(struct answer *a, const struct contract_reading *read,
                                  const struct tokenize_request *r, size_t max_bytes);
};

#endif
