/* pretokenizer_parts: the steps in which a text is cut.
 *
 * A step that cuts goes over the pieces, and over each character of them or each match of a
 * pattern: their classes say where one piece ends and the next begins. A step that changes the text
 * puts down all pieces anew. */
#ifndef CONFIG_PRETOKENIZER_PARTS_H
#define CONFIG_PRETOKENIZER_PARTS_H

#include "config/document/member.h"
#include "config/tokenizer/normalizer/passage.h"
#include "config/tokenizer/pattern/pattern.h"
#include "config/tokenizer/pretokenizer/metaspace.h"

/* What becomes of a stretch of the text. */
enum split_class {
  SPLIT_DROP,      /* it is in no piece */
  SPLIT_ALONE,     /* it is a piece */
  SPLIT_RUN,       /* a piece with all those of the same class around it, */
  SPLIT_OTHER_RUN, /* likewise; */
  SPLIT_BEGIN,     /* with those behind it that are SPLIT_RUN or SPLIT_END, */
  SPLIT_END        /* with those before it */
};

/* In the order of their names, split_behavior_names. */
enum split_behavior {
  SPLIT_REMOVED,
  SPLIT_ISOLATED,
  SPLIT_MERGED_WITH_PREVIOUS,
  SPLIT_MERGED_WITH_NEXT,
  SPLIT_CONTIGUOUS
};
extern const char *const split_behavior_names[];

/* Which characters a step's class is for. */
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
  size_t length;            /* of pieces of so many characters */
  /* By a pattern. */
  struct pattern *pattern; /* its own */
  bool invert;
  /* Another text. */
  struct metaspace metaspace;
};

/* --- steps --- */

/* By the classes of characters. Made ready by pretokenizer_chars_init. */
void pretokenizer_chars_init(struct pretokenizer_step *s, enum pretokenizer_chars chars,
                             enum split_behavior behavior);
void pretokenizer_chars_apply(const struct pretokenizer_step *s, struct passage *p);
void pretokenizer_length_apply(const struct pretokenizer_step *s, struct passage *p);

void pretokenizer_pattern_apply(const struct pretokenizer_step *s, struct passage *p);

/* Blanks become the replacement, which pieces may begin with. */
void pretokenizer_metaspace_apply(const struct pretokenizer_step *s, struct passage *p);

/* Pieces begin with a blank. */
void pretokenizer_prefix_apply(const struct pretokenizer_step *s, struct passage *p);

/* Each byte becomes the character that stands for it. */
void pretokenizer_bytes_apply(const struct pretokenizer_step *s, struct passage *p);

/* --- pieces --- */

/* The piece that is open, if one is. */
struct splitter {
  struct passage *p;
  size_t begin, end;
  bool open;
  enum split_class is;
};

static inline void splitter_close(struct splitter *c) {
  if (c->open) passage_add_piece(c->p, c->begin, c->end);
  c->open = false;
}

static inline void splitter_feed(struct splitter *c, size_t begin, size_t end,
                                 enum split_class is) {
  const bool goes_on = c->open && (is == SPLIT_END || (is == c->is && is != SPLIT_BEGIN));
  if (!goes_on) {
    splitter_close(c);
    c->begin = begin;
    c->is = is == SPLIT_BEGIN ? SPLIT_RUN : is;
  }
  c->end = end;
  c->open = is != SPLIT_DROP;
  if (is == SPLIT_ALONE || is == SPLIT_END) splitter_close(c);
}

#endif
