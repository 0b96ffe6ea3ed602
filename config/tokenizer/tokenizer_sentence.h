/* tokenizer_sentence: the tokenizer of a sentencepiece file, with what the model's family adds to
 * it: ids, special tokens and templates as the published tokenizers have them. */
#ifndef CONFIG_TOKENIZER_SENTENCE_H
#define CONFIG_TOKENIZER_SENTENCE_H

#include "config/tokenizer/tokenizer.h"

/* The files beside it; each may be NULL. */
struct tokenizer_beside {
  const json_t *config;               /* config.json */
  const json_t *tokenizer;            /* tokenizer_config.json */
  const json_t *special;              /* special_tokens_map.json */
  const json_t *added;                /* added_tokens.json */
  bool lower;                         /* whether texts are lowercased first */
  const json_t *vocabulary;           /* vocab.json */
  const struct sentencepiece *target; /* target.spm */
};

/* The family is that of tokenizer_class, or of model_type; without either the tokens are
 * sentencepiece's alone. Changes the model. NULL with STATUS_CONFIG or STATUS_OUT_OF_MEMORY. */
struct tokenizer *tokenizer_of_family(struct sentencepiece *model,
                                      const struct tokenizer_beside *beside, struct error *e);

#endif
