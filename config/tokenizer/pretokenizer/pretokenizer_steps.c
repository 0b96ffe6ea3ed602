/* pretokenizer_steps: what the steps of a pre-tokenizer do to a passage. */
#include <string.h>

#include "config/tokenizer/model/byte_level.h"
#include "config/tokenizer/pretokenizer/pretokenizer_parts.h"

/* --- pieces --- */

struct splitter {
  struct passage *p;
  size_t begin, end; /* of the piece that is open */
  bool open;
  enum split_class is;
};

static void close_piece(struct splitter *c) {
  if (c->open) passage_add_piece(c->p, c->begin, c->end);
  c->open = false;
}

static inline void feed(struct splitter *c, size_t begin, size_t end, enum split_class is) {
  const bool continues = c->open && (is == SPLIT_END || (is == c->is && is != SPLIT_BEGIN));
  if (!continues) {
    close_piece(c);
    c->begin = begin;
    c->is = is == SPLIT_BEGIN ? SPLIT_RUN : is;
  }
  c->end = end;
  c->open = is != SPLIT_DROP;
  if (is == SPLIT_ALONE || is == SPLIT_END) close_piece(c);
}

/* --- by characters --- */

static enum split_class class_of(const struct pretokenizer_step *s, uint32_t c) {
  static const enum split_class delimiter[] = {[SPLIT_REMOVED] = SPLIT_DROP,
                                               [SPLIT_ISOLATED] = SPLIT_ALONE,
                                               [SPLIT_MERGED_WITH_PREVIOUS] = SPLIT_END,
                                               [SPLIT_MERGED_WITH_NEXT] = SPLIT_BEGIN,
                                               [SPLIT_CONTIGUOUS] = SPLIT_OTHER_RUN};
  bool is = false;
  switch (s->chars) {
  case SPLIT_SPACES:
    is = unicode_is_space(c);
    break;
  case SPLIT_PUNCTUATION:
    is = unicode_is_punctuation(c);
    break;
  case SPLIT_NUMBERS:
    is = unicode_is_numeric(c);
    break;
  case SPLIT_ONE:
    is = c == s->character;
    break;
  case SPLIT_BERT:
    if (unicode_is_space(c)) return SPLIT_DROP;
    is = unicode_is_punctuation(c);
    break;
  case SPLIT_WORDS:
    if (unicode_is_space(c)) return SPLIT_DROP;
    is = !unicode_is_word(c);
    break;
  }
  return is ? delimiter[s->behavior] : SPLIT_RUN;
}

void pretokenizer_chars_init(struct pretokenizer_step *s, enum pretokenizer_chars chars,
                             uint32_t character, enum split_behavior behavior) {
  s->chars = chars;
  s->character = character;
  s->behavior = behavior;
  for (uint32_t c = 0; c < sizeof s->ascii; c++) s->ascii[c] = (unsigned char)class_of(s, c);
}

void pretokenizer_chars_apply(const struct pretokenizer_step *s, struct passage *p) {
  struct splitter splitter = {.p = p};
  const char *text = p->now.bytes;
  for (size_t i = 0; i < p->pieces.count; i++) {
    const struct passage_piece piece = p->pieces.piece[i];
    for (size_t at = piece.begin, length; at < piece.end && !passage_is_over(p, at); at += length) {
      const unsigned char byte = (unsigned char)text[at];
      enum split_class is;
      length = 1;
      is = byte < sizeof s->ascii ? s->ascii[byte] : class_of(s, unicode_read(text + at, &length));
      feed(&splitter, at, at + length, is);
    }
    close_piece(&splitter);
  }
  passage_commit_pieces(p);
}

void pretokenizer_length_apply(const struct pretokenizer_step *s, struct passage *p) {
  for (size_t i = 0; i < p->pieces.count; i++) {
    const struct passage_piece piece = p->pieces.piece[i];
    for (size_t begin = piece.begin, end = begin; begin < piece.end && !passage_is_over(p, begin);
         begin = end) {
      for (size_t n = 0, size; n < s->length && end < piece.end; n++, end += size)
        unicode_read(p->now.bytes + end, &size);
      passage_add_piece(p, begin, end);
    }
  }
  passage_commit_pieces(p);
}

/* --- by a pattern --- */

void pretokenizer_pattern_apply(const struct pretokenizer_step *s, struct passage *p) {
  static const struct {
    enum split_class match, rest;
  } classes[] = {
      [SPLIT_REMOVED] = {SPLIT_DROP, SPLIT_ALONE},
      [SPLIT_ISOLATED] = {SPLIT_ALONE, SPLIT_ALONE},
      [SPLIT_MERGED_WITH_PREVIOUS] = {SPLIT_END, SPLIT_BEGIN},
      [SPLIT_MERGED_WITH_NEXT] = {SPLIT_BEGIN, SPLIT_END},
      [SPLIT_CONTIGUOUS] = {SPLIT_OTHER_RUN, SPLIT_RUN},
  };
  const enum split_class match = s->invert ? classes[s->behavior].rest : classes[s->behavior].match,
                         rest = s->invert ? classes[s->behavior].match : classes[s->behavior].rest;
  struct splitter splitter = {.p = p};
  struct pattern_search search;
  if (pattern_search_begin(&search, s->pattern, &p->watch, NULL, 0, p->e)) return;
  for (size_t i = 0; i < p->pieces.count && p->e->status == STATUS_OK; i++) {
    const struct passage_piece piece = p->pieces.piece[i];
    const size_t length = piece.end - piece.begin;
    size_t at = 0;
    pattern_search_text(&search, p->now.bytes + piece.begin, length);
    while (pattern_search_next(&search, p->e) && !passage_is_over(p, piece.begin + search.end)) {
      if (at < search.begin) feed(&splitter, piece.begin + at, piece.begin + search.begin, rest);
      feed(&splitter, piece.begin + search.begin, piece.begin + search.end, match);
      at = search.end;
    }
    if (at < length) feed(&splitter, piece.begin + at, piece.end, rest);
    close_piece(&splitter);
  }
  pattern_search_end(&search);
  passage_commit_pieces(p);
}

/* --- another text --- */

/* The prepended bytes come from the piece's first character. */
static void prepend(struct passage *p, struct passage_piece piece, const char *bytes,
                    size_t length) {
  size_t first;
  unicode_read(p->now.bytes + piece.begin, &first);
  passage_append(p, bytes, length, piece.begin, piece.begin + first);
}

void pretokenizer_metaspace_apply(const struct pretokenizer_step *s, struct passage *p) {
  const struct metaspace *m = &s->metaspace;
  const char *text = p->now.bytes;
  for (size_t i = 0; i < p->pieces.count; i++) {
    const struct passage_piece piece = p->pieces.piece[i];
    const size_t begin = p->length;
    const bool has_one =
        text[piece.begin] == ' ' || (piece.end - piece.begin >= m->length &&
                                     memcmp(text + piece.begin, m->replacement, m->length) == 0);
    if (!has_one && (m->prepend == METASPACE_ALWAYS ||
                     (m->prepend == METASPACE_FIRST && passage_is_first(p, piece.begin))))
      prepend(p, piece, m->replacement, m->length);
    for (size_t at = piece.begin, end; at < piece.end && !passage_is_over(p, at); at = end) {
      const char *blank = memchr(text + at, ' ', piece.end - at);
      end = blank ? (size_t)(blank - text) : piece.end;
      passage_copy(p, at, end);
      if (blank) passage_append(p, m->replacement, m->length, end, end + 1);
      end += blank != NULL;
    }
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
    if (p->now.bytes[piece.begin] != ' ') prepend(p, piece, " ", 1);
    passage_copy(p, piece.begin, piece.end);
    passage_add_piece(p, begin, p->length);
  }
  passage_commit(p);
}

void pretokenizer_bytes_apply(const struct pretokenizer_step *s, struct passage *p) {
  (void)s;
  for (size_t i = 0; i < p->pieces.count; i++) {
    const struct passage_piece piece = p->pieces.piece[i];
    const size_t begin = p->length;
    for (size_t at = piece.begin, end; at < piece.end && !passage_is_over(p, at); at = end) {
      end = at;
      while (end < piece.end && p->now.bytes[end] > ' ' && p->now.bytes[end] < 0x7f) end++;
      passage_copy(p, at, end);
      if (end == piece.end) break;
      /* All bytes of one character come from it. */
      char out[BYTE_LEVEL_BYTES_MAX * UNICODE_BYTES_MAX];
      size_t length;
      unicode_read(p->now.bytes + end, &length);
      const size_t written = byte_level_encode(p->now.bytes + end, length, out);
      passage_append(p, out, written, end, end + length);
      end += length;
    }
    passage_add_piece(p, begin, p->length);
  }
  passage_commit(p);
}
