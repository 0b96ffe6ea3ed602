/* utter: the text of tokens that come one after the other, in whole characters.
 *
 * What was uttered is not taken back: bytes wait until they are a character, and what may become
 * the beginning of a text that ends it all waits until it is known. All that was uttered is the
 * text that the tokens have together behind those before them. An utterance belongs to one thread
 * at a time. */
#ifndef CONFIG_UTTER_H
#define CONFIG_UTTER_H

#include "config/tokenizer/tokenizer.h"

enum { UTTER_BEFORE = 8 }; /* tokens before the first one that are looked at, at most */

/* What several utterances have in common. */
struct utter_terms {
  const struct tokenizer *tokenizer;
  const struct tokenizer_text *stop; /* [stops] texts that end it, and are no part of it */
  size_t stops;
  struct budget *budget; /* of what is needed for a moment */
};

struct utterance {
  const struct utter_terms *terms;
  const int32_t *before; /* [befores] */
  size_t befores;
  char *text; /* [room] */
  size_t room;
  size_t length;   /* of the text that is known */
  size_t said;     /* of that, what no text that ends it may begin in */
  size_t stopped;  /* which of these has ended it, and 1; 0: none has */
  size_t first;    /* of the tokens before and after: the first one that is spelled again, */
  size_t known;    /* and how many bytes of its text and what follows are known */
  size_t searched; /* from there on texts that end it are looked for */
  bool begun, steady;
};

/* Bytes of text that so many tokens may become; SIZE_MAX: there is no telling. */
size_t utter_room(const struct tokenizer *t, size_t tokens);

/* `before`, the tokens before the first one, of which there may be more than are looked at, stays.
 * `text` has so much room. */
void utter_init(struct utterance *u, const struct utter_terms *terms, const int32_t *before,
                size_t befores, char *text, size_t room);

/* There are `count` tokens now: no fewer than before. `over`: there will be no more. Where
 * `may_end` is false, no text that ends it is looked for in what they add. Returns the status of
 * `e`: no memory, or a decoder's pattern that takes too long. */
enum status utter_on(struct utterance *u, const int32_t *token, size_t count, bool over,
                     bool may_end, struct error *e);

#endif
