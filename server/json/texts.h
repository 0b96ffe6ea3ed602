/* texts: a field of a request that holds texts, as it was read: one, a list of them, or a list of
 * pairs. All is the request's arena's. */
#ifndef SERVER_TEXTS_H
#define SERVER_TEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"

/* How a field may hold texts. */
enum texts_form {
  TEXTS_OR_PAIRS,  /* "…", ["…", …] or [["…","…"], …] */
  TEXTS_ALONE,     /* the first two */
  TEXTS_OF_A_LIST, /* the second alone, in which {"text":"…"} is a text, too */
  TEXTS_MIXED      /* all three, and pairs may lack their second text */
};

enum { TEXTS_PAIR = 2 };

struct texts_part {
  size_t at, length; /* in the bytes of all; `at` is TEXTS_NONE of a second text that is missing */
};
#define TEXTS_NONE SIZE_MAX

struct texts {
  char *bytes;             /* UTF-8 of all, one behind the other */
  struct texts_part *part; /* [items × of_item] */
  size_t items;
  size_t queries;   /* so many of the last items are queries to the others */
  unsigned of_item; /* 1, or 2 of pairs */
  bool alone;       /* one text, which is no list */
  size_t length;    /* of all bytes */
};

/* The texts of an item that are there. */
static inline unsigned texts_of(const struct texts *t, size_t item) {
  return t->part[(item + 1) * t->of_item - 1].at == TEXTS_NONE ? 1 : t->of_item;
}

#endif
