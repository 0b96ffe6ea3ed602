/* builtin: models that are part of the program.
 *
 * "sort" sorts tokens. It is an encoder of the plain family for 1 to 16 tokens out of 32: row i of
 * its outputs, 32 numbers wide, has its greatest number at the token that is i-th in order, and
 * head 0 of its last layer attends to the place of that token (the first one among equals).
 *
 * "words" reads sentences of 1 to 24 words out of 110. It is an encoder, too: the greatest of the
 * first 32 numbers of a row is at the noun that its word speaks of, whose token is 1 to 31; at 0 if
 * it speaks of none. Heads 0, 1 and 2 of its last layer look for the noun that is meant, the word
 * before, and the same word earlier.
 *
 * "story" is a decoder with the same words, which continues sentences of up to 24. They end with
 * ".", and may begin with it.
 *
 * Programs of tests/example trained them. */
#ifndef CONFIG_BUILTIN_H
#define CONFIG_BUILTIN_H

#include <stdbool.h>
#include <stddef.h>

/* The files of a model; static bytes. */
struct builtin {
  const char *name;
  const char *config; /* config.json, without a NUL */
  size_t config_size;
  const void *tensors; /* model.safetensors */
  size_t tensors_size;
  const char *words; /* words.txt; NULL: it has no tokenizer */
  size_t words_size;
};

/* The name of a model; NULL after the last one. */
const char *builtin_name(size_t index);

/* False: there is no such model. */
bool builtin_find(const char *name, struct builtin *out);

#endif
