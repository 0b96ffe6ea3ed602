/* texts: a field of a request that holds texts, as it was read: one, a list of them, or a list of
 * pairs. All is the request's arena's. */
#ifndef SERVER_TEXTS_H
#define SERVER_TEXTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/run/arena.h"

struct texts_part {
  size_t at, length; /* in the bytes of all */
};

struct texts {
  char *bytes;             /* UTF-8 of all, one behind the other */
  struct texts_part *part; /* [items × of_item] */
  size_t items;
  unsigned of_item; /* 1, or 2 of pairs */
  bool alone;       /* one text, which is no list */
  size_t length;    /* of all bytes */
};

#endif
