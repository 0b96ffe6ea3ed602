/* decoder_steps: what each type of decoder does to the pieces. */
#include <string.h>

#include "config/document/text.h"
#include "config/tokenizer/decoder/decoder.h"
#include "config/tokenizer/decoder/decoder_parts.h"

/* --- pieces --- */

struct decoder_view {
  const char *bytes;
  size_t length;
};

static struct decoder_view piece_at(const struct decoder_list *l, size_t i) {
  const size_t begin = i ? l->end[i - 1] : 0;
  return (struct decoder_view){l->bytes ? l->bytes + begin : "", l->end[i] - begin};
}

static bool begins_with(struct decoder_view v, const char *text, size_t length) {
  return v.length >= length && memcmp(v.bytes, text, length) == 0;
}

/* Puts down a text, which is not empty, in the place of another wherever that is. */
static void put_replaced(struct decoder_work *w, struct decoder_view v, struct decoder_view old,
                         struct decoder_view other) {
  while (v.length > 0) {
    const char *found = memmem(v.bytes, v.length, old.bytes, old.length);
    const size_t before = found ? (size_t)(found - v.bytes) : v.length;
    decoder_append(w, v.bytes, before);
    if (!found) return;
    decoder_append(w, other.bytes, other.length);
    v.bytes = found + old.length;
    v.length -= before + old.length;
  }
}

/* --- cleaning up --- */

/* In the place of these, in this order, the bytes of the second, which are fewer. */
static const char *const marks[][2] = {{" .", "."},     {" ?", "?"},           {" !", "!"},
                                       {" ,", ","},     {" ' ", "'"},          {" n't", "n't"},
                                       {" 'm", "'m"},   {" do not", " don't"}, {" 's", "'s"},
                                       {" 've", "'ve"}, {" 're", "'re"}};

/* All of them begin with a blank, and most texts have none of what follows it. */
static bool may_have_marks(const char *text, size_t length) {
  const char *end = text + length;
  for (const char *at = text; (at = memchr(at, ' ', (size_t)(end - at))); at++)
    if (end - at > 1 && at[1] && strchr(".?!,'nd", at[1])) return true;
  return false;
}

static size_t replace_in_place(char *text, size_t length, const char *old, const char *other) {
  const size_t old_length = strlen(old), other_length = strlen(other);
  char *out = text, *at = text, *end = text + length;
  for (char *found; (found = memmem(at, (size_t)(end - at), old, old_length));) {
    memmove(out, at, (size_t)(found - at));
    out += found - at;
    memcpy(out, other, other_length);
    out += other_length;
    at = found + old_length;
  }
  memmove(out, at, (size_t)(end - at));
  return (size_t)(out - text) + (size_t)(end - at);
}

/* Of what has been put down from `begin` on. */
static void clean_up(struct decoder_work *w, size_t begin) {
  if (w->e->status || w->next.length == begin) return;
  char *text = w->next.bytes + begin;
  size_t length = w->next.length - begin;
  if (!may_have_marks(text, length)) return;
  for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
    length = replace_in_place(text, length, marks[i][0], marks[i][1]);
  w->next.length = begin + length;
}

/* --- steps --- */

void decoder_byte_level(const struct decoder_step *s, struct decoder_work *w) {
  (void)s;
  for (size_t i = 0; i < w->now.count; i++) {
    const struct decoder_view v = piece_at(&w->now, i);
    decoder_append_letters(w, v.bytes, v.length);
  }
  decoder_commit_bytes(w);
}

void decoder_word_piece(const struct decoder_step *s, struct decoder_work *w) {
  for (size_t i = 0; i < w->now.count; i++) {
    const struct decoder_view v = piece_at(&w->now, i);
    const size_t begin = w->next.length;
    const bool goes_on = i > 0 && begins_with(v, s->text, s->length);
    const size_t skipped = goes_on ? s->length : 0;
    if (i > 0 && !goes_on) decoder_append(w, " ", 1);
    decoder_append(w, v.bytes + skipped, v.length - skipped);
    if (s->cleanup) clean_up(w, begin);
    decoder_end_piece(w);
  }
  decoder_commit(w);
}

/* The first piece loses its replacements, not only one that was put there. */
void decoder_metaspace(const struct decoder_step *s, struct decoder_work *w) {
  const struct metaspace *b = &s->metaspace;
  const struct decoder_view old = {b->replacement, b->length};
  for (size_t i = 0; i < w->now.count; i++) {
    const bool none = i == 0 && b->prepend != METASPACE_NEVER;
    put_replaced(w, piece_at(&w->now, i), old, (struct decoder_view){" ", !none});
    decoder_end_piece(w);
  }
  decoder_commit(w);
}

void decoder_bpe(const struct decoder_step *s, struct decoder_work *w) {
  const struct decoder_view suffix = {s->text, s->length};
  for (size_t i = 0; i < w->now.count; i++) {
    const bool last = i + 1 == w->now.count;
    put_replaced(w, piece_at(&w->now, i), suffix, (struct decoder_view){" ", !last});
    decoder_end_piece(w);
  }
  decoder_commit(w);
}

static bool is_repeated(const struct decoder_list *l, size_t i) {
  if (i == 0) return false;
  const struct decoder_view v = piece_at(l, i), before = piece_at(l, i - 1);
  return v.length == before.length && memcmp(v.bytes, before.bytes, v.length) == 0;
}

/* The padding stands between letters that are double, and is nothing else. */
void decoder_ctc(const struct decoder_step *s, struct decoder_work *w) {
  const struct decoder_view padding = {s->text, s->length}, nothing = {"", 0};
  for (size_t i = 0; i < w->now.count; i++) {
    const size_t begin = w->next.length;
    if (is_repeated(&w->now, i)) continue;
    put_replaced(w, piece_at(&w->now, i), padding, nothing);
    if (s->cleanup) {
      clean_up(w, begin);
      if (w->e->status == STATUS_OK && w->next.length > begin)
        w->next.length =
            begin + replace_in_place(w->next.bytes + begin, w->next.length - begin, s->other, " ");
    }
    if (w->next.length > begin) decoder_end_piece(w);
  }
  decoder_commit(w);
}

void decoder_replace(const struct decoder_step *s, struct decoder_work *w) {
  struct pattern_search search;
  if (pattern_search_begin(&search, s->pattern, NULL, NULL, 0, w->e)) return;
  for (size_t i = 0; i < w->now.count && w->e->status == STATUS_OK; i++) {
    const struct decoder_view v = piece_at(&w->now, i);
    size_t at = 0;
    pattern_search_turn(&search, v.bytes, v.length);
    while (v.length > 0 && pattern_search_next(&search, w->e)) {
      decoder_append(w, v.bytes + at, search.begin - at);
      decoder_append(w, s->text, s->length);
      at = search.end;
    }
    decoder_append(w, v.bytes + at, v.length - at);
    decoder_end_piece(w);
  }
  pattern_search_end(&search);
  decoder_commit(w);
}

/* --- bytes that the vocabulary does not have --- */

static int hex_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Of <0x61>; of one digit, the other may be a sign. */
int decoder_byte_of(const char *piece, size_t length) {
  if (length != 6 || memcmp(piece, "<0x", 3) != 0 || piece[5] != '>') return -1;
  const int high = piece[3] == '+' ? 0 : hex_of(piece[3]), low = hex_of(piece[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* The bytes put down from `begin` on become a piece, or one for each if they are no text. */
static void end_bytes(struct decoder_work *w, size_t begin) {
  static const char bad[] = DECODER_REPLACEMENT;
  const size_t count = w->next.length - begin;
  if (count == 0 || w->e->status) return;
  if (text_is_utf8(w->next.bytes + begin, count)) {
    decoder_end_piece(w);
    return;
  }
  w->next.length = begin;
  for (size_t i = 0; i < count; i++) {
    decoder_append(w, bad, strlen(bad));
    decoder_end_piece(w);
  }
}

void decoder_byte_fallback(const struct decoder_step *s, struct decoder_work *w) {
  (void)s;
  size_t begin = 0; /* of bytes that belong together */
  for (size_t i = 0; i < w->now.count; i++) {
    const struct decoder_view v = piece_at(&w->now, i);
    const int byte = decoder_byte_of(v.bytes, v.length);
    if (byte >= 0) {
      decoder_append(w, &(char){(char)byte}, 1);
      continue;
    }
    end_bytes(w, begin);
    decoder_append(w, v.bytes, v.length);
    decoder_end_piece(w);
    begin = w->next.length;
  }
  end_bytes(w, begin);
  decoder_commit(w);
}

void decoder_fuse(const struct decoder_step *s, struct decoder_work *w) {
  (void)s;
  decoder_append(w, w->now.bytes, w->now.length);
  decoder_end_piece(w);
  decoder_commit(w);
}

/* Characters at the beginning are counted before those at the end: both may be the same ones. */
void decoder_strip(const struct decoder_step *s, struct decoder_work *w) {
  for (size_t i = 0; i < w->now.count; i++) {
    const struct decoder_view v = piece_at(&w->now, i);
    size_t begin = 0, end = v.length, size;
    for (size_t n = 0; n < s->start && begin < v.length; n++, begin += size)
      if (unicode_read(v.bytes + begin, &size) != s->character) break;
    for (size_t n = 0; n < s->stop && end > 0; n++, end -= size)
      if (unicode_read_before(v.bytes, end, &size) != s->character) break;
    if (begin < end) decoder_append(w, v.bytes + begin, end - begin);
    decoder_end_piece(w);
  }
  decoder_commit(w);
}
