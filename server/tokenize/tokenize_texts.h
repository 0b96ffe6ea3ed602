/* tokenize_texts: the texts of a request become tokens. */
#ifndef SERVER_TOKENIZE_TEXTS_H
#define SERVER_TOKENIZE_TEXTS_H

#include "config/tokenizer/tokenizer.h"
#include "server/body/texts.h"

/* What texts have become: all in the request's arena. */
struct tokenize_texts {
  const struct tokenizer *tokenizer;
  const struct texts *texts;
  struct tokens tokens; /* of all items, one behind the other */
  size_t *first;        /* [items + 1] */
  uint64_t ns;          /* that this took */
};

/* Is there room, in as many tokens as a request says that texts are cut to, for those that stand
 * around one? 0: it says no number. */
enum status tokenize_texts_check(const struct tokenizer *t, const struct texts *texts,
                                 const struct tokenizer_ask *ask, size_t said, struct error *e);

/* Cuts all texts. Fails as tokenizer_cut does, at "/text/3" where it is about one of them. */
enum status tokenize_texts(struct tokenize_texts *d, const struct tokenizer *t,
                           const struct texts *texts, const struct tokenizer_ask *ask,
                           struct arena *a, struct error *e);

#endif
