/* pretokenizer_text: steps that change the text, and put down its pieces anew. */
#include <string.h>

#include "config/tokenizer/model/byte_level.h"
#include "config/tokenizer/pretokenizer/pretokenizer_parts.h"

/* The bytes in front of a piece come from its first character. */
static void put_before(struct passage *p, struct passage_piece piece, const char *bytes,
                       size_t length) {
  size_t first;
  unicode_read(p->now.bytes + piece.begin, &first);
  passage_append(p, bytes, length, piece.begin, piece.begin + first);
}

/* --- blanks --- */

static bool begins_with(const struct metaspace *b, const struct passage *p,
                        struct passage_piece piece) {
  const char *text = p->now.bytes + piece.begin;
  return *text == ' ' ||
         (piece.end - piece.begin >= b->length && memcmp(text, b->replacement, b->length) == 0);
}

static bool must_prepend(const struct metaspace *b, const struct passage *p,
                         struct passage_piece piece) {
  if (b->prepend == METASPACE_NEVER || begins_with(b, p, piece)) return false;
  return b->prepend == METASPACE_ALWAYS || passage_is_first(p, piece.begin);
}

static void replace_blanks(const struct metaspace *b, struct passage *p,
                           struct passage_piece piece) {
  const char *text = p->now.bytes;
  for (size_t at = piece.begin, end; at < piece.end && !passage_is_over(p, at); at = end) {
    const char *blank = memchr(text + at, ' ', piece.end - at);
    end = blank ? (size_t)(blank - text) : piece.end;
    passage_copy(p, at, end);
    if (blank) passage_append(p, b->replacement, b->length, end, end + 1);
    end += blank != NULL;
  }
}

void pretokenizer_metaspace_apply(const struct pretokenizer_step *s, struct passage *p) {
  const struct metaspace *b = &s->metaspace;
  for (size_t i = 0; i < p->pieces.count; i++) {
    const struct passage_piece piece = p->pieces.piece[i];
    const size_t begin = p->length;
    if (must_prepend(b, p, piece)) put_before(p, piece, b->replacement, b->length);
    replace_blanks(b, p, piece);
    passage_add_piece(p, begin, p->length);
  }
  passage_commit(p);
}

void pretokenizer_prefix_apply(const struct pretokenizer_step *s, struct passage *p) {
  (void)s;
  for (size_t i = 0; i < p->pieces.count; i++) {
    const struct passage_piece piece = p->pieces.piece[i];
    const size_t begin = p->length;
    if (passage_is_over(p, piece.begin)) break;
    if (p->now.bytes[piece.begin] != ' ') put_before(p, piece, " ", 1);
    passage_copy(p, piece.begin, piece.end);
    passage_add_piece(p, begin, p->length);
  }
  passage_commit(p);
}

/* --- bytes --- */

static bool stays(char c) { return c > ' ' && c < 0x7f; }

/* The letters of one character's bytes: all come from it. Returns its length. */
static size_t put_letters(struct passage *p, size_t at) {
  char out[BYTE_LEVEL_BYTES_MAX * UNICODE_BYTES_MAX];
  size_t length;
  unicode_read(p->now.bytes + at, &length);
  const size_t written = byte_level_encode(p->now.bytes + at, length, out);
  passage_append(p, out, written, at, at + length);
  return length;
}

void pretokenizer_bytes_apply(const struct pretokenizer_step *s, struct passage *p) {
  (void)s;
  for (size_t i = 0; i < p->pieces.count; i++) {
    const struct passage_piece piece = p->pieces.piece[i];
    const size_t begin = p->length;
    for (size_t at = piece.begin, end; at < piece.end && !passage_is_over(p, at); at = end) {
      for (end = at; end < piece.end && stays(p->now.bytes[end]); end++) {
      }
      passage_copy(p, at, end);
      if (end < piece.end) end += put_letters(p, end);
    }
    passage_add_piece(p, begin, p->length);
  }
  passage_commit(p);
}
