/* utter: the text of tokens that are chosen one after the other, in whole characters.
 *
 * An utterance only grows: the bytes of a character are held back until it is complete, and so
 * is the end of the text while it may be the beginning of a stop. In the end it is the text that
 * all tokens have together, behind the text of the tokens before them. An utterance belongs to
 * one thread at a time. */
#ifndef CONFIG_UTTER_H
#define CONFIG_UTTER_H

#include "config/tokenizer/tokenizer.h"

enum { UTTER_BEFORE = 8 }; /* tokens before the first one that are looked at, at most */

/* What several utterances have in common. */
struct utter_terms {
  const struct tokenizer *tokenizer;
  const struct tokenizer_text *stop; /* [stops] texts that end it, and are no part of it */
  size_t stops;
};

struct utterance {
  const struct utter_terms *terms;
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
size_t utter_room(const struct tokenizer *t, size_t tokens);

/* Begins an utterance of at most `most` tokens, behind the tokens `before`, of which the last
 * UTTER_BEFORE are looked at. What it needs is the arena's. Fails without memory, or as utter_on
 * does. */
enum status utter_init(struct utterance *u, const struct utter_terms *terms, const int32_t *before,
                       size_t befores, size_t most, struct arena *a, struct error *e);

/* Appends the text of the tokens from the last call's `count` on. `over`: these are all. With
 * `may_end` false, a stop that begins in what they add does not end the utterance. Returns the
 * status of `e`: no memory, or a decoder's pattern takes too long. */
enum status utter_on(struct utterance *u, const int32_t *token, size_t count, bool over,
                     bool may_end, struct error *e);

/* Before a token is heard: what each of so many would add to the text in its place, in the arena,
 * and how many characters there are before it. That are bytes, maybe of a character that is not
 * whole. Of a token that has no text it is its piece, and so it is where later pieces change what
 * stood before; .bytes NULL: no token has this id. At most utter_ahead_room bytes each. Returns the
 * status of `e`, as utter_on. */
enum status utter_ahead(struct utterance *u, const int32_t *token, size_t count,
                        struct tokenizer_text *out, size_t *characters, struct arena *a,
                        struct error *e);
size_t utter_ahead_room(const struct tokenizer *t);

#endif
