/* small_text: a name or a small value of a body, collected until it ends. */
#include "server/body/small_text.h"

#include <string.h>

#include "core/run/size.h"

void small_text_begin(struct small_text *t, size_t offset) {
  json_skim_begin(&t->skim);
  t->offset = offset;
  t->length = 0;
  t->lost = false;
}

size_t small_text_feed(struct small_text *t, const char *text, size_t length, size_t offset,
                       bool *complete, struct error *e) {
  const size_t room = sizeof t->text - t->length;
  if (!t->lost) length = size_min(length, room + 1);
  const size_t used = json_skim_feed(&t->skim, text, length, offset, complete, e);
  if (t->lost) return used;
  t->lost = used > room;
  memcpy(t->text + t->length, text, size_min(used, room));
  t->length += size_min(used, room);
  return used;
}
