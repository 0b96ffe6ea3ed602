/* vocabulary: the pieces of a model's tokens by their ids, and the ids by the pieces.
 *
 * A piece has at least one byte. Ids may have gaps. Immutable once made. */
#ifndef CONFIG_VOCABULARY_H
#define CONFIG_VOCABULARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

struct vocabulary_piece {
  uint32_t at;          /* in the bytes of all pieces */
  uint32_t length : 31; /* 0: no piece has this id */
  uint32_t apart : 1;   /* whether it is found by its id alone, not by its bytes */
};

struct vocabulary {
  struct vocabulary_piece *piece; /* [size] by id */
  size_t size;                    /* the largest id + 1 */
  size_t count;                   /* pieces */
  char *bytes;                    /* [length] of all pieces */
  size_t length, room, room_ids;  /* bytes; bytes and ids that there is memory for */
  int32_t *slot;                  /* [slots] ids by the hash of their pieces; -1: none */
  size_t slots;                   /* a power of two */
};

enum { VOCABULARY_MAX = 1 << 24 }; /* ids */

/* Adds a piece; of equal ones the one with the greatest id is found. STATUS_CONFIG if the id is not
 * below VOCABULARY_MAX or has another piece. */
enum status vocabulary_add(struct vocabulary *v, const char *bytes, size_t length, int64_t id,
                           bool apart, struct error *e);

/* Makes the index of pieces; nothing is added after that. */
enum status vocabulary_end(struct vocabulary *v, struct error *e);
void vocabulary_done(struct vocabulary *v);
size_t vocabulary_bytes(const struct vocabulary *v); /* of memory */

int32_t vocabulary_find(const struct vocabulary *v, const char *bytes, size_t length); /* -1: no */

/* The piece of an id, and its length; NULL: none. */
static inline const char *vocabulary_piece(const struct vocabulary *v, int64_t id, size_t *length) {
  if (id < 0 || (uint64_t)id >= v->size || v->piece[id].length == 0) return NULL;
  *length = v->piece[id].length;
  return v->bytes + v->piece[id].at;
}

#endif
