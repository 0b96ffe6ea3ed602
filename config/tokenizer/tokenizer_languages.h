/* tokenizer_languages: the languages that tokens of a tokenizer stand for. */
#ifndef CONFIG_TOKENIZER_LANGUAGES_H
#define CONFIG_TOKENIZER_LANGUAGES_H

#include "config/tokenizer/tokenizer.h"

/* A language that a token of a translator stands for. */
struct tokenizer_language {
  const char *code; /* [length] "fr", "fra_Latn", "fr_XX" */
  size_t length;
  int32_t id;
  bool before; /* whether the token, >>fra<<, precedes the source and names the target's language;
                  else it names the source's there, and begins a target */
};

/* The next language of a tokenizer; *at: 0 for the first one. False: there is no more. */
bool tokenizer_next_language(const struct tokenizer *t, size_t *at, struct tokenizer_language *out);

#endif
