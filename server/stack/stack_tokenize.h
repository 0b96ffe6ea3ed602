/* stack_tokenize: the texts of a request become the tokens that it might have had in their stead.
 */
#ifndef SERVER_STACK_TOKENIZE_H
#define SERVER_STACK_TOKENIZE_H

#include "config/model/whole.h"
#include "server/body/contract.h"
#include "server/stack/stack_request.h"
#include "server/tokenize/tokenize_texts.h"

/* Gives the reading the tensors of tokens, and of token types where the model has them, if it has
 * texts; else does nothing. Sets `tokenized` and `tells_tokens` of `out`. Fails with
 * invalid-request where the model has no tokenizer, or the request has tokens or embeddings, too;
 * and as tokenizer_cut does. */
enum status stack_tokenize(struct contract_reading *r, const struct whole *w,
                           struct stack_request *out);

#endif
