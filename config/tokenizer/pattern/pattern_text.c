/* pattern_text: bytes put behind one another. */
#include "config/tokenizer/pattern/pattern_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/size.h"

void pattern_text_free(struct pattern_text *t) {
  free(t->bytes);
  *t = (struct pattern_text){0};
}

/* Room for so many more bytes and a zero. */
static bool reserve(struct pattern_text *t, size_t more) {
  if (t->lost) return false;
  if (t->room - t->length > more) return true;
  const size_t room = size_max(2 * t->room, t->length + more + 1);
  char *moved = realloc(t->bytes, room);
  t->lost = !moved;
  if (!moved) return false;
  t->bytes = moved;
  t->room = room;
  return true;
}

static void insert(struct pattern_text *t, size_t at, const char *bytes, size_t length) {
  if (!reserve(t, length)) return;
  memmove(t->bytes + at + length, t->bytes + at, t->length - at);
  if (length) memcpy(t->bytes + at, bytes, length);
  t->length += length;
  t->bytes[t->length] = '\0';
}

void pattern_text_put(struct pattern_text *t, const char *bytes, size_t length) {
  insert(t, t->length, bytes, length);
}

void pattern_text_say(struct pattern_text *t, const char *string) {
  insert(t, t->length, string, strlen(string));
}

void pattern_text_insert(struct pattern_text *t, size_t at, const char *string) {
  insert(t, at, string, strlen(string));
}

void pattern_text_join(struct pattern_text *t, const struct pattern_text *other) {
  if (other->lost) t->lost = true;
  if (other->bytes) insert(t, t->length, other->bytes, other->length);
}

void pattern_text_character(struct pattern_text *t, uint32_t c) {
  char said[16];
  const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  snprintf(said, sizeof said, plain ? "%c" : "\\x{%x}", (unsigned)c);
  pattern_text_say(t, said);
}
