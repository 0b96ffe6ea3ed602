/* texts: the texts of a request's field as they were read: one text, a list of texts, or a list of
 * pairs. All memory is the request's arena's. */
#ifndef SERVER_TEXTS_H
#define SERVER_TEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"

/* The JSON that a field of texts may have. */
enum texts_form {
  TEXTS_OR_PAIRS,  /* "…", ["…", …] or [["…","…"], …] */
  TEXTS_ALONE,     /* "…" or ["…", …] */
  TEXTS_OF_A_LIST, /* ["…", …], in which {"text":"…"} is a text as well */
  TEXTS_MIXED      /* as TEXTS_OR_PAIRS; pairs may lack their second text */
};

enum { TEXTS_PAIR = 2 };

struct texts_part {
  size_t at, length; /* in texts.bytes; `at` is TEXTS_NONE for a missing second text */
};
#define TEXTS_NONE SIZE_MAX

struct texts {
  char *bytes;             /* UTF-8 of all texts, one after the other */
  struct texts_part *part; /* [items × of_item] */
  size_t items;
  size_t queries;   /* how many of the last items are queries to the others */
  unsigned of_item; /* 1, or 2 for pairs */
  bool alone;       /* one text, not in a list */
  size_t length;    /* bytes of all texts */
};

/* Returns how many texts the item has. */
static inline unsigned texts_of(const struct texts *t, size_t item) {
  return t->part[(item + 1) * t->of_item - 1].at == TEXTS_NONE ? 1 : t->of_item;
}

#endif
