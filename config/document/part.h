/* part: a part of a tokenizer.json: an object with a "type", or a "Sequence" of such objects, which
 * may nest. A sequence is read as its parts one after the other. */
#ifndef CONFIG_PART_H
#define CONFIG_PART_H

#include "config/document/member.h"

struct part_kind {
  struct member_type type;
  /* Reads a part of this type, whose members are known, into `to`; records a failure in `e`, as
   * member.h does. NULL: it is the sequence. */
  void (*read)(void *to, const json_t *json, struct error *e);
};

struct part_kinds {
  const struct part_kind *kind; /* [count] one of them is the sequence */
  size_t count;                 /* at most PART_KINDS_MAX */
  const char *list;             /* the sequence's member that holds the parts */
  bool unnamed;                 /* messages about a part of a sequence begin with `list` */
};
enum { PART_KINDS_MAX = 16 };

/* Reads a part and all parts within it. STATUS_CONFIG with a detail that leads to the member at
 * fault ("Sequence: decoders, 2: Strip: content: needs ..."), or another failure of a `read`. */
enum status part_read(const struct part_kinds *kinds, const json_t *json, void *to,
                      struct error *e);

/* A growing array of what was read. Its owner frees `item`. */
struct part_list {
  void *item; /* [count] */
  size_t count, room;
};

/* A new item of `size` zero bytes at the end. It moves the others. NULL: no memory, as `e` says. */
void *part_list_add(struct part_list *l, size_t size, struct error *e);

#endif
