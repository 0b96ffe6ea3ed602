/* tokenizer_parts: what a tokenizer is made of. Private to tokenizer. */
#ifndef CONFIG_TOKENIZER_PARTS_H
#define CONFIG_TOKENIZER_PARTS_H

#include "config/tokenizer/added.h"
#include "config/tokenizer/postprocessor/postprocessor.h"
#include "config/tokenizer/pretokenizer/pretokenizer.h"
#include "config/tokenizer/tokenizer.h"

enum tokenizer_strategy { CUT_LONGEST, CUT_FIRST, CUT_SECOND };

struct tokenizer {
  struct added added;
  struct normalizer *normalizer;     /* NULL: texts stay as they are */
  struct pretokenizer *pretokenizer; /* NULL: a text is one word */
  struct subword_model *subword_model;
  struct postprocessor *postprocessor;
  struct token_decoder *decoder;
  bool raw;                      /* words are bytes as they are, see subword_new */
  size_t longest;                /* "truncation"; 0: none */
  enum tokenizer_strategy where; /* which of two texts is cut */
  bool left;                     /* at its beginning */
  size_t piece_longest;          /* see there */
  size_t spelt_room;             /* see there */
};

/* The piece of a token as it is kept: bytes that the file writes as characters, if `raw`. Of an
 * added token what the file says that it is, or `spelled`, what is put together with others. False:
 * no token has this id. */
bool tokenizer_find_piece(const struct tokenizer *t, int64_t id, bool spelled,
                          struct decoder_piece *out);

/* --- tokenizer_trim --- */

/* Takes the blanks at either end of a token out of its place in `text`, as the frame says
 * (postprocessor_trims); `number` is that of the token. */
void tokenizer_trim(const struct tokenizer *t, const char *text, size_t number,
                    struct token *token);

/* Of an added token, of which these bytes were found: blanks beside it may belong to it. */
void tokenizer_trim_added(const struct tokenizer *t, const char *text, const char *bytes,
                          size_t length, size_t number, struct token *token);

/* --- tokenizer --- */

/* Cuts the tokens of a text, or of two, to so many together. */
void tokenizer_truncate(const struct tokenizer *t, struct tokens *first, struct tokens *second,
                        size_t most);

/* Finds how long pieces and their texts may be: the last step of making a tokenizer. */
void tokenizer_find_longest(struct tokenizer *t);

#endif
