/* dialect_body: the body of a request in another service's words, chunk by chunk. It names its
 * model, maybe behind all else, so that it is read without one, and asks it when it has ended. */
#ifndef SERVER_DIALECT_BODY_H
#define SERVER_DIALECT_BODY_H

#include "config/build/whole.h"
#include "server/answer/answer.h"
#include "server/body/form/body.h"
#include "server/model/answer/stack_stream.h"
#include "server/tokenize/tokenize_body.h"

struct dialect;
struct dialect_body;

/* It lives, like all that it makes, in the arena. `terms` and `limits` outlive it; `e` holds no
 * failure, and outlives it, too: the first one goes there. NULL with a failure. */
struct dialect_body *dialect_body_new(const struct dialect *d, const struct body_terms *terms,
                                      const struct body_limits *limits, struct arena *a,
                                      struct error *e);

/* The body itself, for body_feed and body_cost. */
struct body *dialect_body_of(struct dialect_body *b);

/* The body has ended: the model that it names; NULL: it names none. */
enum status dialect_body_finish(struct dialect_body *b, const char **model);

/* What it asks of this model, which has what the dialect asks for. */
enum status dialect_body_ask(struct dialect_body *b, const struct whole *w,
                             struct stack_request *out);

/* Plans the answer, from the model of this name, to a request whose run is prepared. Fails as
 * answer_plan does. */
enum status dialect_body_answer(struct dialect_body *b, const char *model,
                                const struct stack_request *r, struct answer *answer);

/* The same of one that is answered by a stream. */
enum status dialect_body_stream(struct dialect_body *b, const char *model,
                                const struct stack_request *r, struct stack_stream *stream);

/* Makes tokens, or texts of tokens, where the terms ask a tokenizer alone, and plans the answer. */
enum status dialect_body_tokenize(struct dialect_body *b, const struct whole *w,
                                  struct tokenize_request *out, struct answer *answer);

#endif
