/* tokenize_body: the body of a request to tokenize texts or to detokenize tokens, read chunk by
 * chunk. At its end the work is done, except for the bytes of the response. */
#ifndef SERVER_TOKENIZE_BODY_H
#define SERVER_TOKENIZE_BODY_H

#include "config/build/whole.h"
#include "core/run/run.h"
#include "server/body/form/body.h"
#include "server/tokenize/tokenize_texts.h"

struct tokenize_body;

/* The result. */
struct tokenize_request {
  struct run run; /* one step without units: the pool only distributes the response's pieces */
  bool back;      /* tokens were detokenized: */
  bool alone;     /* one list of them, so that the response is one text */
  size_t items;
  struct decoder_text *text;   /* [items] if `back`, or of a rendered conversation */
  struct tokenize_texts texts; /* if not `back` */
};

/* Tokenize the texts, or detokenize the tokens, the first array, that any body has read. Return the
 * status of r->e; errors about one of them are at "/text" or "/tokens". */
enum status tokenize_cut_all(const struct contract_reading *r, const struct whole *w, bool special,
                             size_t longest, struct tokenize_request *out);
enum status tokenize_spell_all(const struct contract_reading *r, const struct whole *w,
                               bool special, struct tokenize_request *out);

/* Tokenizes the prompt that a chat template made, which has all its special tokens: none is added.
 * Returns the status of r->e. `texts` is NULL after a failure. */
enum status tokenize_rendered(const struct contract_reading *r, const struct whole *w,
                              const struct texts *texts, struct tokenize_request *out);

/* A contract's plan_cost of detokenizing. */
uint64_t tokenize_spell_cost(const struct contract_reading *r);

/* Makes a body, which lives in the arena with all that it makes. `e` holds no failure, outlives the
 * body and gets the first failure. Returns NULL after a failure. The model has a tokenizer. */
struct tokenize_body *tokenize_body_new(const struct whole *w, const struct body_terms *terms,
                                        size_t max_items, struct arena *a, struct error *e);

/* Returns the body for body_feed and body_cost. */
struct body *tokenize_body_of(struct tokenize_body *b);

/* Ends the body, checks it and does the work. Returns the status of `e`. */
enum status tokenize_body_finish(struct tokenize_body *b, struct tokenize_request *out);

#endif
