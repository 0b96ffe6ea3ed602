/* added: tokens that are found in a text as they are, before it is cut: the "added_tokens" of a
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
  char *content;
  size_t length;
  char *changed; /* what normalizing makes of it, which is looked for, and is its part of a text
                    that is put together; NULL: the same */
  size_t changed_length;
  int32_t id;
  bool single_word; /* it is found between two words alone */
  bool strips[2];   /* blanks before it, and behind it, belong to it */
  bool normalized;  /* it is looked for, changed as texts are, in changed texts */
  bool special;
};

struct added {
  struct added_token *token; /* [count] */
  size_t count;
  struct trie trie[2]; /* of those that are looked for in a text as it came, and as it is changed:
                          places in the list */
  bool begins[2][256]; /* one of these begins with this byte */
  int32_t *by_id;      /* [ids] the place of a token of this id; -1: none has it */
  size_t ids;
};

/* Of a list, or NULL: none. Texts are changed by `n`, which may be NULL. A token that is a piece of
 * the subword_model has the id of that, whatever the list says, as in the library. STATUS_CONFIG
 * that names what is at fault, or STATUS_OUT_OF_MEMORY. */
enum status added_init(struct added *a, const json_t *json, const struct normalizer *n,
                       const struct subword_model *l, struct error *e);
void added_done(struct added *a);
size_t added_bytes(const struct added *a); /* of memory */

/* The token of an id; NULL: it is none of these. */
static inline const struct added_token *added_of(const struct added *a, int64_t id) {
  if (id < 0 || (uint64_t)id >= a->ids || a->by_id[id] < 0) return NULL;
  return &a->token[a->by_id[id]];
}

/* A search through a text. */
struct added_search {
  const struct added *added;
  bool changed; /* the text is changed already */
  const char *text;
  size_t length;
  size_t at;         /* where it goes on */
  size_t done;       /* what is before belongs to tokens, or was told */
  size_t begin, end; /* of the token that was found last */
  const struct added_token *token;
  struct patience *patience; /* of who waits; or NULL */
  struct error *e;           /* says where nobody waits any more */
  size_t steps;              /* since it was asked whether anybody waits */
};

/* The next token, from the left, of several in one place the longest; false: there is none, or `e`
 * says that nobody waits any more. */
bool added_next(struct added_search *s);

#endif
