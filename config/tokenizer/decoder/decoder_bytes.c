/* decoder_bytes: the list of pieces that a step appends, and bytes made well-formed. */
#include <string.h>

#include "config/document/text.h"
#include "config/tokenizer/decoder/decoder.h"
#include "config/tokenizer/decoder/decoder_parts.h"
#include "config/tokenizer/model/byte_level.h"
#include "core/base/size.h"

/* --- pieces --- */

static bool reserve(struct decoder_work *w, size_t more) {
  struct decoder_list *l = &w->next;
  if (w->e->status) return false;
  if (more < l->room - l->length) return true;
  size_t room = size_max(l->length + more + 1, 2 * l->room);
  char *moved = arena_grow(w->arena, l->bytes, &room, 1, w->e);
  if (!moved) return false;
  l->bytes = moved;
  l->room = room;
  return true;
}

void decoder_append(struct decoder_work *w, const char *bytes, size_t length) {
  if (length == 0 || !reserve(w, length)) return;
  memcpy(w->next.bytes + w->next.length, bytes, length);
  w->next.length += length;
}

void decoder_end_piece(struct decoder_work *w) {
  struct decoder_list *l = &w->next;
  if (w->e->status) return;
  if (l->count == l->end_room) {
    size_t room = 2 * l->end_room + 1;
    size_t *moved = arena_grow(w->arena, l->end, &room, sizeof *moved, w->e);
    if (!moved) return;
    l->end = moved;
    l->end_room = room;
  }
  l->end[l->count++] = l->length;
}

void decoder_commit(struct decoder_work *w) {
  const struct decoder_list old = w->now;
  w->now = w->next;
  w->next = old;
  w->next.length = w->next.count = 0;
}

/* --- bytes --- */

void decoder_append_letters(struct decoder_work *w, const char *bytes, size_t length) {
  if (length == 0 || !reserve(w, length)) return;
  const size_t count = byte_level_decode(bytes, length, w->next.bytes + w->next.length);
  if (count == SIZE_MAX)
    decoder_append(w, bytes, length);
  else
    w->next.length += count;
}

/* The length of the ill-formed bytes at `at`: as many as may begin a character, or one. *open:
 * whether more bytes after the last one may complete it. */
static size_t count_bad(const unsigned char *at, size_t left, bool *open) {
  const unsigned char lead = at[0];
  const size_t whole = lead < 0xc2 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 1;
  const unsigned char low = lead == 0xe0   ? 0xa0
                            : lead == 0xf0 ? 0x90
                                           : 0x80,
                      high = lead == 0xed   ? 0x9f
                             : lead == 0xf4 ? 0x8f
                                            : 0xbf;
  size_t bad = 1;
  if (whole > 1 && left > 1 && at[1] >= low && at[1] <= high)
    for (bad = 2; bad < whole && bad < left && (at[bad] & 0xc0) == 0x80; bad++) {
    }
  *open = bad == left && bad < whole;
  return bad;
}

void decoder_commit_bytes(struct decoder_work *w) {
  decoder_end_piece(w);
  w->next.count = 0;
  decoder_commit(w);
  const struct decoder_list *l = &w->now;
  size_t at = 0;
  while (at < l->length && w->e->status == STATUS_OK) {
    size_t good = at + unicode_ascii(l->bytes + at, l->length - at), size;
    while (good < l->length && (size = text_character(l->bytes + good, l->length - good)) > 0)
      good += size;
    decoder_append(w, l->bytes + at, good - at);
    at = good;
    if (at == l->length) break;
    decoder_append(w, DECODER_REPLACEMENT, sizeof DECODER_REPLACEMENT - 1);
    at += count_bad((const unsigned char *)l->bytes + at, l->length - at, &w->open);
  }
  decoder_end_piece(w);
  decoder_commit(w);
}
