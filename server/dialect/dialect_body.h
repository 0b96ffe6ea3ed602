/* dialect_body: the body of a request in another service's API, fed chunk by chunk. It may name its
 * model after everything else, so that it is read without a model, which gets its fields at the
 * end. Functions that return a status leave an error in the body's `e`, too. */
#ifndef SERVER_DIALECT_BODY_H
#define SERVER_DIALECT_BODY_H

#include "config/build/whole.h"
#include "server/answer/answer.h"
#include "server/body/form/body.h"
#include "server/model/answer/stack_stream.h"
#include "server/tokenize/tokenize_body.h"

struct dialect_body;

/* Makes a body of terms->dialect. It lives, like all that it makes, in the arena, except the
 * messages of a chat: these are freed by dialect_body_done, which is called in any case. `terms`,
 * `limits` and `e` outlive it; `e`, which holds no failure, gets the first one. NULL with a
 * failure. */
struct dialect_body *dialect_body_new(const struct body_terms *terms,
                                      const struct body_limits *limits, struct arena *a,
                                      struct error *e);

void dialect_body_done(struct dialect_body *b);

/* The body itself, for body_feed and body_cost. */
struct body *dialect_body_of(struct dialect_body *b);

/* Ends the body, and sets *model to the name of the model; NULL: it names none. */
enum status dialect_body_finish(struct dialect_body *b, const char **model);

/* Makes the request to this model, which can serve the dialect. */
enum status dialect_body_ask(struct dialect_body *b, const struct whole *w,
                             struct stack_request *out);

/* Plans the response, from the model of this name, to a request whose run is prepared. Fails as
 * answer_plan does. */
enum status dialect_body_answer(struct dialect_body *b, const char *model,
                                const struct stack_request *r, struct answer *answer);

/* The same for a streamed response. */
enum status dialect_body_stream(struct dialect_body *b, const char *model,
                                const struct stack_request *r, struct stack_stream *stream);

/* Makes tokens of texts, or texts of tokens, and plans the response: for a dialect that needs only
 * a tokenizer. */
enum status dialect_body_tokenize(struct dialect_body *b, const struct whole *w,
                                  struct tokenize_request *out, struct answer *answer);

#endif
