/* stack_languages: the languages that a request to a translator names. They become tokens, as its
 * tokenizer has them. */
#ifndef SERVER_STACK_LANGUAGES_H
#define SERVER_STACK_LANGUAGES_H

#include "config/build/whole.h"
#include "server/body/contract.h"
#include "server/model/fields/stack_values.h"
#include "server/tokenize/tokenize_texts.h"

/* Finds source_language and target_language. That of the target becomes the first generated token,
 * or *prompt the code before each source. Fails with invalid-request at the field. */
enum status stack_languages_find(struct contract_reading *r, const struct whole *w,
                                 struct contract_text *prompt);

/* Sets the language of each source among its tokens, if the request names it. */
enum status stack_languages_set(const struct contract_reading *r, const struct whole *w,
                                struct tokenize_texts *d);

#endif
