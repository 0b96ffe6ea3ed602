/* split_text: steps that change the text, and put down its pieces anew. */
#include <string.h>

#include "config/tokenizer/model/bytes.h"
#include "config/tokenizer/pretokenizer/split_parts.h"

/* The bytes in front of a piece come from its first character. */
static void put_before(struct passage *p, struct passage_piece piece, const char *bytes,
                       size_t length) {
  size_t first;
  unicode_read(p->now.bytes + piece.begin, &first);
  passage_put(p, bytes, length, piece.begin, piece.begin + first);
}

/* --- blanks --- */

static bool begins_with(const struct blanks *b, const struct passage *p,
                        struct passage_piece piece) {
  const char *text = p->now.bytes + piece.begin;
  return *text == ' ' ||
         (piece.end - piece.begin >= b->length && memcmp(text, b->replacement, b->length) == 0);
}

static bool must_prepend(const struct blanks *b, const struct passage *p,
                         struct passage_piece piece) {
  if (b->prepend == BLANKS_NEVER || begins_with(b, p, piece)) return false;
  return b->prepend == BLANKS_ALWAYS || passage_is_first(p, piece.begin);
}

static void replace_blanks(const struct blanks *b, struct passage *p, struct passage_piece piece) {
  const char *text = p->now.bytes;
  for (size_t at = piece.begin, end; at < piece.end && !passage_ends(p, at); at = end) {
    const char *blank = memchr(text + at, ' ', piece.end - at);
    end = blank ? (size_t)(blank - text) : piece.end;
    passage_keep(p, at, end);
    if (blank) passage_put(p, b->replacement, b->length, end, end + 1);
    end += blank != NULL;
  }
}

void split_blanks_apply(const struct split_step *s, struct passage *p) {
  const struct blanks *b = &s->blanks;
  for (size_t i = 0; i < p->pieces.count; i++) {
    const struct passage_piece piece = p->pieces.piece[i];
    const size_t begin = p->length;
    if (must_prepend(b, p, piece)) put_before(p, piece, b->replacement, b->length);
    replace_blanks(b, p, piece);
    passage_cut(p, begin, p->length);
  }
  passage_take(p);
}

void split_prefix_apply(const struct split_step *s, struct passage *p) {
  (void)s;
  for (size_t i = 0; i < p->pieces.count; i++) {
    const struct passage_piece piece = p->pieces.piece[i];
    const size_t begin = p->length;
    if (passage_ends(p, piece.begin)) break;
    if (p->now.bytes[piece.begin] != ' ') put_before(p, piece, " ", 1);
    passage_keep(p, piece.begin, piece.end);
    passage_cut(p, begin, p->length);
  }
  passage_take(p);
}

/* --- bytes --- */

static bool stays(char c) { return c > ' ' && c < 0x7f; }

/* The letters of one character's bytes: all come from it. Returns its length. */
static size_t put_letters(struct passage *p, size_t at) {
  char out[BYTES_WRITTEN_MAX * UNICODE_BYTES_MAX];
  size_t length;
  unicode_read(p->now.bytes + at, &length);
  const size_t written = bytes_write(p->now.bytes + at, length, out);
  passage_put(p, out, written, at, at + length);
  return length;
}

void split_bytes_apply(const struct split_step *s, struct passage *p) {
  (void)s;
  for (size_t i = 0; i < p->pieces.count; i++) {
    const struct passage_piece piece = p->pieces.piece[i];
    const size_t begin = p->length;
    for (size_t at = piece.begin, end; at < piece.end && !passage_ends(p, at); at = end) {
      for (end = at; end < piece.end && stays(p->now.bytes[end]); end++) {
      }
      passage_keep(p, at, end);
      if (end < piece.end) end += put_letters(p, end);
    }
    passage_cut(p, begin, p->length);
  }
  passage_take(p);
}
