/* tokenizer_languages: the languages of multilingual translators whose tokens no file lists. Their
 * order is that of the ids of these tokens. Each code is followed by a blank. */
#ifndef CONFIG_TOKENIZER_LANGUAGES_H
#define CONFIG_TOKENIZER_LANGUAGES_H

#include "config/tokenizer/tokenizer.h"

extern const char tokenizer_languages_m2m100[]; /* "__fr__" is the token of fr */
extern const char tokenizer_languages_wmt21[];  /* the same */
extern const char tokenizer_languages_nllb[];   /* "fra_Latn" is the token of itself */

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
