/* small_text: a name or a small value of a body, collected chunk by chunk until it ends. */
#ifndef SERVER_SMALL_TEXT_H
#define SERVER_SMALL_TEXT_H

#include "core/base/arena.h"
#include "server/json/json_skim.h"
#include "server/json/json_small.h"

struct small_text {
  struct json_skim skim;
  size_t offset; /* of its first byte in the body */
  size_t length, most;
  bool lost;           /* it is longer than `most` bytes, which are kept of it */
  char *text;          /* `own`, or what has grown in the arena */
  size_t room;         /* of `text` */
  struct arena *arena; /* NULL where `most` is JSON_SMALL_MAX */
  char own[JSON_SMALL_MAX];
};

void small_text_begin(struct small_text *t, size_t offset);

/* The same for a text of up to `most` bytes, which are more: what does not fit into `own` is the
 * arena's. */
void small_text_begin_long(struct small_text *t, size_t offset, size_t most, struct arena *a);

/* As json_skim_feed, and overloaded, out-of-memory. Stops where the text is lost, so that a caller
 * who refuses it does so at the same byte however the body is cut. */
size_t small_text_feed(struct small_text *t, const char *text, size_t length, size_t offset,
                       bool *complete, struct error *e);

#endif
