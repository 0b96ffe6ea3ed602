/* detokenizer: the text of tokens that are chosen one after the other, in whole characters.
 *
 * An detokenizer only grows: the bytes of a character are held back until it is complete, and so
 * is the end of the text while it may be the beginning of a stop. In the end it is the text that
 * all tokens have together, behind the text of the tokens before them. An detokenizer belongs to
 * one thread at a time. */
#ifndef CONFIG_DETOKENIZER_H
#define CONFIG_DETOKENIZER_H

#include "config/tokenizer/tokenizer.h"

enum { DETOKENIZER_BEFORE = 8 }; /* tokens before the first one that are looked at, at most */

/* What several detokenizer have in common. */
struct detokenizer_terms {
  const struct tokenizer *tokenizer;
  const struct tokenizer_text *stop; /* [stops] texts that end it, and are no part of it */
  size_t stops;
};

struct detokenizer {
  const struct detokenizer_terms *terms;
  char *text; /* [room] */
  size_t room;
  size_t length;  /* of the text that is known */
  size_t said;    /* of these, all before the first byte with which a stop may begin */
  size_t stopped; /* the number of the stop that ended it, from 1 on; 0: none did */

  /* The next text is spelled from the tokens of the window on; its first `known` bytes are old. No
   * stop begins before byte `searched` of the text. */
  int32_t *window; /* [count] tokens that have a text */
  size_t count, known, searched;
  size_t closed; /* tokens of the window whose text is known */
  size_t before; /* tokens that it began with, of a decoder that is not steady */
  size_t heard;  /* tokens in all */
  bool steady;
  size_t counted, characters; /* so many bytes of the text are so many characters */
};

/* The most bytes of text that so many tokens become; SIZE_MAX: there is no bound. */
size_t detokenizer_room(const struct tokenizer *t, size_t tokens);

/* Begins an detokenizer of at most `most` tokens, behind the tokens `before`, of which the last
 * DETOKENIZER_BEFORE are looked at. What it needs is the arena's. Fails without memory, or as
 * detokenizer_add does. */
enum status detokenizer_init(struct detokenizer *u, const struct detokenizer_terms *terms,
                             const int32_t *before, size_t befores, size_t most, struct arena *a,
                             struct error *e);

/* Appends the text of the tokens from the last call's `count` on. `over`: these are all. With
 * `may_end` false, a stop that begins in what they add does not end the detokenizer. Returns the
 * status of `e`: no memory, or a decoder's pattern takes too long. */
enum status detokenizer_add(struct detokenizer *u, const int32_t *token, size_t count, bool over,
                            bool may_end, struct error *e);

/* Before a token is heard: what each of so many would add to the text in its place, in the arena,
 * and how many characters there are before it. That are bytes, maybe of a character that is not
 * whole. Of a token that has no text it is its piece, and so it is where later pieces change what
 * stood before; .bytes NULL: no token has this id. At most detokenizer_ahead_room bytes each.
 * Returns the status of `e`, as detokenizer_add. */
enum status detokenizer_ahead(struct detokenizer *u, const int32_t *token, size_t count,
                              struct tokenizer_text *out, size_t *characters, struct arena *a,
                              struct error *e);
size_t detokenizer_ahead_room(const struct tokenizer *t);

#endif
