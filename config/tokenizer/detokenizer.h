/* detokenizer: the text of tokens that are generated one after the other, in complete characters.
 *
 * The text only grows: the bytes of a character are held back until it is complete, and so is the
 * end of the text while it may be the beginning of a stop sequence. In the end it is the text that
 * all tokens have together, after the text of the tokens before them. A detokenizer belongs to one
 * thread at a time. */
#ifndef CONFIG_DETOKENIZER_H
#define CONFIG_DETOKENIZER_H

#include "config/tokenizer/tokenizer.h"

enum { DETOKENIZER_BEFORE = 8 }; /* tokens before the first one that are read, at most */

/* Several detokenizers may share these. */
struct detokenizer_terms {
  const struct tokenizer *tokenizer;
  const struct tokenizer_text *stop; /* [stops] stop sequences, which are no part of the text */
  size_t stops;
};

struct detokenizer {
  const struct detokenizer_terms *terms;
  char *text; /* [room] */
  size_t room;
  size_t length;  /* bytes of the text that is known */
  size_t said;    /* bytes before the first one that a stop sequence may begin with */
  size_t stopped; /* the number of the stop sequence that ended it, from 1 on; 0: none did */

  /* The next text is decoded from the tokens of the window on; its first `known` bytes are old. No
   * stop sequence begins before byte `searched` of the text. */
  int32_t *window; /* [count] tokens that have a text */
  size_t count, known, searched;
  size_t closed; /* how many tokens of the window have a known text */
  size_t before; /* how many tokens it began with, for a decoder that is not steady */
  size_t heard;  /* how many tokens it was given in all */
  bool steady;
  size_t counted, characters; /* `characters` are in the first `counted` bytes of the text */
};

/* The most bytes of text that `tokens` tokens become; SIZE_MAX: there is no bound. */
size_t detokenizer_room(const struct tokenizer *t, size_t tokens);

/* Begins the text of at most `most` tokens, after the tokens `before`, of which the last
 * DETOKENIZER_BEFORE are read. Its memory is the arena's. Returns the status of `e`: no memory, or
 * as detokenizer_add. */
enum status detokenizer_init(struct detokenizer *u, const struct detokenizer_terms *terms,
                             const int32_t *before, size_t befores, size_t most, struct arena *a,
                             struct error *e);

/* Appends the text of the tokens from the last call's `count` on. `over`: these are all. With
 * `may_end` false, a stop sequence that begins in what they add does not end the text. Returns the
 * status of `e`: no memory, or a pattern of the decoder takes too long. */
enum status detokenizer_add(struct detokenizer *u, const int32_t *token, size_t count, bool over,
                            bool may_end, struct error *e);

/* The bytes that each of `count` tokens would add as the next token, perhaps of an incomplete
 * character, in the arena, at most detokenizer_ahead_room each; and how many characters come before
 * it. A token without a text has its piece instead, and so has any token if later pieces change
 * earlier text; .bytes NULL: no token has this id. Returns the status of `e`, as detokenizer_add.
 */
enum status detokenizer_ahead(struct detokenizer *u, const int32_t *token, size_t count,
                              struct tokenizer_text *out, size_t *characters, struct arena *a,
                              struct error *e);
size_t detokenizer_ahead_room(const struct tokenizer *t);

#endif
