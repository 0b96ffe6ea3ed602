/* small_text: a name or a small value of a body, collected until it ends. */
#include "server/json/small_text.h"

#include <string.h>

#include "core/base/size.h"

void small_text_begin(struct small_text *t, size_t offset) {
  small_text_begin_long(t, offset, JSON_SMALL_MAX, NULL);
}

void small_text_begin_long(struct small_text *t, size_t offset, size_t most, struct arena *a) {
  json_skim_begin(&t->skim);
  t->offset = offset;
  t->length = 0;
  t->most = most;
  t->lost = false;
  t->text = t->own;
  t->room = sizeof t->own;
  t->arena = a;
}

/* Makes room for so many bytes in all, of which there may be. */
static enum status grow_text(struct small_text *t, size_t length, struct error *e) {
  if (length <= t->room) return STATUS_OK;
  const bool was_own = t->text == t->own;
  size_t room = size_min(size_max(length, 2 * t->room), t->most);
  char *text = arena_grow(t->arena, was_own ? NULL : t->text, &room, 1, e);
  if (!text) return e->status;
  if (was_own) memcpy(text, t->own, t->length);
  t->text = text;
  t->room = room;
  return STATUS_OK;
}

size_t small_text_feed(struct small_text *t, const char *text, size_t length, size_t offset,
                       bool *complete, struct error *e) {
  const size_t left = t->most - t->length;
  if (!t->lost) length = size_min(length, left + 1);
  const size_t used = json_skim_feed(&t->skim, text, length, offset, complete, e);
  if (t->lost) return used;
  const size_t kept = size_min(used, left);
  if (grow_text(t, t->length + kept, e)) return used;
  t->lost = used > left;
  memcpy(t->text + t->length, text, kept);
  t->length += kept;
  return used;
}
