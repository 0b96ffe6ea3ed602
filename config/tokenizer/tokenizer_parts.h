/* tokenizer_parts: the parts of a tokenizer. Private to tokenizer. */
#ifndef CONFIG_TOKENIZER_PARTS_H
#define CONFIG_TOKENIZER_PARTS_H

#include "config/tokenizer/added.h"
#include "config/tokenizer/postprocessor/postprocessor.h"
#include "config/tokenizer/pretokenizer/pretokenizer.h"
#include "config/tokenizer/tokenizer.h"

/* Which of two texts is truncated: the longer one first, the first or the second alone. */
enum tokenizer_strategy { TRUNCATE_LONGEST, TRUNCATE_FIRST, TRUNCATE_SECOND };

struct tokenizer {
  struct added added;
  struct normalizer *normalizer;     /* NULL: texts are not changed */
  struct pretokenizer *pretokenizer; /* NULL: a text is one word */
  struct subword_model *subword_model;
  struct postprocessor *postprocessor;
  struct token_decoder *decoder;
  bool bare;                        /* no special tokens are added */
  bool raw;                         /* whether words are bytes, see subword_new */
  size_t truncation;                /* tokens; 0: none */
  enum tokenizer_strategy strategy; /* of the truncation of two texts */
  bool left;                        /* whether texts are truncated at the beginning */
  size_t piece_max;                 /* see tokenizer_piece_max */
  size_t text_max;                  /* see tokenizer_text_max */
};

/* The piece of a token as it is stored: as bytes if it is .raw. An added token's is its content, or
 * if `decoded` what it adds to a text. False: no token has this id. */
bool tokenizer_find_piece(const struct tokenizer *t, int64_t id, bool decoded,
                          struct decoder_piece *out);

#endif
