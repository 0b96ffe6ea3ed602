/* tokenize_answer: the sections of a response with tokens, or the texts of tokens. */
#include "server/tokenize/tokenize_answer.h"

#include "core/base/size.h"
#include "server/number/number.h"
#include "server/text/json_string.h"

/* --- tokens --- */

enum { IDS, STRINGS, CHARACTERS, BYTES };

/* A section that is being written. How long a string is only its token tells, so that sections are
 * written as text when the response is planned. */
struct tokenize_section {
  const struct tokenize_texts *d;
  unsigned section;
  struct arena *arena; /* for strings of tokens that are not stored as they are written */
  struct error *e;
};

/* Positions in a text, from which the next one is counted: the beginnings of tokens are near each
 * other, and so are their ends, but a million tokens may all have the same million bytes. */
struct tokenize_offsets {
  const char *text;
  struct tokenize_offset begin, end;
};

static bool begins_character(char byte) { return ((unsigned char)byte & 0xc0) != 0x80; }

int64_t tokenize_offset_move(const char *text, struct tokenize_offset *p, size_t byte) {
  while (p->byte < byte) p->character += begins_character(text[p->byte++]);
  while (p->byte > byte) p->character -= begins_character(text[--p->byte]);
  return (int64_t)p->character;
}

static char *write_pair(int64_t begin, int64_t end, char *out) {
  *out++ = '[';
  out = number_write_integer(out, begin);
  *out++ = ',';
  out = number_write_integer(out, end);
  *out++ = ']';
  return out;
}

static char *write_item(const struct tokenize_section *t, size_t item, char *out) {
  const struct texts *texts = t->d->texts;
  const struct texts_part *part = &texts->part[item * texts->of_item];
  struct tokenize_offsets offsets[2] = {{0}};
  for (unsigned i = 0; i < texts->of_item; i++) offsets[i].text = texts->bytes + part[i].at;
  *out++ = '[';
  for (size_t i = t->d->first[item]; i < t->d->first[item + 1]; i++) {
    const struct token *token = &t->d->tokens.token[i];
    struct tokenize_offsets *at = &offsets[token->text];
    struct tokenizer_text piece;
    if (i > t->d->first[item]) *out++ = ',';
    switch (t->section) {
    case IDS:
      out = number_write_integer(out, token->id);
      break;
    case STRINGS:
      piece = tokenizer_piece(t->d->tokenizer, token->id, t->arena, t->e);
      out = piece.bytes ? json_string_write(piece.bytes, piece.length, out)
                        : answer_write_text(out, "null");
      break;
    case CHARACTERS: {
      const int64_t begin = tokenize_offset_move(at->text, &at->begin, token->begin);
      out = write_pair(begin, tokenize_offset_move(at->text, &at->end, token->end), out);
      break;
    }
    default:
      out = write_pair(token->begin, token->end, out);
    }
  }
  *out++ = ']';
  return out;
}

/* Returns an upper bound of a section's bytes. */
static size_t section_room(const struct tokenize_texts *d, unsigned section) {
  enum { INTEGER = 12, PAIR = 2 * INTEGER + 3, BRACKETS = 3, NULL_ROOM = 5, QUOTES = 3 };
  size_t room = BRACKETS * (d->texts->items + 1) + 1 + NUMBER_WRITE_MARGIN;
  if (section != STRINGS) return room + (section == IDS ? INTEGER : PAIR) * d->tokens.count;
  for (size_t i = 0; i < d->tokens.count; i++) {
    const size_t bytes = tokenizer_piece_room(d->tokenizer, d->tokens.token[i].id);
    room += size_max(NULL_ROOM, QUOTES + JSON_STRING_ROOM * bytes);
  }
  return room;
}

enum status tokenize_answer_sections(const struct tokenize_texts *d, struct answer_section *section,
                                     struct arena *a, struct error *e) {
  static const char *const names[] = {
      [IDS] = "tokens", [STRINGS] = "strings", [CHARACTERS] = "offsets", [BYTES] = "byte_offsets"};
  for (unsigned i = 0; i < TOKENIZE_SECTIONS; i++) {
    const struct tokenize_section t = {d, i, a, e};
    char *text = arena_alloc(a, section_room(d, i), 1, e), *out = text;
    if (!text) return e->status;
    if (!d->texts->alone) *out++ = '[';
    for (size_t item = 0; item < d->texts->items; item++) {
      if (item > 0) *out++ = ',';
      out = write_item(&t, item, out);
    }
    if (!d->texts->alone) *out++ = ']';
    *out = '\0';
    section[i] = answer_section_text(names[i], text);
  }
  return e->status;
}

/* --- texts, and the response --- */

const char *tokenize_answer_texts(const struct tokenize_request *r, struct arena *a,
                                  struct error *e) {
  enum { QUOTES = 3, BRACKETS = 3 };
  size_t room = BRACKETS, each;
  for (size_t i = 0; i < r->items; i++)
    if (!size_mul(r->text[i].length, JSON_STRING_ROOM, &each) || !size_add(each, QUOTES, &each) ||
        !size_add(room, each, &room)) {
      error_set(e, STATUS_TOO_LARGE, "the texts exceed the address space");
      return NULL;
    }
  char *text = arena_alloc(a, room, 1, e), *out = text;
  if (!text) return NULL;
  if (!r->alone) *out++ = '[';
  for (size_t i = 0; i < r->items; i++) {
    if (i > 0) *out++ = ',';
    out = json_string_write(r->text[i].bytes, r->text[i].length, out);
  }
  if (!r->alone) *out++ = ']';
  *out = '\0';
  return text;
}

enum status render_answer_plan(struct answer *a, const char *model,
                               const struct tokenize_request *r, size_t max_bytes,
                               struct arena *arena, struct error *e) {
  struct answer_content *content = arena_alloc(arena, 1, sizeof *content, e);
  struct answer_section *section = arena_alloc(arena, 1 + TOKENIZE_SECTIONS, sizeof *section, e);
  *a = (struct answer){.form = ANSWER_JSON};
  if (e->status) return e->status;
  *content = (struct answer_content){.model = model, .sections = 2, .section = section};
  section[0] = answer_section_text("text", tokenize_answer_texts(r, arena, e));
  if (e->status || tokenize_answer_sections(&r->texts, section + 1, arena, e)) return e->status;
  return answer_plan(a, ANSWER_JSON, content, max_bytes, arena, e);
}

enum status tokenize_answer_plan(struct answer *a, const char *model,
                                 const struct tokenize_request *r, size_t max_bytes,
                                 struct arena *arena, struct error *e) {
  struct answer_content *content = arena_alloc(arena, 1, sizeof *content, e);
  struct answer_section *section = arena_alloc(arena, TOKENIZE_SECTIONS, sizeof *section, e);
  *a = (struct answer){.form = ANSWER_JSON};
  if (e->status) return e->status;
  *content = (struct answer_content){.model = model, .section = section};
  if (r->back) {
    content->sections = 1;
    section[0] = answer_section_text("text", tokenize_answer_texts(r, arena, e));
  } else {
    content->sections = TOKENIZE_SECTIONS;
    tokenize_answer_sections(&r->texts, section, arena, e);
  }
  if (e->status) return e->status;
  return answer_plan(a, ANSWER_JSON, content, max_bytes, arena, e);
}
