/* vocabulary: the pieces that a model's tokens stand for, by their ids, and the ids by the pieces.
 *
 * Pieces are any bytes but none. Ids may have gaps. Immutable once made. */
#ifndef CONFIG_VOCABULARY_H
#define CONFIG_VOCABULARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

struct vocabulary_piece {
  uint32_t at;          /* in the bytes of all pieces */
  uint32_t length : 31; /* 0: there is no piece of this id */
  uint32_t apart : 1;   /* it is told by its id alone, and not found by its bytes */
};

struct vocabulary {
  struct vocabulary_piece *piece; /* [size] by id */
  size_t size;                    /* above all ids */
  size_t count;                   /* of pieces */
  char *bytes;                    /* of all */
  size_t length, room, room_ids;  /* bytes, and what there is memory for */
  int32_t *slot;                  /* [slots] ids by the hash of their pieces; -1: none */
  size_t slots;                   /* a power of two */
};

enum { VOCABULARY_MAX = 1 << 24 }; /* ids */

/* Adds a piece; of equal ones the one with the greatest id is found. STATUS_CONFIG where the id is
 * beyond VOCABULARY_MAX or has another piece. */
enum status vocabulary_add(struct vocabulary *v, const char *bytes, size_t length, int64_t id,
                           bool apart, struct error *e);

/* Makes what ids are found by; then nothing is added any more. */
enum status vocabulary_end(struct vocabulary *v, struct error *e);
void vocabulary_done(struct vocabulary *v);
size_t vocabulary_bytes(const struct vocabulary *v); /* of memory */

int32_t vocabulary_find(const struct vocabulary *v, const char *bytes, size_t length); /* -1: no */

/* The piece of an id, and its length; NULL: there is none. */
static inline const char *vocabulary_piece(const struct vocabulary *v, int64_t id, size_t *length) {
  if (id < 0 || (uint64_t)id >= v->size || v->piece[id].length == 0) return NULL;
  *length = v->piece[id].length;
  return v->bytes + v->piece[id].at;
}

/* A hash of bytes that can be gone on with: of a beginning, byte by byte. */
static inline uint64_t vocabulary_hash_byte(uint64_t hash, char byte) {
  return (hash ^ (unsigned char)byte) * 0x9e3779b97f4a7c15u;
}
enum { VOCABULARY_HASH = 0x12345 };

/* The piece of so many bytes with this hash; -1: there is none. */
int32_t vocabulary_find_hashed(const struct vocabulary *v, const char *bytes, size_t length,
                               uint64_t hash);

#endif
