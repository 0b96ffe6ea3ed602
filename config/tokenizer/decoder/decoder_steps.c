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

/* Appends a piece in which each `old`, which is not empty, is replaced by `other`. */
static void append_replaced(struct decoder_work *w, struct decoder_view v, struct decoder_view old,
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

/* Replaces each `old` by `other`, which is not longer; returns the length of the text then. */
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

/* Cleans up the appended bytes from `begin` on. */
static void clean_up(struct decoder_work *w, size_t begin) {
  static const char *const marks[][2] = {{" .", "."},     {" ?", "?"},           {" !", "!"},
                                         {" ,", ","},     {" ' ", "'"},          {" n't", "n't"},
                                         {" 'm", "'m"},   {" do not", " don't"}, {" 's", "'s"},
                                         {" 've", "'ve"}, {" 're", "'re"}};
  if (w->e->status || w->next.length == begin) return;
  char *text = w->next.bytes + begin;
  size_t length = w->next.length - begin;
  /* All marks begin with a blank, and most texts have none of the characters that follow it. */
  const char *blank = text, *end = text + length;
  while ((blank = memchr(blank, ' ', (size_t)(end - blank))) &&
         !(end - blank > 1 && blank[1] && strchr(".?!,'nd", blank[1])))
    blank++;
  if (!blank) return;
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
    const bool continues =
        i > 0 && v.length >= s->length && memcmp(v.bytes, s->text, s->length) == 0;
    const size_t skipped = continues ? s->length : 0;
    if (i > 0 && !continues) decoder_append(w, " ", 1);
    decoder_append(w, v.bytes + skipped, v.length - skipped);
    if (s->cleanup) clean_up(w, begin);
    decoder_end_piece(w);
  }
  decoder_commit(w);
}

/* The first piece loses all its replacements, not only a prepended one. */
void decoder_metaspace(const struct decoder_step *s, struct decoder_work *w) {
  const struct metaspace *m = &s->metaspace;
  const struct decoder_view old = {m->replacement, m->length};
  for (size_t i = 0; i < w->now.count; i++) {
    const bool none = i == 0 && m->prepend != METASPACE_NEVER;
    append_replaced(w, piece_at(&w->now, i), old, (struct decoder_view){" ", !none});
    decoder_end_piece(w);
  }
  decoder_commit(w);
}

void decoder_bpe(const struct decoder_step *s, struct decoder_work *w) {
  const struct decoder_view suffix = {s->text, s->length};
  for (size_t i = 0; i < w->now.count; i++) {
    const bool last = i + 1 == w->now.count;
    append_replaced(w, piece_at(&w->now, i), suffix, (struct decoder_view){" ", !last});
    decoder_end_piece(w);
  }
  decoder_commit(w);
}

/* A repeated piece is dropped; padding separates double letters, and is dropped as well. */
void decoder_ctc(const struct decoder_step *s, struct decoder_work *w) {
  const struct decoder_view padding = {s->text, s->length}, nothing = {"", 0};
  struct decoder_view before = nothing;
  for (size_t i = 0; i < w->now.count; i++) {
    const size_t begin = w->next.length;
    const struct decoder_view v = piece_at(&w->now, i);
    const bool repeated =
        i > 0 && v.length == before.length && memcmp(v.bytes, before.bytes, v.length) == 0;
    before = v;
    if (repeated) continue;
    append_replaced(w, v, padding, nothing);
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
    pattern_search_text(&search, v.bytes, v.length);
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

/* The library accepts a plus sign as the first digit, too. */
int decoder_byte_of(const char *piece, size_t length) {
  if (length != 6 || memcmp(piece, "<0x", 3) != 0 || piece[5] != '>') return -1;
  const int high = piece[3] == '+' ? 0 : hex_of(piece[3]), low = hex_of(piece[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Ends a piece of the bytes from `begin` on; if they are not UTF-8, one U+FFFD for each. */
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
  size_t begin = 0; /* of the bytes of successive pieces */
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

/* The same characters may count both at the beginning and at the end, as in the library. */
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
