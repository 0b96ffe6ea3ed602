/* pretokenizer_chars: steps that cut by the classes of characters, or after so many of them. */
#include "config/tokenizer/pretokenizer/pretokenizer_parts.h"

/* --- classes --- */

/* Of a character that the step is for; all others are SPLIT_RUN. */
static const enum split_class met[] = {[SPLIT_REMOVED] = SPLIT_DROP,
                                       [SPLIT_ISOLATED] = SPLIT_ALONE,
                                       [SPLIT_MERGED_WITH_PREVIOUS] = SPLIT_END,
                                       [SPLIT_MERGED_WITH_NEXT] = SPLIT_BEGIN,
                                       [SPLIT_CONTIGUOUS] = SPLIT_OTHER_RUN};

static enum split_class class_of(const struct pretokenizer_step *s, uint32_t c) {
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
  return is ? met[s->behavior] : SPLIT_RUN;
}

void pretokenizer_chars_init(struct pretokenizer_step *s, enum pretokenizer_chars chars,
                             enum split_behavior behavior) {
  s->apply = pretokenizer_chars_apply;
  s->chars = chars;
  s->behavior = behavior;
  for (uint32_t c = 0; c < sizeof s->ascii; c++) s->ascii[c] = (unsigned char)class_of(s, c);
}

/* --- cutting --- */

static void cut_piece(const struct pretokenizer_step *s, struct splitter *cutter,
                      struct passage_piece piece) {
  const char *text = cutter->p->now.bytes;
  for (size_t at = piece.begin, length; at < piece.end && !passage_is_over(cutter->p, at);
       at += length) {
    const unsigned char byte = (unsigned char)text[at];
    enum split_class is;
    length = 1;
    is = byte < sizeof s->ascii ? s->ascii[byte] : class_of(s, unicode_read(text + at, &length));
    splitter_feed(cutter, at, at + length, is);
  }
  splitter_close(cutter);
}

void pretokenizer_chars_apply(const struct pretokenizer_step *s, struct passage *p) {
  struct splitter cutter = {.p = p};
  for (size_t i = 0; i < p->pieces.count; i++) cut_piece(s, &cutter, p->pieces.piece[i]);
  passage_commit_pieces(p);
}

/* Behind so many characters of a piece, or its end. */
static size_t skip(const char *text, struct passage_piece piece, size_t characters) {
  size_t at = piece.begin, length;
  for (; characters > 0 && at < piece.end; characters--, at += length)
    unicode_read(text + at, &length);
  return at;
}

void pretokenizer_length_apply(const struct pretokenizer_step *s, struct passage *p) {
  for (size_t i = 0; i < p->pieces.count; i++) {
    struct passage_piece left = p->pieces.piece[i];
    while (left.begin < left.end && !passage_is_over(p, left.begin)) {
      const size_t end = skip(p->now.bytes, left, s->length);
      passage_add_piece(p, left.begin, end);
      left.begin = (uint32_t)end;
    }
  }
  passage_commit_pieces(p);
}
