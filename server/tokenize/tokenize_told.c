/* tokenize_told: what texts have become, as text that is written when the answer is planned:
 * how long a string is only its token knows. */
#include "server/tokenize/tokenize_told.h"

#include "core/base/size.h"
#include "server/number/number.h"
#include "server/text/json_string.h"

enum { IDS, STRINGS, CHARACTERS, BYTES };

/* A section that is being written. */
struct tokenize_told_text {
  const struct tokenize_texts *d;
  unsigned section;
  struct arena *arena; /* for the pieces of tokens that are not kept as they are written */
  struct error *e;
};

/* --- places in characters --- */

/* How many characters there are before a byte, counted from the last one that was asked about. */
struct tokenize_told_place {
  size_t byte, character;
};

/* The beginnings of tokens are near each other, and so are their ends: but a million tokens may
 * have the same million bytes for their place. */
struct tokenize_told_places {
  const char *text;
  struct tokenize_told_place begin, end;
};

static bool begins_character(char byte) { return ((unsigned char)byte & 0xc0) != 0x80; }

static int64_t count_to(const char *text, struct tokenize_told_place *p, size_t byte) {
  while (p->byte < byte) p->character += begins_character(text[p->byte++]);
  while (p->byte > byte) p->character -= begins_character(text[--p->byte]);
  return (int64_t)p->character;
}

static char *write_place(struct tokenize_told_places *p, const struct token *t, char *out) {
  *out++ = '[';
  out = number_write_integer(out, count_to(p->text, &p->begin, t->begin));
  *out++ = ',';
  out = number_write_integer(out, count_to(p->text, &p->end, t->end));
  *out++ = ']';
  return out;
}

/* --- lists --- */

static char *write_string(const struct tokenize_told_text *t, const struct token *token,
                          char *out) {
  const struct tokenizer_text piece = tokenizer_piece(t->d->tokenizer, token->id, t->arena, t->e);
  return piece.bytes ? json_string_write(piece.bytes, piece.length, out)
                     : answer_write_text(out, "null");
}

static char *write_bytes(const struct token *t, char *out) {
  *out++ = '[';
  out = number_write_integer(out, t->begin);
  *out++ = ',';
  out = number_write_integer(out, t->end);
  *out++ = ']';
  return out;
}

static char *write_item(const struct tokenize_told_text *t, size_t item, char *out) {
  const struct texts *texts = t->d->texts;
  const struct texts_part *part = &texts->part[item * texts->of_item];
  struct tokenize_told_places place[2] = {{0}};
  for (unsigned i = 0; i < texts->of_item; i++) place[i].text = texts->bytes + part[i].at;
  *out++ = '[';
  for (size_t i = t->d->first[item]; i < t->d->first[item + 1]; i++) {
    const struct token *token = &t->d->tokens.token[i];
    if (i > t->d->first[item]) *out++ = ',';
    out = t->section == IDS       ? number_write_integer(out, token->id)
          : t->section == STRINGS ? write_string(t, token, out)
          : t->section == BYTES   ? write_bytes(token, out)
                                  : write_place(&place[token->text], token, out);
  }
  *out++ = ']';
  return out;
}

/* --- room --- */

/* Bytes of all strings, escaped. */
static size_t room_of_strings(const struct tokenize_texts *d) {
  enum { NULL_ROOM = 5, QUOTES = 3 };
  size_t room = 0;
  for (size_t i = 0; i < d->tokens.count; i++)
    room +=
        size_max(NULL_ROOM, QUOTES + JSON_STRING_ROOM *
                                         tokenizer_piece_room(d->tokenizer, d->tokens.token[i].id));
  return room;
}

static size_t room_of(const struct tokenize_texts *d, unsigned section) {
  enum { INTEGER = 12, PAIR = 2 * INTEGER + 3, BRACKETS = 3 };
  const size_t each = section == IDS ? INTEGER : PAIR;
  const size_t tokens = section == STRINGS ? room_of_strings(d) : each * d->tokens.count;
  return tokens + BRACKETS * (d->texts->items + 1) + 1 + NUMBER_WRITE_MARGIN;
}

static char *write_section(const struct tokenize_told_text *t, char *out) {
  const struct texts *texts = t->d->texts;
  if (!texts->alone) *out++ = '[';
  for (size_t item = 0; item < texts->items; item++) {
    if (item > 0) *out++ = ',';
    out = write_item(t, item, out);
  }
  if (!texts->alone) *out++ = ']';
  return out;
}

enum status tokenize_told(const struct tokenize_texts *d, struct answer_section *section,
                          struct arena *a, struct error *e) {
  static const char *const names[] = {
      [IDS] = "tokens", [STRINGS] = "strings", [CHARACTERS] = "offsets", [BYTES] = "byte_offsets"};
  for (unsigned i = 0; i < TOKENIZE_TOLD_SECTIONS; i++) {
    const struct tokenize_told_text t = {d, i, a, e};
    char *text = arena_alloc(a, room_of(d, i), 1, e);
    if (!text) return e->status;
    *write_section(&t, text) = '\0';
    section[i] = answer_section_text(names[i], text);
  }
  return e->status;
}
