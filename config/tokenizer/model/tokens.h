/* tokens: a list of tokens that grows. Its memory is an arena's. */
#ifndef CONFIG_TOKENS_H
#define CONFIG_TOKENS_H

#include <stdint.h>

#include "core/base/arena.h"

struct token {
  int32_t id;
  uint32_t begin, end; /* bytes of the original text that it came from, if they were asked for;
                          empty where it came from none */
  uint8_t text;        /* 0 or 1: of a pair, which text that is */
  uint8_t type;        /* token_type */
  bool special;        /* put around the texts, or in them as such */
};

struct tokens {
  struct token *token;
  size_t count, room;
  struct arena *arena;
  struct error *e;
};

static inline void tokens_init(struct tokens *t, struct arena *a, struct error *e) {
  *t = (struct tokens){.arena = a, .e = e};
}

/* Room for so many more. Returns the status that the list's error holds. */
enum status tokens_reserve(struct tokens *t, size_t more);

static inline void tokens_add(struct tokens *t, struct token token) {
  if (t->count < t->room || tokens_reserve(t, 1) == STATUS_OK) t->token[t->count++] = token;
}

#endif
