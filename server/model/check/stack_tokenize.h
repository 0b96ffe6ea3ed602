/* stack_tokenize: the texts of a request become the tokens that it might have had in their stead.
 */
#ifndef SERVER_STACK_TOKENIZE_H
#define SERVER_STACK_TOKENIZE_H

#include "config/build/whole.h"
#include "server/body/contract.h"
#include "server/model/fields/stack_request.h"
#include "server/tokenize/tokenize_texts.h"

/* Finds the prompt of this name; without a name, the model's default one, or none. Fails with
 * invalid-request at "/prompt_name". */
enum status stack_tokenize_prompt(const struct whole *w, const struct contract_text *name,
                                  struct contract_text *prompt, struct error *e);

/* Gives the reading the tensors of tokens, and of token types where the model has them, if it has
 * texts; else does nothing. Sets `tokenized` and `tells_tokens` of `out`. Fails with
 * invalid-request where the model has no tokenizer, or the request has tokens or embeddings, too,
 * or names a prompt that there is not; as tokenizer_cut does; and as stack_check does where there
 * are too many pairs, as soon as that is known. */
enum status stack_tokenize(struct contract_reading *r, const struct whole *w,
                           const struct body_terms *terms, const struct body_limits *limits,
                           struct stack_request *out);

#endif
