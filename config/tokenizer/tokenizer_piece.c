/* tokenizer_piece: the pieces of tokens, and the text of several. */
#include <string.h>

#include "config/tokenizer/model/byte_level.h"
#include "config/tokenizer/tokenizer_parts.h"
#include "core/base/size.h"

bool tokenizer_is_special(const struct tokenizer *t, int64_t id) {
  const struct added_token *added = added_of(&t->added, id);
  return added && added->special;
}

bool tokenizer_find_piece(const struct tokenizer *t, int64_t id, bool decoded,
                          struct decoder_piece *out) {
  const struct added_token *added = added_of(&t->added, id);
  const struct vocabulary *v = subword_vocabulary(t->subword_model);
  if (added) {
    *out = decoded && added->changed
               ? (struct decoder_piece){added->changed, added->changed_length, false}
               : (struct decoder_piece){added->content, added->length, false};
    return true;
  }
  out->bytes = vocabulary_piece(v, id, &out->length);
  out->raw = out->bytes && t->raw && !v->piece[id].apart;
  return out->bytes;
}

/* Writes the bytes of a raw piece as characters, in the arena; .bytes NULL: no memory. */
static struct tokenizer_text write_raw(const struct decoder_piece *piece, struct arena *a,
                                       struct error *e) {
  char *text = arena_alloc(a, piece->length, BYTE_LEVEL_BYTES_MAX, e);
  if (!text) return (struct tokenizer_text){NULL, 0};
  return (struct tokenizer_text){text, byte_level_encode(piece->bytes, piece->length, text)};
}

struct tokenizer_text tokenizer_piece(const struct tokenizer *t, int64_t id, struct arena *a,
                                      struct error *e) {
  struct decoder_piece piece;
  if (!tokenizer_find_piece(t, id, false, &piece)) return (struct tokenizer_text){NULL, 0};
  if (piece.raw) return write_raw(&piece, a, e);
  return (struct tokenizer_text){piece.bytes, piece.length};
}

size_t tokenizer_write_piece(const struct tokenizer *t, int64_t id, char *out) {
  struct decoder_piece piece;
  if (!tokenizer_find_piece(t, id, false, &piece)) return SIZE_MAX;
  if (piece.raw) return byte_level_encode(piece.bytes, piece.length, out);
  if (piece.length > 0) memcpy(out, piece.bytes, piece.length);
  return piece.length;
}

int64_t tokenizer_mask(const struct tokenizer *t) {
  static const char *const names[] = {"[MASK]", "<mask>", "<|mask|>"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    for (size_t k = 0; k < t->added.count; k++) {
      const struct added_token *one = &t->added.token[k];
      if (one->special && one->length == strlen(names[i]) &&
          memcmp(one->content, names[i], one->length) == 0)
        return one->id;
    }
  return -1;
}

bool tokenizer_is_unknown(const struct tokenizer *t, int64_t id) {
  return id >= 0 && id == subword_unknown(t->subword_model);
}

bool tokenizer_marks_inside(const struct tokenizer *t) {
  return subword_has_inside(t->subword_model);
}

size_t tokenizer_piece_room(const struct tokenizer *t, int64_t id) {
  struct decoder_piece piece;
  if (!tokenizer_find_piece(t, id, false, &piece)) return 0;
  return piece.raw ? piece.length * BYTE_LEVEL_BYTES_MAX : piece.length;
}

enum status tokenizer_decode(const struct tokenizer *t, const int32_t *id, size_t count, bool bare,
                             struct arena *a, struct decoder_text *out, struct error *e) {
  struct decoder_piece *piece = arena_alloc(a, count, sizeof *piece, e);
  size_t pieces = 0;
  for (size_t i = 0; piece && i < count; i++) {
    struct decoder_piece *next = &piece[pieces];
    if ((bare && tokenizer_is_special(t, id[i])) || !tokenizer_find_piece(t, id[i], true, next))
      continue;
    pieces++;
    /* A decoder that only reads bytes gets them; any other gets the characters of the file. */
    if (next->raw && !decoder_reads_bytes(t->decoder)) {
      const struct tokenizer_text text = write_raw(next, a, e);
      if (!text.bytes) return e->status;
      *next = (struct decoder_piece){text.bytes, text.length, false};
    }
  }
  return piece ? decoder_decode(t->decoder, piece, pieces, a, out, e) : e->status;
}

/* --- before all tokens are there --- */

bool tokenizer_bytes_of(const struct tokenizer *t, int64_t id, struct arena *a,
                        struct tokenizer_text *out, struct error *e) {
  struct decoder_piece piece;
  if (!tokenizer_find_piece(t, id, true, &piece)) return false;
  *out = (struct tokenizer_text){piece.bytes, piece.length};
  if (decoder_reads_bytes(t->decoder)) {
    if (piece.raw) return true;
    /* A piece with a character that stands for no byte stays as it is. */
    char *bytes = arena_alloc(a, piece.length, 1, e);
    if (!bytes) return false;
    const size_t count = byte_level_decode(piece.bytes, piece.length, bytes);
    if (count != SIZE_MAX) *out = (struct tokenizer_text){bytes, count};
    return true;
  }
  const int byte = decoder_byte(t->decoder, &piece);
  char *bytes = byte < 0 ? NULL : arena_alloc(a, 1, 1, e);
  if (!bytes) return false;
  *bytes = (char)byte;
  *out = (struct tokenizer_text){bytes, 1};
  return true;
}

bool tokenizer_has_text(const struct tokenizer *t, int64_t id) {
  struct decoder_piece piece;
  return !tokenizer_is_special(t, id) && tokenizer_find_piece(t, id, true, &piece);
}

bool tokenizer_is_steady(const struct tokenizer *t) { return decoder_is_steady(t->decoder); }

size_t tokenizer_count_open(const struct tokenizer *t, const int32_t *id, size_t count) {
  size_t open = 0;
  struct decoder_piece piece;
  for (size_t i = 1; i <= count; i++) {
    if (tokenizer_is_special(t, id[count - i]) ||
        !tokenizer_find_piece(t, id[count - i], true, &piece))
      continue;
    if (!decoder_leaves_open(t->decoder, &piece)) break;
    open = i;
  }
  return open;
}

size_t tokenizer_piece_max(const struct tokenizer *t) { return t->piece_max; }

size_t tokenizer_text_max(const struct tokenizer *t) { return t->text_max; }
