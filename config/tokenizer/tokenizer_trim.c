/* tokenizer_trim: places of tokens without the blanks at their ends ("trim_offsets").
 *
 * What counts are the blanks of the token, not those of the text: a blank that was put in front of
 * a word is one, too. Each is a character of the text. */
#include "config/tokenizer/pattern/unicode.h"
#include "config/tokenizer/tokenizer_parts.h"

enum { BYTE_BLANK = 0x120 }; /* the letter that stands for the byte of a blank */

/* Characters at the ends of a token. */
struct trim_ends {
  size_t before, behind;
};

static struct trim_ends ends_of_bytes(const char *bytes, size_t length) {
  struct trim_ends n = {0, 0};
  while (n.before < length && bytes[n.before] == ' ') n.before++;
  while (n.behind < length && bytes[length - 1 - n.behind] == ' ') n.behind++;
  return n;
}

static bool is_blank(uint32_t c) { return c == BYTE_BLANK || unicode_is_space(c); }

static struct trim_ends ends_of_text(const char *text, size_t length) {
  struct trim_ends n = {0, 0};
  size_t size;
  for (size_t at = 0; at < length && is_blank(unicode_read(text + at, &size)); at += size)
    n.before++;
  for (size_t at = length; at > 0 && is_blank(unicode_read_before(text, at, &size)); at -= size)
    n.behind++;
  return n;
}

/* A blank at the beginning of a text stays where one is put in front of words: it may be that. */
static void apply(const struct tokenizer *t, const char *text, struct trim_ends n, size_t number,
                  struct token *token) {
  const bool first = number == 0 || token->begin == 0;
  uint32_t end = token->end;
  size_t size;
  if (first && n.before == 1 && postprocessor_leaves_first(t->postprocessor)) n.before = 0;
  for (; n.before > 0 && token->begin < token->end; n.before--) {
    unicode_read(text + token->begin, &size);
    token->begin += (uint32_t)size;
  }
  for (; n.behind > 0 && end > 0; n.behind--) {
    unicode_read_before(text, end, &size);
    end -= (uint32_t)size;
  }
  if (n.behind == 0) token->end = end > token->begin ? end : token->begin;
}

void tokenizer_trim(const struct tokenizer *t, const char *text, size_t number,
                    struct token *token) {
  struct decoder_piece piece;
  if (!tokenizer_find_piece(t, token->id, false, &piece)) return;
  apply(t, text, (piece.raw ? ends_of_bytes : ends_of_text)(piece.bytes, piece.length), number,
        token);
}

void tokenizer_trim_added(const struct tokenizer *t, const char *text, const char *bytes,
                          size_t length, size_t number, struct token *token) {
  apply(t, text, ends_of_text(bytes, length), number, token);
}
