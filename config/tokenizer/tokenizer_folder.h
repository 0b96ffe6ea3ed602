/* tokenizer_folder: the tokenizer that lies in a folder: tokenizer.json, or the lists of words and
 * merges that older models have in its stead. */
#ifndef CONFIG_TOKENIZER_FOLDER_H
#define CONFIG_TOKENIZER_FOLDER_H

#include "config/tokenizer/tokenizer.h"

/* Of a folder, in this order:
 *
 *   tokenizer.json
 *   vocab.json and merges.txt   as GPT-2's; with <s> and </s> among the pieces as RoBERTa's
 *   vocab.txt                   as BERT's; tokenizer_config.json may say do_lower_case,
 *                               strip_accents and tokenize_chinese_chars
 *   words.txt                   a word a line, in lower case, blanks and punctuation between them
 *
 * With `lower` texts are put in lower case first. *file becomes the name of what was found, static
 * text; NULL, as is the tokenizer: none is there, which is no failure. STATUS_CONFIG with the
 * reason, which names the file; STATUS_OUT_OF_MEMORY.
 */
struct tokenizer *tokenizer_folder(const char *folder, bool lower, const char **file,
                                   struct error *e);

/* A small document beside them, such as tokenizer_config.json. Its integers are reals: a length
 * without a limit is written as one of 31 digits. NULL: it is not there, or STATUS_CONFIG, or
 * STATUS_OUT_OF_MEMORY. */
json_t *tokenizer_folder_json(const char *folder, const char *name, struct error *e);

#endif
