/* tokens: a growing list of tokens in an arena. Failures are kept in `e`. */
#ifndef CONFIG_TOKENS_H
#define CONFIG_TOKENS_H

#include <stdint.h>

#include "core/base/arena.h"

struct token {
  int32_t id;
  uint32_t begin, end; /* its place in the original text, in bytes, if traced; empty if it came from
                          no bytes */
  uint8_t text;        /* which text of a pair: 0 or 1 */
  uint8_t type;        /* token_type */
  bool special;        /* added around the texts, or found in them as a special token */
};

/* Whether the token was added around the texts. */
static inline bool token_is_added(const struct token *t) {
  return t->special && t->begin == t->end;
}

struct tokens {
  struct token *token;
  size_t count, room;
  struct arena *arena;
  struct error *e;
};

static inline void tokens_init(struct tokens *t, struct arena *a, struct error *e) {
  *t = (struct tokens){.arena = a, .e = e};
}

/* Room for `more` tokens. Returns the status of `e`. */
enum status tokens_reserve(struct tokens *t, size_t more);

static inline void tokens_add(struct tokens *t, struct token token) {
  if (t->count < t->room || tokens_reserve(t, 1) == STATUS_OK) t->token[t->count++] = token;
}

#endif
