/* render_body: the body of a request to render a conversation with the model's chat template. */
#ifndef SERVER_RENDER_BODY_H
#define SERVER_RENDER_BODY_H

#include "server/tokenize/tokenize_body.h"

struct render_body;

/* Makes a body, which lives in the arena with all that it makes except the conversation: that one
 * is freed by render_body_done, which is called in any case. `e` holds no failure, outlives the
 * body and gets the first failure. Returns NULL after a failure. The model has a tokenizer and a
 * chat template. */
struct render_body *render_body_new(const struct whole *w, const struct body_terms *terms,
                                    struct arena *a, struct error *e);
void render_body_done(struct render_body *b);

/* Returns the body for body_feed and body_cost. */
struct body *render_body_of(struct render_body *b);

/* Ends the body, renders the conversation and tokenizes its prompt, without further special tokens:
 * out->text has the prompt, and out->texts its tokens. Returns the status of `e`. */
enum status render_body_finish(struct render_body *b, struct tokenize_request *out);

#endif
