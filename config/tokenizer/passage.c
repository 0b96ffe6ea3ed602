/* passage: the bytes of a text that is being changed and cut. */
#include "config/tokenizer/passage.h"

#include <string.h>

#include "core/run/size.h"

void passage_init(struct passage *p, struct arena *a, struct error *e) {
  *p = (struct passage){.arena = a, .e = e};
}

static enum status refuse_length(struct passage *p) {
  return error_limit(p->e, "max_body_bytes", "a text of more than %d bytes", PASSAGE_LONGEST);
}

/* --- memory --- */

static bool reserve_pieces(struct passage *p, struct passage_pieces *to) {
  if (to->count < to->room) return true;
  size_t room = to->room * 2 + 1;
  void *moved = arena_grow(p->arena, to->piece, &room, sizeof *to->piece, p->e);
  if (!moved) return false;
  to->piece = moved;
  to->room = room;
  return true;
}

/* Both lists of places in the original. */
static bool reserve_places(struct passage *p, struct passage_bytes *to, size_t room) {
  size_t from_room = room, to_room = room;
  void *from = arena_grow(p->arena, to->from, &from_room, sizeof *to->from, p->e);
  if (from) to->from = from;
  void *behind = from ? arena_grow(p->arena, to->to, &to_room, sizeof *to->to, p->e) : NULL;
  if (!behind) return false;
  to->to = behind;
  to->traced_room = size_min(from_room, to_room);
  return true;
}

/* Room for so many more bytes of what is being put down. */
static bool reserve(struct passage *p, size_t more) {
  struct passage_bytes *to = &p->next;
  const size_t needed = to->length + more;
  if (p->e->status) return false;
  if (needed > PASSAGE_LONGEST) return refuse_length(p) == STATUS_OK;
  if (needed > to->room) {
    size_t room = size_max(needed, 2 * to->room);
    void *moved = arena_grow(p->arena, to->owned, &room, 1, p->e);
    if (!moved) return false;
    to->owned = moved;
    to->room = room;
  }
  to->bytes = to->owned;
  return !p->traced || needed <= to->traced_room ||
         reserve_places(p, to, size_max(needed, 2 * to->traced_room));
}

void *passage_lend(struct passage *p, size_t bytes) {
  if (bytes <= p->lent_room) return p->lent;
  if (p->e->status) return NULL;
  size_t room = size_max(bytes, 2 * p->lent_room);
  void *moved = arena_grow(p->arena, p->lent, &room, 1, p->e);
  if (!moved) return NULL;
  p->lent = moved;
  p->lent_room = room;
  return moved;
}

/* --- the text --- */

static bool is_behind(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

enum status passage_begin(struct passage *p, const char *text, size_t length, size_t at,
                          bool traced) {
  if (length > PASSAGE_LONGEST - at) return refuse_length(p);
  p->at = at;
  p->traced = traced;
  p->now.bytes = (char *)text; /* never written to: what is put down lies elsewhere */
  p->now.length = length;
  p->now.leading = length > 0;
  while (p->now.leading < length && is_behind(text[p->now.leading])) p->now.leading++;
  p->whole = true;
  p->next.length = p->next.leading = 0;
  p->pieces.count = p->next_pieces.count = 0;
  if (length == 0 || !reserve_pieces(p, &p->pieces)) return p->e->status;
  p->pieces.piece[p->pieces.count++] = (struct passage_piece){0, (uint32_t)length};
  return STATUS_OK;
}

void passage_origin(const struct passage *p, size_t begin, size_t end, uint32_t *from,
                    uint32_t *to) {
  const struct passage_bytes *b = &p->now;
  if (!p->whole && begin < end) {
    *from = b->from[begin];
    *to = b->to[end - 1];
    return;
  }
  if (!p->whole) { /* a place within what came from one character is all of it */
    const uint32_t before = begin > 0 ? b->to[begin - 1] : (uint32_t)p->at;
    *from = begin < b->length ? b->from[begin] : before;
    *to = *from > before ? *from : before;
    return;
  }
  while (begin < end && begin > 0 && is_behind(b->bytes[begin])) begin--;
  while (begin < end && end < b->length && is_behind(b->bytes[end])) end++;
  *from = (uint32_t)(p->at + begin);
  *to = (uint32_t)(p->at + end);
}

void passage_put(struct passage *p, const char *bytes, size_t length, size_t from, size_t to) {
  uint32_t begin, end;
  if (length == 0 || !reserve(p, length)) return;
  struct passage_bytes *b = &p->next;
  memcpy(b->bytes + b->length, bytes, length);
  if (b->leading == b->length && from < p->now.leading) b->leading += length;
  if (p->traced) {
    passage_origin(p, from, to, &begin, &end);
    for (size_t i = b->length; i < b->length + length; i++) b->from[i] = begin, b->to[i] = end;
  }
  b->length += length;
}

/* Of bytes that are the original's own, each character's. */
static void keep_places(struct passage *p, size_t from, size_t to) {
  struct passage_bytes *b = &p->next;
  const char *text = p->now.bytes;
  size_t at = b->length;
  for (size_t i = from, end; i < to; i = end) {
    for (end = i + 1; end < to && is_behind(text[end]); end++) {
    }
    for (size_t j = i; j < end; j++, at++) {
      b->from[at] = (uint32_t)(p->at + i);
      b->to[at] = (uint32_t)(p->at + end);
    }
  }
}

char *passage_keep(struct passage *p, size_t from, size_t to) {
  if (from >= to || !reserve(p, to - from)) return NULL;
  struct passage_bytes *b = &p->next;
  memcpy(b->bytes + b->length, p->now.bytes + from, to - from);
  if (b->leading == b->length && from < p->now.leading)
    b->leading += size_min(to, p->now.leading) - from;
  if (p->traced && p->whole) keep_places(p, from, to);
  if (p->traced && !p->whole) {
    memcpy(b->from + b->length, p->now.from + from, (to - from) * sizeof *b->from);
    memcpy(b->to + b->length, p->now.to + from, (to - from) * sizeof *b->to);
  }
  b->length += to - from;
  return b->bytes + b->length - (to - from);
}

enum status passage_take(struct passage *p) {
  const struct passage_bytes old = p->now;
  p->now = p->next;
  if (p->now.length == 0) p->now.bytes = (char *)""; /* there may never have been any */
  p->next = old;
  p->next.bytes = p->next.owned;
  p->next.length = p->next.leading = 0;
  p->whole = false;
  if (p->next_pieces.count == 0) passage_cut(p, 0, p->now.length);
  return passage_take_pieces(p);
}

/* --- pieces --- */

void passage_cut(struct passage *p, size_t begin, size_t end) {
  struct passage_pieces *to = &p->next_pieces;
  if (begin >= end || p->e->status || !reserve_pieces(p, to)) return;
  to->piece[to->count++] = (struct passage_piece){(uint32_t)begin, (uint32_t)end};
}

enum status passage_take_pieces(struct passage *p) {
  const struct passage_pieces old = p->pieces;
  p->pieces = p->next_pieces;
  p->next_pieces = old;
  p->next_pieces.count = 0;
  return p->e->status;
}
