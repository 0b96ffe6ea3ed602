/* passage: the bytes of a text that is being changed and cut. */
#include "config/tokenizer/normalizer/passage.h"

#include <string.h>

#include "core/base/size.h"

void passage_init(struct passage *p, struct arena *a, struct error *e) {
  *p = (struct passage){.most = PASSAGE_LONGEST, .arena = a, .e = e};
}

static enum status refuse_length(struct passage *p) {
  return error_limit(p->e, "max_body_bytes", "a text of more than %zu bytes", p->most);
}

bool passage_check_patience(struct passage *p, size_t at) {
  enum { EVERY = 1 << 14 }; /* bytes */
  const bool ends = p->e->status || patience_ends(p->patience, p->e);
  p->ask_at = ends ? 0 : at + EVERY;
  return ends;
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

/* The room that is appended to, with memory for `more` bytes. NULL: no memory, or too long. */
static struct passage_room *reserve(struct passage *p, size_t more) {
  struct passage_room *to = &p->room[p->next];
  const size_t needed = p->length + more;
  if (needed > p->most) refuse_length(p);
  if (p->e->status) return NULL;
  if (needed > to->room) {
    size_t room = size_max(needed, 2 * to->room);
    void *moved = arena_grow(p->arena, to->bytes, &room, 1, p->e);
    if (!moved) return NULL;
    to->bytes = moved;
    to->room = room;
  }
  if (p->traced && needed > to->places) {
    size_t room = size_max(needed, 2 * to->places);
    void *moved = arena_grow(p->arena, to->place, &room, sizeof *to->place, p->e);
    if (!moved) return NULL;
    to->place = moved;
    to->places = room;
  }
  return to;
}

void *passage_scratch(struct passage *p, size_t bytes) {
  if (bytes <= p->scratch_room) return p->scratch;
  if (p->e->status) return NULL;
  size_t room = size_max(bytes, 2 * p->scratch_room);
  void *moved = arena_grow(p->arena, p->scratch, &room, 1, p->e);
  if (!moved) return NULL;
  p->scratch = moved;
  p->scratch_room = room;
  return moved;
}

/* --- the text --- */

/* Whether a byte continues a character. */
static bool continues(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

/* Begins in one piece, and with nothing appended. */
static enum status begin(struct passage *p) {
  p->length = p->leading = 0;
  p->pieces.count = p->next_pieces.count = 0;
  if (p->now.length == 0 || !reserve_pieces(p, &p->pieces)) return p->e->status;
  p->pieces.piece[p->pieces.count++] = (struct passage_piece){0, (uint32_t)p->now.length};
  return STATUS_OK;
}

enum status passage_begin(struct passage *p, const char *text, size_t length, size_t at,
                          bool traced) {
  if (length > PASSAGE_LONGEST - at) return refuse_length(p);
  p->now = (struct passage_bytes){.bytes = text, .length = length, .leading = length > 0};
  while (p->now.leading < length && continues(text[p->now.leading])) p->now.leading++;
  p->at = at;
  p->whole = true;
  p->traced = traced;
  return begin(p);
}

enum status passage_begin_within(struct passage *p, const struct passage *of,
                                 const struct passage_piece *stretch) {
  const struct passage_bytes *b = &of->now;
  const bool places = of->traced && !of->whole;
  p->now = (struct passage_bytes){.bytes = b->bytes + stretch->begin,
                                  .length = stretch->end - stretch->begin,
                                  .leading = b->leading - size_min(b->leading, stretch->begin),
                                  .place = places ? b->place + stretch->begin : NULL};
  p->at = of->at + stretch->begin;
  p->whole = of->whole;
  p->traced = of->traced;
  return begin(p);
}

void passage_origin(const struct passage *p, size_t begin, size_t end, uint32_t *from,
                    uint32_t *to) {
  const struct passage_bytes *b = &p->now;
  if (!p->whole && begin < end) {
    *from = b->place[begin].from;
    *to = b->place[end - 1].to;
    return;
  }
  if (!p->whole) { /* an empty stretch within the bytes of one character is all of it */
    const uint32_t before = begin > 0 ? b->place[begin - 1].to : (uint32_t)p->at;
    *from = begin < b->length ? b->place[begin].from : before;
    *to = *from > before ? *from : before;
    return;
  }
  while (begin < end && begin > 0 && continues(b->bytes[begin])) begin--;
  while (begin < end && end < b->length && continues(b->bytes[end])) end++;
  *from = (uint32_t)(p->at + begin);
  *to = (uint32_t)(p->at + end);
}

void passage_append(struct passage *p, const char *bytes, size_t length, size_t from, size_t to) {
  struct passage_room *r = length ? reserve(p, length) : NULL;
  struct passage_place place;
  if (!r) return;
  memcpy(r->bytes + p->length, bytes, length);
  if (p->leading == p->length && from < p->now.leading) p->leading += length;
  if (p->traced) {
    passage_origin(p, from, to, &place.from, &place.to);
    for (size_t i = p->length; i < p->length + length; i++) r->place[i] = place;
  }
  p->length += length;
}

char *passage_copy(struct passage *p, size_t from, size_t to) {
  struct passage_room *r = from < to ? reserve(p, to - from) : NULL;
  if (!r) return NULL;
  memcpy(r->bytes + p->length, p->now.bytes + from, to - from);
  if (p->leading == p->length && from < p->now.leading)
    p->leading += size_min(to, p->now.leading) - from;
  if (p->traced && !p->whole)
    memcpy(r->place + p->length, p->now.place + from, (to - from) * sizeof *r->place);
  for (size_t i = from, end, at = p->length; p->traced && p->whole && i < to; i = end) {
    end = i + 1;
    while (end < to && continues(p->now.bytes[end])) end++;
    for (size_t j = i; j < end; j++, at++)
      r->place[at] = (struct passage_place){(uint32_t)(p->at + i), (uint32_t)(p->at + end)};
  }
  p->length += to - from;
  return r->bytes + p->length - (to - from);
}

bool passage_drop_end(struct passage *p, const char *bytes, size_t length) {
  const struct passage_room *r = &p->room[p->next];
  if (p->length < length || memcmp(r->bytes + p->length - length, bytes, length) != 0) return false;
  p->length -= length;
  p->leading = size_min(p->leading, p->length);
  return true;
}

enum status passage_commit(struct passage *p) {
  const struct passage_room *r = &p->room[p->next];
  p->now = (struct passage_bytes){p->length ? r->bytes : "", p->length, p->leading, r->place};
  p->next ^= 1;
  p->length = p->leading = 0;
  p->whole = false;
  if (p->next_pieces.count == 0) passage_add_piece(p, 0, p->now.length);
  return passage_commit_pieces(p);
}

/* --- pieces --- */

void passage_add_piece(struct passage *p, size_t begin, size_t end) {
  struct passage_pieces *to = &p->next_pieces;
  if (begin >= end || p->e->status || !reserve_pieces(p, to)) return;
  to->piece[to->count++] = (struct passage_piece){(uint32_t)begin, (uint32_t)end};
}

enum status passage_commit_pieces(struct passage *p) {
  const struct passage_pieces old = p->pieces;
  p->pieces = p->next_pieces;
  p->next_pieces = old;
  p->next_pieces.count = 0;
  return p->e->status;
}
