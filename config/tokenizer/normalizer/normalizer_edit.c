/* normalizer_edit: replaces bytes of a text, and copies those between. */
#include "config/tokenizer/normalizer/normalizer_edit.h"

#include <string.h>

void normalizer_edit_open(struct normalizer_edit *edit, size_t from) {
  passage_copy(edit->p, edit->done, from);
  edit->changed = true;
}

void normalizer_edit_close(struct normalizer_edit *edit, size_t to) { edit->done = to; }

void normalizer_edit_replace(struct normalizer_edit *edit, size_t from, size_t to,
                             const char *bytes, size_t length) {
  const char *text = edit->p->now.bytes;
  if (length == to - from && (length == 0 || memcmp(text + from, bytes, length) == 0)) return;
  normalizer_edit_open(edit, from);
  passage_append(edit->p, bytes, length, from, to);
  normalizer_edit_close(edit, to);
}

void normalizer_edit_end(struct normalizer_edit *edit) {
  if (!edit->changed) return;
  passage_copy(edit->p, edit->done, edit->p->now.length);
  passage_commit(edit->p);
}

/* --- by a table --- */

void normalizer_edit_table_init(struct normalizer_edit_table *t) {
  for (unsigned i = 0; i < sizeof t->of; i++)
    t->of[i] = (unsigned char)(i < 0x80 ? i : NORMALIZER_EDIT_OTHER);
}

/* Most bytes of most texts stay: they are passed one by one, and copied with what follows them. */
size_t normalizer_edit_ascii(struct normalizer_edit *edit, const struct normalizer_edit_table *t,
                             size_t at) {
  const struct passage_bytes *now = &edit->p->now;
  while (at < now->length) {
    const unsigned char byte = (unsigned char)now->bytes[at], becomes = t->of[byte];
    if (becomes == byte) {
      at++;
    } else if (becomes < 0x80) {
      /* Bytes that become as many others have their own origins: copied, then changed. */
      size_t end = at;
      while (end < now->length && t->of[(unsigned char)now->bytes[end]] < 0x80) end++;
      normalizer_edit_open(edit, at);
      char *to = passage_copy(edit->p, at, end);
      for (size_t i = 0; to && i < end - at; i++) to[i] = (char)t->of[(unsigned char)to[i]];
      normalizer_edit_close(edit, end);
      at = end;
    } else if (becomes == NORMALIZER_EDIT_REMOVED) {
      normalizer_edit_replace(edit, at, at + 1, NULL, 0);
      at++;
    } else {
      break;
    }
  }
  return at;
}
