/* stack_tokenize: the texts of a request become the tokens that it could have had instead. */
#ifndef SERVER_STACK_TOKENIZE_H
#define SERVER_STACK_TOKENIZE_H

#include "config/build/whole.h"
#include "server/body/contract.h"
#include "server/model/fields/stack_request.h"
#include "server/model/fields/stack_values.h"
#include "server/tokenize/tokenize_texts.h"

/* Finds the prompt of this name; without a name, the model's default one, or none. Fails with
 * invalid-request at "/prompt_name". */
enum status stack_tokenize_prompt(const struct whole *w, const struct contract_text *name,
                                  struct contract_text *prompt, struct error *e);

/* The names of prompts for a text of late interaction, or of a ranking; the last is NULL. */
extern const char *const stack_tokenize_prompts[WHOLE_TEXTS][4];

/* Sets the first of these prompts that the model has, else its default. NULL ends the names. */
void stack_tokenize_first(struct contract_text *prompt, const struct whole *w,
                          const char *const *names);

/* The kind of text that an item is, if late interaction tells kinds apart. */
enum whole_text stack_tokenize_role(const struct stack_values *v, const struct texts *texts,
                                    size_t item);

/* If the reading has texts, adds the tensors of their tokens, and of token types if the model has
 * them, and sets `tokenized` and `tells_tokens` of `out`. Fails with invalid-request if the model
 * has no tokenizer or no prompt of that name, or if a field excludes texts or requires them; as
 * tokenizer_encode does; and as stack_check does for too many pairs, as soon as that is known. */
enum status stack_tokenize(struct contract_reading *r, const struct whole *w,
                           const struct body_terms *terms, const struct body_limits *limits,
                           struct stack_request *out);

#endif
