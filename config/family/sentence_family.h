/* sentence_family: the families whose published tokenizers are sentencepiece models, a row each. */
#ifndef CONFIG_SENTENCE_FAMILY_H
#define CONFIG_SENTENCE_FAMILY_H

#include <stdbool.h>

enum sentence_role { BOS, EOS, UNK, SEP, PAD, CLS, MASK, ROLES };

/* Tokens before the pieces: their ids are their places. */
enum { BEFORE_MOST = 5 };

struct sentence_family {
  const char *types, *classes; /* of config.json, and of tokenizer_config.json without "Fast"; with
                                  blanks around each */
  const char *role[ROLES];     /* the tokens if no file names others; NULL: none */
  /* One text, and a pair: 1 and 2 are the texts, C cls, S sep, E eos, L the source language; b bos,
   * if add_bos_token is not false, e eos, if add_eos_token is true. */
  const char *single, *pair;
  bool typed;                      /* whether the second text has type 1 */
  bool strips;                     /* whether blanks before the mask token belong to it */
  const char *before[BEFORE_MOST]; /* fairseq's dictionary: these come first, */
  int offset;                      /* and the ids of other pieces are their places plus this */
  bool listed;                     /* whether vocab.json has the ids of pieces */
  const char *languages; /* codes, a blank after each; their ids follow all others in this order */
  const char *other;     /* the list if language_codes is "wmt21"; NULL: the same */
  const char *language;  /* of a source, if src_lang does not say */
  const char *around;    /* of a code in its token */
  int extra;             /* how many <extra_id_N>, if extra_ids does not say */
  bool lowers;           /* whether texts are lowercased, unless do_lower_case says false */
  bool plain; /* whether `` and '' become ", accents are removed unless keep_accents says true, and
                 pieces that end in a digit and a comma have lower scores */
};

/* The row of a class of tokenizers, or, if there is none or it may be of any family, of a
 * model_type; each may be NULL. NULL: no row is. */
const struct sentence_family *sentence_family_find(const char *class, const char *type);

#endif
