/* whole_tokenizer: the tokenizer of a model, the length of its texts, and its prompts. */
#ifndef CONFIG_WHOLE_TOKENIZER_H
#define CONFIG_WHOLE_TOKENIZER_H

#include "config/build/plan/whole_plan.h"
#include "config/build/whole.h"

/* Loads the tokenizer from the folder of the tensors, or from the folder that the definition's
 * `tokenizer` names, unless that is false. A model without token embeddings, or without a file, has
 * none. Sets all members of *w about texts. STATUS_CONFIG with the reason, which names the file;
 * also if the tokenizer has tokens that the model lacks. */
enum status whole_tokenizer_find(struct whole *w, const struct whole_plan *p,
                                 const json_t *definition, const char *directory, struct error *e);

#endif
