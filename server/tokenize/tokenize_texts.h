/* tokenize_texts: tokenizes the texts of a request. */
#ifndef SERVER_TOKENIZE_TEXTS_H
#define SERVER_TOKENIZE_TEXTS_H

#include "config/tokenizer/tokenizer.h"
#include "server/json/texts.h"

/* The kinds of items: texts, and queries to them. */
enum { TOKENIZE_OF_TEXT, TOKENIZE_OF_QUERY, TOKENIZE_KINDS };

/* How items of a kind become tokens. */
struct tokenize_form {
  struct tokenizer_text prompt; /* put before the first text */
  size_t longest;               /* tokens that an item is truncated to; 0: it is not */
  bool marked;                  /* whether this token follows the first one: */
  int32_t marker;
  size_t filled;  /* a shorter item is padded to so many tokens; 0: it is not */
  int32_t filler; /* with this one */
};

/* Options for all texts of a request. */
struct tokenize_ask {
  struct tokenizer_options
      of_each; /* options for each item; `first_again`, `longest` are ignored */
  struct tokenize_form form[TOKENIZE_KINDS];
  bool counts_prompts; /* whether the tokens of prompts are counted */
  size_t most_tokens;  /* most tokens of an item; 0: any number */
  size_t most_pairs;   /* most pairs of tokens of one item, counted over all items */
};

/* Tokens of texts; all memory is the request's arena's. */
struct tokenize_texts {
  const struct tokenizer *tokenizer;
  const struct texts *texts;
  struct tokens tokens; /* tokens of all items. Their offsets are in the texts as they were sent:
                           tokens of a prompt are empty */
  size_t *first;        /* [items + 1] the first token of each item */
  size_t *own;          /* [items] tokens of each without padding */
  size_t prompt_tokens[TOKENIZE_KINDS]; /* with special tokens before them; 0: not counted */
  bool too_many_pairs;                  /* more than `most_pairs` */
  uint64_t ns;                          /* duration */
};

static inline unsigned tokenize_kind_of(const struct texts *t, size_t item) {
  return item + t->queries < t->items ? TOKENIZE_OF_TEXT : TOKENIZE_OF_QUERY;
}

/* Checks that texts truncated to `said` tokens have room for the special tokens. 0: no truncation.
 * Returns the status of `e`. */
enum status tokenize_texts_check(const struct tokenizer *t, const struct texts *texts,
                                 const struct tokenize_ask *ask, size_t said, struct error *e);

/* Tokenizes all texts. Those after the first item with too many tokens or pairs get none: the
 * caller rejects the request. Fails as tokenizer_encode does, at "/text/3" if the error is about
 * one text. */
enum status tokenize_texts(struct tokenize_texts *d, const struct tokenizer *t,
                           const struct texts *texts, const struct tokenize_ask *ask,
                           struct arena *a, struct error *e);

#endif
