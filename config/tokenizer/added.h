/* added: tokens that are found in a text before it is cut into words: the "added_tokens" of a
 * tokenizer.json.
 *
 * Immutable; any number of threads may search for them at once. */
#ifndef CONFIG_ADDED_H
#define CONFIG_ADDED_H

#include "config/tokenizer/model/subword.h"
#include "config/tokenizer/model/trie.h"
#include "config/tokenizer/normalizer/normalizer.h"
#include "core/base/patience.h"

struct added_token {
  char *content; /* [length] owned, as is `changed` */
  size_t length;
  char *changed; /* the normalized content, which is searched for, and which the token adds to a
                    decoded text; NULL: the content */
  size_t changed_length;
  int32_t id;
  bool single_word; /* whether it is found between other words only */
  bool strips[2];   /* whether blanks before it, and after it, belong to it */
  bool normalized;  /* whether it is searched for in normalized texts, normalized as well */
  bool special;
};

struct added {
  struct added_token *token; /* [count] */
  size_t count;
  struct trie trie[2]; /* of the tokens that are searched for in original, and in normalized texts:
                          their places in the list */
  bool begins[2][256]; /* whether one of these begins with this byte */
  int32_t *by_id;      /* [ids] the place of the token of each id; -1: none */
  size_t ids;          /* the largest id + 1 */
};

/* From a list, or NULL: none. Texts are normalized by `n`, which may be NULL. Without `searched`
 * the tokens are found in no text. A token that is a piece of the subword model has its id,
 * whatever the list says, as in the library. Returns the status of `e`: STATUS_CONFIG that names
 * what is at fault, or STATUS_OUT_OF_MEMORY; `a` is to be freed by added_done in any case. */
enum status added_init(struct added *a, const json_t *json, const struct normalizer *n,
                       const struct subword_model *m, bool searched, struct error *e);
void added_done(struct added *a);
size_t added_bytes(const struct added *a); /* of memory */

/* The added token of an id; NULL: none. */
static inline const struct added_token *added_of(const struct added *a, int64_t id) {
  if (id < 0 || (uint64_t)id >= a->ids || a->by_id[id] < 0) return NULL;
  return &a->token[a->by_id[id]];
}

/* A search through a text. */
struct added_search {
  const struct added *added;
  bool changed; /* whether the text is normalized */
  const char *text;
  size_t length;
  size_t at;         /* where the search continues */
  size_t done;       /* the end of the last token, with its blanks */
  size_t begin, end; /* of the last token */
  const struct added_token *token;
  struct patience *patience; /* of the caller; or NULL */
  struct error *e;           /* says that the caller's patience has ended */
  size_t steps;              /* since it was asked last */
};

/* Finds the next token from the left, of several at one place the longest; false: there is none, or
 * `e` says why the search has ended. */
bool added_next(struct added_search *s);

#endif
