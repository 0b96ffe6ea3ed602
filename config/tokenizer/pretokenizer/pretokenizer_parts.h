/* pretokenizer_parts: the steps of a pre-tokenizer.
 *
 * A step goes over the pieces of a passage. One that splits classifies each character, or each
 * match of a pattern: the classes say where a piece ends and the next begins. One that changes the
 * text writes all pieces anew. Failures are kept in the passage's error. */
#ifndef CONFIG_PRETOKENIZER_PARTS_H
#define CONFIG_PRETOKENIZER_PARTS_H

#include "config/tokenizer/normalizer/passage.h"
#include "config/tokenizer/pattern/pattern.h"
#include "config/tokenizer/pretokenizer/metaspace.h"

/* Which piece a stretch of the text belongs to. */
enum split_class {
  SPLIT_DROP,      /* none */
  SPLIT_ALONE,     /* a piece of its own */
  SPLIT_RUN,       /* one with its neighbors of the same class */
  SPLIT_OTHER_RUN, /* the same */
  SPLIT_BEGIN,     /* one with those after it that are SPLIT_RUN or SPLIT_END */
  SPLIT_END        /* one with those before it */
};

/* SplitDelimiterBehavior of the library. */
enum split_behavior {
  SPLIT_REMOVED,
  SPLIT_ISOLATED,
  SPLIT_MERGED_WITH_PREVIOUS,
  SPLIT_MERGED_WITH_NEXT,
  SPLIT_CONTIGUOUS
};

/* Which characters are delimiters. */
enum pretokenizer_chars {
  SPLIT_SPACES,
  SPLIT_PUNCTUATION,
  SPLIT_NUMBERS,
  SPLIT_WORDS,
  SPLIT_BERT,
  SPLIT_ONE
};

struct pretokenizer_step {
  void (*apply)(const struct pretokenizer_step *s, struct passage *p);
  enum split_behavior behavior;
  /* By characters. */
  enum pretokenizer_chars chars;
  uint32_t character;       /* SPLIT_ONE */
  unsigned char ascii[128]; /* classes */
  size_t length;            /* characters of a piece */
  /* By a pattern. */
  struct pattern *pattern; /* owned */
  bool invert;             /* whether matches are pieces and what is between them delimiters */
  /* Another text. */
  struct metaspace metaspace;
};

/* Splits by the classes of characters. Initialized by pretokenizer_chars_init; `character` is that
 * of SPLIT_ONE. */
void pretokenizer_chars_init(struct pretokenizer_step *s, enum pretokenizer_chars chars,
                             uint32_t character, enum split_behavior behavior);
void pretokenizer_chars_apply(const struct pretokenizer_step *s, struct passage *p);

/* Splits after every `length` characters. */
void pretokenizer_length_apply(const struct pretokenizer_step *s, struct passage *p);

void pretokenizer_pattern_apply(const struct pretokenizer_step *s, struct passage *p);

/* Replaces blanks, and prepends the replacement to pieces. */
void pretokenizer_metaspace_apply(const struct pretokenizer_step *s, struct passage *p);

/* Prepends a blank to pieces without one. */
void pretokenizer_prefix_apply(const struct pretokenizer_step *s, struct passage *p);

/* Replaces each byte by its character (byte_level.h). */
void pretokenizer_bytes_apply(const struct pretokenizer_step *s, struct passage *p);

#endif
