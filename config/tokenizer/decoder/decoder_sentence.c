/* decoder_sentence: the text of pieces as sentencepiece decodes them: marks become blanks, without
 * those that its normalizer adds; the unknown piece has a text of its own. */
#include <string.h>

#include "config/document/text.h"
#include "config/tokenizer/decoder/decoder.h"
#include "config/tokenizer/decoder/decoder_parts.h"
#include "core/base/size.h"

static struct sentencepiece_text piece_at(const struct decoder_list *l, size_t i) {
  const size_t begin = i ? l->end[i - 1] : 0;
  return (struct sentencepiece_text){l->bytes ? l->bytes + begin : "", l->end[i] - begin};
}

/* Appends the first character of the byte pieces from `i` to before `end`; U+FFFD for a byte that
 * begins none. Returns the number of its pieces. */
static size_t append_character(struct decoder_work *w, size_t i, size_t end) {
  char bytes[UNICODE_BYTES_MAX];
  size_t count = 0;
  for (; count < sizeof bytes && i + count < end; count++)
    bytes[count] = (char)sentencepiece_byte(piece_at(&w->now, i + count));
  const size_t size = text_character(bytes, count);
  if (size)
    decoder_append(w, bytes, size);
  else
    decoder_append(w, DECODER_REPLACEMENT, sizeof DECODER_REPLACEMENT - 1);
  return size_max(size, 1);
}

/* The end of the pieces from `i` on that are bytes. */
static size_t end_bytes(const struct decoder_step *s, const struct decoder_work *w, size_t i) {
  while (s->bytes && i < w->now.count && sentencepiece_byte(piece_at(&w->now, i)) >= 0) i++;
  return i;
}

/* Appends a piece; *skips: how many marks at the beginning of the text are still left out. */
static void append_piece(const struct decoder_step *s, struct decoder_work *w,
                         struct sentencepiece_text t, size_t *skips) {
  if (t.length == s->length && memcmp(t.bytes, s->text, t.length) == 0) {
    decoder_append(w, s->other, s->other_length);
    return;
  }
  if (w->next.length == 0 && *skips > 0 && sentencepiece_is_blank(t.bytes, t.length)) {
    t = (struct sentencepiece_text){t.bytes + SENTENCEPIECE_BLANK_SIZE,
                                    t.length - SENTENCEPIECE_BLANK_SIZE};
    *skips -= 1;
  }
  while (t.length > 0) {
    const char *blank = memmem(t.bytes, t.length, SENTENCEPIECE_BLANK, SENTENCEPIECE_BLANK_SIZE);
    const size_t before = blank ? (size_t)(blank - t.bytes) : t.length;
    decoder_append(w, t.bytes, before);
    if (!blank) return;
    decoder_append(w, " ", 1);
    t = (struct sentencepiece_text){blank + SENTENCEPIECE_BLANK_SIZE,
                                    t.length - before - SENTENCEPIECE_BLANK_SIZE};
  }
}

/* A blank is left out at the beginning of each piece before which there is no text, or of one. */
void decoder_sentence(const struct decoder_step *s, struct decoder_work *w) {
  size_t skips = s->stop;
  for (size_t i = 0, end; i < w->now.count && w->e->status == STATUS_OK; i = size_max(end, i + 1)) {
    end = end_bytes(s, w, i);
    for (size_t at = i; at < end && w->e->status == STATUS_OK;) at += append_character(w, at, end);
    if (end == i) append_piece(s, w, piece_at(&w->now, i), &skips);
    decoder_end_piece(w);
  }
  decoder_commit(w);
}
