/* loop: the variable `loop` of a for block. */
#include "config/template/call/loop.h"

#include <string.h>

struct value loop_next(struct bounds *b, struct loop *l) {
  const struct value item = l->peeked ? l->after : iterate_next(b, l->iterator);
  l->peeked = false;
  if (!item.kind) return item;
  l->index0++;
  l->before = l->current;
  return l->current = item;
}

static bool peek(struct bounds *b, struct loop *l) {
  if (!l->peeked) l->after = iterate_next(b, l->iterator);
  l->peeked = !b->e->status;
  return l->peeked;
}

/* Items without a length are read to their end, to be counted. */
static bool find_length(struct bounds *b, struct loop *l) {
  size_t length;
  if (l->length >= 0) return true;
  if (value_length(b, l->iterated, &length)) return l->length = (int64_t)length, true;
  if (b->e->status) return false;
  const struct value rest = iterate_list(b, l->iterator, VALUE_LIST);
  if (!rest.kind) return false;
  l->length = (int64_t)rest.list->count + l->index0 + 1 + (l->peeked && l->after.kind);
  l->iterator = iterate_value(b, rest);
  return l->iterator != NULL;
}

enum loop_word {
  INDEX,
  INDEX0,
  FIRST,
  DEPTH,
  DEPTH0,
  PREVITEM,
  LAST,
  NEXTITEM,
  LENGTH,
  REVINDEX,
  REVINDEX0,
  WORDS
};

struct value loop_attribute(struct bounds *b, struct loop *l, struct value name, bool *found) {
  static const char *const words[] = {"index",  "index0",   "first",    "depth",
                                      "depth0", "previtem", "last",     "nextitem",
                                      "length", "revindex", "revindex0"};
  int word = 0;
  while (word < WORDS && strcmp(words[word], name.text) != 0) word++;
  *found = word < WORDS;
  if (!*found) return VALUE_FAILED;
  if (word >= LENGTH && !find_length(b, l)) return VALUE_FAILED;
  if ((word == LAST || word == NEXTITEM) && !peek(b, l)) return VALUE_FAILED;
  switch ((enum loop_word)word) {
  case INDEX:
    return value_integer(l->index0 + 1);
  case INDEX0:
    return value_integer(l->index0);
  case FIRST:
    return value_bool(l->index0 == 0);
  case DEPTH:
    return value_integer(l->depth0 + 1);
  case DEPTH0:
    return value_integer(l->depth0);
  case PREVITEM:
    return l->index0 == 0 ? value_hint(b, "there is no previous item") : l->before;
  case LAST:
    return value_bool(!l->after.kind);
  case NEXTITEM:
    return l->after.kind ? l->after : value_hint(b, "there is no next item");
  case LENGTH:
    return value_integer(l->length);
  case REVINDEX:
    return value_integer(l->length - l->index0);
  default:
    return value_integer(l->length - l->index0 - 1);
  }
}
