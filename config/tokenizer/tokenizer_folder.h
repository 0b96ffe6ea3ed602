/* tokenizer_folder: the tokenizer in a folder: tokenizer.json, or what older models have instead: a
 * sentencepiece model, or lists of words and merges. */
#ifndef CONFIG_TOKENIZER_FOLDER_H
#define CONFIG_TOKENIZER_FOLDER_H

#include "config/tokenizer/tokenizer.h"

/* The first of these that a folder has:
 *
 *   tokenizer.json
 *   spiece.model, sentencepiece.bpe.model, tokenizer.model or spm.model
 *                               as sentencepiece's; config.json, tokenizer_config.json,
 *                               special_tokens_map.json and added_tokens.json name the family and
 *                               special tokens (tokenizer_sentence.h)
 *   vocab.json and merges.txt   as GPT-2's; with <s> and </s> among the pieces as RoBERTa's
 *   vocab.txt                   as BERT's; tokenizer_config.json may say do_lower_case,
 *                               strip_accents and tokenize_chinese_chars
 *   words.txt                   a word a line, in lower case; blanks and punctuation separate words
 *
 * Or the path is that of a file *.json, *.model or *.spm, which is read as the first, or as the
 * second of these.
 *
 * With `lower`, texts are lowercased first. *file becomes the name of the file, or that pattern of
 * it, static text; NULL, as is the tokenizer: there is none, which is no failure. STATUS_CONFIG
 * with the reason, which names the file; STATUS_OUT_OF_MEMORY. */
struct tokenizer *tokenizer_folder(const char *path, bool lower, const char **file,
                                   struct error *e);

/* The tokenizer of the text of a words.txt; NULL with STATUS_CONFIG or STATUS_OUT_OF_MEMORY. */
struct tokenizer *tokenizer_words(const char *text, size_t length, struct error *e);

/* A small document in the folder, such as tokenizer_config.json; the caller releases it. Its
 * integers are read as reals: an unlimited length is written with 31 digits. NULL: it is absent, or
 * `e` says STATUS_CONFIG or STATUS_OUT_OF_MEMORY. */
json_t *tokenizer_folder_json(const char *folder, const char *name, struct error *e);

#endif
