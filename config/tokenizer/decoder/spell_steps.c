/* spell_steps: what each type of decoder does to the pieces. */
#include <string.h>

#include "config/document/text.h"
#include "config/tokenizer/decoder/spell.h"
#include "config/tokenizer/decoder/spell_parts.h"

/* --- pieces --- */

struct spell_view {
  const char *bytes;
  size_t length;
};

static struct spell_view piece_at(const struct spell_list *l, size_t i) {
  const size_t begin = i ? l->end[i - 1] : 0;
  return (struct spell_view){l->bytes ? l->bytes + begin : "", l->end[i] - begin};
}

static bool begins_with(struct spell_view v, const char *text, size_t length) {
  return v.length >= length && memcmp(v.bytes, text, length) == 0;
}

/* Puts down a text, which is not empty, in the place of another wherever that is. */
static void put_replaced(struct spell_work *w, struct spell_view v, struct spell_view old,
                         struct spell_view other) {
  while (v.length > 0) {
    const char *found = memmem(v.bytes, v.length, old.bytes, old.length);
    const size_t before = found ? (size_t)(found - v.bytes) : v.length;
    spell_put(w, v.bytes, before);
    if (!found) return;
    spell_put(w, other.bytes, other.length);
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
static void clean_up(struct spell_work *w, size_t begin) {
  if (w->e->status || w->next.length == begin) return;
  char *text = w->next.bytes + begin;
  size_t length = w->next.length - begin;
  if (!may_have_marks(text, length)) return;
  for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
    length = replace_in_place(text, length, marks[i][0], marks[i][1]);
  w->next.length = begin + length;
}

/* --- steps --- */

void spell_byte_level(const struct spell_step *s, struct spell_work *w) {
  (void)s;
  for (size_t i = 0; i < w->now.count; i++) {
    const struct spell_view v = piece_at(&w->now, i);
    spell_put_letters(w, v.bytes, v.length);
  }
  spell_take_bytes(w);
}

void spell_word_piece(const struct spell_step *s, struct spell_work *w) {
  for (size_t i = 0; i < w->now.count; i++) {
    const struct spell_view v = piece_at(&w->now, i);
    const size_t begin = w->next.length;
    const bool goes_on = i > 0 && begins_with(v, s->text, s->length);
    const size_t skipped = goes_on ? s->length : 0;
    if (i > 0 && !goes_on) spell_put(w, " ", 1);
    spell_put(w, v.bytes + skipped, v.length - skipped);
    if (s->cleanup) clean_up(w, begin);
    spell_end_piece(w);
  }
  spell_take(w);
}

/* The first piece loses its replacements, not only one that was put there. */
void spell_metaspace(const struct spell_step *s, struct spell_work *w) {
  const struct blanks *b = &s->blanks;
  const struct spell_view old = {b->replacement, b->length};
  for (size_t i = 0; i < w->now.count; i++) {
    const bool none = i == 0 && b->prepend != BLANKS_NEVER;
    put_replaced(w, piece_at(&w->now, i), old, (struct spell_view){" ", !none});
    spell_end_piece(w);
  }
  spell_take(w);
}

void spell_bpe(const struct spell_step *s, struct spell_work *w) {
  const struct spell_view suffix = {s->text, s->length};
  for (size_t i = 0; i < w->now.count; i++) {
    const bool last = i + 1 == w->now.count;
    put_replaced(w, piece_at(&w->now, i), suffix, (struct spell_view){" ", !last});
    spell_end_piece(w);
  }
  spell_take(w);
}

static bool is_repeated(const struct spell_list *l, size_t i) {
  if (i == 0) return false;
  const struct spell_view v = piece_at(l, i), before = piece_at(l, i - 1);
  return v.length == before.length && memcmp(v.bytes, before.bytes, v.length) == 0;
}

/* The padding stands between letters that are double, and is nothing else. */
void spell_ctc(const struct spell_step *s, struct spell_work *w) {
  const struct spell_view padding = {s->text, s->length}, nothing = {"", 0};
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
    if (w->next.length > begin) spell_end_piece(w);
  }
  spell_take(w);
}

void spell_replace(const struct spell_step *s, struct spell_work *w) {
  struct pattern_search search;
  if (pattern_search_begin(&search, s->pattern, NULL, NULL, 0, w->e)) return;
  for (size_t i = 0; i < w->now.count && w->e->status == STATUS_OK; i++) {
    const struct spell_view v = piece_at(&w->now, i);
    size_t at = 0;
    pattern_search_turn(&search, v.bytes, v.length);
    while (v.length > 0 && pattern_search_next(&search, w->e)) {
      spell_put(w, v.bytes + at, search.begin - at);
      spell_put(w, s->text, s->length);
      at = search.end;
    }
    spell_put(w, v.bytes + at, v.length - at);
    spell_end_piece(w);
  }
  pattern_search_end(&search);
  spell_take(w);
}

/* --- bytes that the vocabulary does not have --- */

static int hex_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Of <0x61>; of one digit, the other may be a sign. */
int spell_byte_of(const char *piece, size_t length) {
  if (length != 6 || memcmp(piece, "<0x", 3) != 0 || piece[5] != '>') return -1;
  const int high = piece[3] == '+' ? 0 : hex_of(piece[3]), low = hex_of(piece[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* The bytes put down from `begin` on become a piece, or one for each if they are no text. */
static void end_bytes(struct spell_work *w, size_t begin) {
  static const char bad[] = SPELL_REPLACEMENT;
  const size_t count = w->next.length - begin;
  if (count == 0 || w->e->status) return;
  if (text_is_utf8(w->next.bytes + begin, count)) {
    spell_end_piece(w);
    return;
  }
  w->next.length = begin;
  for (size_t i = 0; i < count; i++) {
    spell_put(w, bad, strlen(bad));
    spell_end_piece(w);
  }
}

void spell_byte_fallback(const struct spell_step *s, struct spell_work *w) {
  (void)s;
  size_t begin = 0; /* of bytes that belong together */
  for (size_t i = 0; i < w->now.count; i++) {
    const struct spell_view v = piece_at(&w->now, i);
    const int byte = spell_byte_of(v.bytes, v.length);
    if (byte >= 0) {
      spell_put(w, &(char){(char)byte}, 1);
      continue;
    }
    end_bytes(w, begin);
    spell_put(w, v.bytes, v.length);
    spell_end_piece(w);
    begin = w->next.length;
  }
  end_bytes(w, begin);
  spell_take(w);
}

void spell_fuse(const struct spell_step *s, struct spell_work *w) {
  (void)s;
  spell_put(w, w->now.bytes, w->now.length);
  spell_end_piece(w);
  spell_take(w);
}

/* Characters at the beginning are counted before those at the end: both may be the same ones. */
void spell_strip(const struct spell_step *s, struct spell_work *w) {
  for (size_t i = 0; i < w->now.count; i++) {
    const struct spell_view v = piece_at(&w->now, i);
    size_t begin = 0, end = v.length, size;
    for (size_t n = 0; n < s->start && begin < v.length; n++, begin += size)
      if (unicode_read(v.bytes + begin, &size) != s->character) break;
    for (size_t n = 0; n < s->stop && end > 0; n++, end -= size)
      if (unicode_read_before(v.bytes, end, &size) != s->character) break;
    if (begin < end) spell_put(w, v.bytes + begin, end - begin);
    spell_end_piece(w);
  }
  spell_take(w);
}
