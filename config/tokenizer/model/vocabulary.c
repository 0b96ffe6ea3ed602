/* vocabulary: pieces and ids. */
#include "config/tokenizer/model/vocabulary.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/size.h"

/* --- pieces --- */

static enum status reserve_ids(struct vocabulary *v, size_t size, struct error *e) {
  if (size <= v->size) return STATUS_OK;
  if (size > v->room_ids) {
    const size_t room = size_max(size, 2 * v->room_ids);
    struct vocabulary_piece *moved = realloc(v->piece, room * sizeof *moved);
    if (!moved) return error_no_memory(e);
    v->piece = moved;
    v->room_ids = room;
  }
  memset(v->piece + v->size, 0, (size - v->size) * sizeof *v->piece);
  v->size = size;
  return STATUS_OK;
}

static enum status reserve_bytes(struct vocabulary *v, size_t more, struct error *e) {
  if (more > INT32_MAX - v->length)
    return error_set(e, STATUS_CONFIG, "the vocabulary is longer than 2 GiB");
  if (v->length + more <= v->room) return STATUS_OK;
  const size_t room = size_max(v->length + more, 2 * v->room);
  char *moved = realloc(v->bytes, room);
  if (!moved) return error_no_memory(e);
  v->bytes = moved;
  v->room = room;
  return STATUS_OK;
}

enum status vocabulary_add(struct vocabulary *v, const char *bytes, size_t length, int64_t id,
                           bool apart, struct error *e) {
  if (id < 0 || id >= VOCABULARY_MAX)
    return error_set(e, STATUS_CONFIG, "the id %lld is not one from 0 to %d", (long long)id,
                     VOCABULARY_MAX - 1);
  if (length == 0) return STATUS_OK;
  if (reserve_ids(v, (size_t)id + 1, e) || reserve_bytes(v, length, e)) return e->status;
  if (v->piece[id].length)
    return error_set(e, STATUS_CONFIG, "the id %lld belongs to two pieces", (long long)id);
  v->piece[id] = (struct vocabulary_piece){.at = (uint32_t)v->length,
                                           .length = (uint32_t)length & INT32_MAX,
                                           .apart = apart};
  memcpy(v->bytes + v->length, bytes, length);
  v->length += length;
  v->count++;
  return STATUS_OK;
}

/* --- ids --- */

/* The slot of a piece, or the empty one where it belongs. */
static size_t find_slot(const struct vocabulary *v, const char *bytes, size_t length) {
  enum { HALF = 32 };
  uint64_t hash = 0x12345;
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)bytes[i]) * 0x9e3779b97f4a7c15u;
  for (size_t at = (hash >> HALF) & (v->slots - 1);; at = (at + 1) & (v->slots - 1)) {
    const int32_t id = v->slot[at];
    if (id < 0) return at;
    const struct vocabulary_piece *p = &v->piece[id];
    if (p->length == length && memcmp(v->bytes + p->at, bytes, length) == 0) return at;
  }
}

enum status vocabulary_end(struct vocabulary *v, struct error *e) {
  v->slots = 2;
  while (v->slots < 2 * v->count) v->slots *= 2;
  v->slot = malloc(v->slots * sizeof *v->slot);
  if (!v->slot) return error_no_memory(e);
  memset(v->slot, -1, v->slots * sizeof *v->slot);
  for (size_t id = 0; id < v->size; id++) {
    const struct vocabulary_piece *p = &v->piece[id];
    const char *bytes = v->bytes + p->at;
    if (p->length && !p->apart) v->slot[find_slot(v, bytes, p->length)] = (int32_t)id;
  }
  return STATUS_OK;
}

void vocabulary_done(struct vocabulary *v) {
  free(v->piece);
  free(v->bytes);
  free(v->slot);
  *v = (struct vocabulary){0};
}

size_t vocabulary_bytes(const struct vocabulary *v) {
  return v->room_ids * sizeof *v->piece + v->room + v->slots * sizeof *v->slot;
}

int32_t vocabulary_find(const struct vocabulary *v, const char *bytes, size_t length) {
  return v->slot[find_slot(v, bytes, length)];
}
