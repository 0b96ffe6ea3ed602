/* tokenize_texts: the texts of a request become tokens. */
#ifndef SERVER_TOKENIZE_TEXTS_H
#define SERVER_TOKENIZE_TEXTS_H

#include "config/tokenizer/tokenizer.h"
#include "server/json/texts.h"

/* Which prompt stands in front of an item: that of texts, or of those that are queries to them. */
enum { TOKENIZE_OF_TEXT, TOKENIZE_OF_QUERY, TOKENIZE_PROMPTS };

/* A request's texts are asked this together, beside what each is asked. */
struct tokenize_ask {
  struct tokenizer_options of_each;               /* its `first_again` is set here */
  struct tokenizer_text prompt[TOKENIZE_PROMPTS]; /* in front of the first text of an item */
  bool counts_prompts;                            /* how many tokens they take is wanted */
  size_t most_tokens;                             /* of an item; 0: any number */
  size_t most_pairs; /* of tokens of one item, counted over all items */
};

/* The tokens of texts, all in the request's arena. */
struct tokenize_texts {
  const struct tokenizer *tokenizer;
  const struct texts *texts;
  struct tokens tokens; /* of all items, one behind the other. Their places are in the texts as they
                           came: those of a prompt are empty */
  size_t *first;        /* [items + 1] */
  size_t prompt_tokens[TOKENIZE_PROMPTS]; /* with those that stand before; 0: not asked */
  bool too_many_pairs;                    /* more than `most_pairs` */
  uint64_t ns;                            /* that this took */
};

static inline unsigned tokenize_prompt_of(const struct texts *t, size_t item) {
  return item + t->queries < t->items ? TOKENIZE_OF_TEXT : TOKENIZE_OF_QUERY;
}

/* Is there room, in as many tokens as a request says that texts are cut to, for those that stand
 * around one? 0: it says no number. */
enum status tokenize_texts_check(const struct tokenizer *t, const struct texts *texts,
                                 const struct tokenizer_options *ask, size_t said, struct error *e);

/* Cuts all texts; those behind the first item with too many tokens or pairs get none, since the
 * request is refused for it. Fails as tokenizer_encode does, at "/text/3" where it is about one of
 * them. */
enum status tokenize_texts(struct tokenize_texts *d, const struct tokenizer *t,
                           const struct texts *texts, const struct tokenize_ask *ask,
                           struct arena *a, struct error *e);

#endif
