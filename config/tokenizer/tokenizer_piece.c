/* tokenizer_piece: what tokens stand for, one by one and as a text. */
#include "config/tokenizer/model/byte_level.h"
#include "config/tokenizer/tokenizer_parts.h"
#include "core/base/size.h"

bool tokenizer_is_special(const struct tokenizer *t, int64_t id) {
  const struct added_token *added = added_of(&t->added, id);
  return added && added->special;
}

bool tokenizer_find_piece(const struct tokenizer *t, int64_t id, bool spelled,
                          struct decoder_piece *out) {
  const struct added_token *added = added_of(&t->added, id);
  const struct vocabulary *v = subword_vocabulary(t->subword_model);
  if (added) {
    *out = spelled && added->changed
               ? (struct decoder_piece){added->changed, added->changed_length, false}
               : (struct decoder_piece){added->content, added->length, false};
    return true;
  }
  out->bytes = vocabulary_piece(v, id, &out->length);
  out->raw = out->bytes && t->raw && !v->piece[id].apart;
  return out->bytes;
}

struct tokenizer_text tokenizer_piece(const struct tokenizer *t, int64_t id, struct arena *a,
                                      struct error *e) {
  struct decoder_piece piece;
  if (!tokenizer_find_piece(t, id, false, &piece)) return (struct tokenizer_text){NULL, 0};
  if (!piece.raw) return (struct tokenizer_text){piece.bytes, piece.length};
  char *text = arena_alloc(a, piece.length, BYTE_LEVEL_BYTES_MAX, e);
  if (!text) return (struct tokenizer_text){NULL, 0};
  return (struct tokenizer_text){text, byte_level_encode(piece.bytes, piece.length, text)};
}

size_t tokenizer_piece_room(const struct tokenizer *t, int64_t id) {
  struct decoder_piece piece;
  if (!tokenizer_find_piece(t, id, false, &piece)) return 0;
  return piece.raw ? piece.length * BYTE_LEVEL_BYTES_MAX : piece.length;
}

/* A decoder that is not of bytes alone gets what the file writes. */
static enum status write_piece(const struct tokenizer *t, struct decoder_piece *piece,
                               struct arena *a, struct error *e) {
  if (!piece->raw || decoder_reads_bytes(t->decoder)) return STATUS_OK;
  char *text = arena_alloc(a, piece->length, BYTE_LEVEL_BYTES_MAX, e);
  if (text)
    *piece =
        (struct decoder_piece){text, byte_level_encode(piece->bytes, piece->length, text), false};
  return e->status;
}

enum status tokenizer_decode(const struct tokenizer *t, const int32_t *id, size_t count, bool bare,
                             struct arena *a, struct decoder_text *out, struct error *e) {
  struct decoder_piece *piece = arena_alloc(a, count, sizeof *piece, e);
  size_t pieces = 0;
  for (size_t i = 0; piece && i < count; i++) {
    if ((bare && tokenizer_is_special(t, id[i])) ||
        !tokenizer_find_piece(t, id[i], true, &piece[pieces]))
      continue;
    if (write_piece(t, &piece[pieces++], a, e)) return e->status;
  }
  return piece ? decoder_decode(t->decoder, piece, pieces, a, out, e) : e->status;
}

/* --- what one adds --- */

/* Bytes that the file writes as characters are read. What has other characters stays as it is. */
static bool read_letters(const struct decoder_piece *piece, struct arena *a,
                         struct tokenizer_text *out, struct error *e) {
  char *bytes = arena_alloc(a, piece->length, 1, e);
  if (!bytes) return false;
  const size_t count = byte_level_decode(piece->bytes, piece->length, bytes);
  if (count != SIZE_MAX) *out = (struct tokenizer_text){bytes, count};
  return true;
}

static bool read_byte(int byte, struct arena *a, struct tokenizer_text *out, struct error *e) {
  char *bytes = byte < 0 ? NULL : arena_alloc(a, 1, 1, e);
  if (!bytes) return false;
  *bytes = (char)byte;
  *out = (struct tokenizer_text){bytes, 1};
  return true;
}

bool tokenizer_bytes_of(const struct tokenizer *t, int64_t id, struct arena *a,
                        struct tokenizer_text *out, struct error *e) {
  struct decoder_piece piece;
  if (!tokenizer_find_piece(t, id, true, &piece)) return false;
  *out = (struct tokenizer_text){piece.bytes, piece.length};
  if (!decoder_reads_bytes(t->decoder))
    return read_byte(decoder_byte(t->decoder, &piece), a, out, e);
  return piece.raw || read_letters(&piece, a, out, e);
}

/* --- before all tokens are there --- */

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

size_t tokenizer_piece_max(const struct tokenizer *t) { return t->piece_longest; }

size_t tokenizer_text_max(const struct tokenizer *t) { return t->spelt_room; }

/* A decoder of bytes alone gets them as they are. */
void tokenizer_find_longest(struct tokenizer *t) {
  struct decoder_piece piece;
  size_t longest = 0;
  for (int64_t id = 0; (size_t)id < tokenizer_size(t); id++) {
    if (!tokenizer_find_piece(t, id, true, &piece)) continue;
    const bool written = piece.raw && !decoder_reads_bytes(t->decoder);
    longest = size_max(longest, piece.length * (written ? BYTE_LEVEL_BYTES_MAX : 1));
    t->piece_longest = size_max(t->piece_longest, tokenizer_piece_room(t, id));
  }
  t->spelt_room = decoder_room(t->decoder, longest);
}
