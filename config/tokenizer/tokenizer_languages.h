/* tokenizer_languages: the languages of multilingual translators whose tokens no file lists. Their
 * order is that of the ids of these tokens. Each code is followed by a blank. */
#ifndef CONFIG_TOKENIZER_LANGUAGES_H
#define CONFIG_TOKENIZER_LANGUAGES_H

extern const char tokenizer_languages_m2m100[]; /* "__fr__" is the token of fr */
extern const char tokenizer_languages_wmt21[];  /* the same */
extern const char tokenizer_languages_nllb[];   /* "fra_Latn" is the token of itself */

#endif
