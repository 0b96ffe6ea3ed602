/* stack_tokenize: the texts of a request become the tokens that it could have had instead. */
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

/* If the reading has texts, adds the tensors of their tokens, and of token types if the model has
 * them, and sets `tokenized` and `tells_tokens` of `out`. Fails with invalid-request if the model
 * has no tokenizer or no prompt of that name, or if a field excludes texts or requires them; as
 * tokenizer_encode does; and as stack_check does for too many pairs, as soon as that is known. */
enum status stack_tokenize(struct contract_reading *r, const struct whole *w,
                           const struct body_terms *terms, const struct body_limits *limits,
                           struct stack_request *out);

#endif
