/* tokenize_body: the body of a request to make tokens of texts, or texts of tokens, chunk by chunk;
 * and what becomes of it: nothing is left to be computed but the answer's bytes. */
#ifndef SERVER_TOKENIZE_BODY_H
#define SERVER_TOKENIZE_BODY_H

#include "config/build/whole.h"
#include "core/run/run.h"
#include "server/body/form/body.h"
#include "server/tokenize/tokenize_texts.h"

struct tokenize_body;

/* A request of tokenize or detokenize, and its result. */
struct tokenize_request {
  struct run run; /* of no steps to speak of: the pool hands out the answer's pieces */
  bool back;      /* texts were made of tokens: */
  bool alone;     /* ... one, which is no list */
  size_t items;
  struct decoder_text *text; /* [items] */
  struct tokenize_texts texts;
};

/* The same of texts, or of the tokens that are a reading's first array, of whichever body. An error
 * about one of them is at "/text" or "/tokens". */
enum status tokenize_cut_all(const struct contract_reading *r, const struct whole *w, bool special,
                             size_t longest, struct tokenize_request *out);
enum status tokenize_spell_all(const struct contract_reading *r, const struct whole *w,
                               bool special, struct tokenize_request *out);

/* A contract's plan_cost, of tokens that become texts. */
uint64_t tokenize_spell_cost(const struct contract_reading *r);

/* It lives, like all that it makes, in the arena. `e` holds no failure, and outlives the body: the
 * first one goes there. NULL with a failure. The model has a tokenizer. */
struct tokenize_body *tokenize_body_new(const struct whole *w, const struct body_terms *terms,
                                        size_t max_items, struct arena *a, struct error *e);

/* The body itself, for body_feed and body_cost. */
struct body *tokenize_body_of(struct tokenize_body *b);

/* The body has ended: checks it, and does what it asks. */
enum status tokenize_body_finish(struct tokenize_body *b, struct tokenize_request *out);

#endif
