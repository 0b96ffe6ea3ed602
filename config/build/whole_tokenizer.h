/* whole_tokenizer: the tokenizer of a whole model. */
#ifndef CONFIG_WHOLE_TOKENIZER_H
#define CONFIG_WHOLE_TOKENIZER_H

#include "config/build/whole.h"
#include "config/build/whole_plan.h"

/* Finds the tokenizer that lies beside the tensors, or in the folder that the definition's
 * `tokenizer` names, unless that is false; a model without a table of tokens, or without a file,
 * has none. STATUS_CONFIG with the reason, which names the file, also where it has tokens that the
 * model lacks. */
enum status whole_tokenizer_find(struct whole *w, const struct whole_plan *p,
                                 const json_t *definition, const char *directory, struct error *e);

#endif
