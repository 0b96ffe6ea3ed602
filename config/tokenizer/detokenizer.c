/* detokenizer: each new token is decoded together with a few before it, mostly with one, and the
 * new part of their text is appended. */
#include "config/tokenizer/detokenizer.h"

#include <string.h>

#include "core/base/size.h"

size_t detokenizer_room(const struct tokenizer *t, size_t tokens) {
  const size_t each = tokenizer_text_max(t);
  size_t room;
  if (each == SIZE_MAX || !size_add(tokens, DETOKENIZER_BEFORE, &tokens)) return SIZE_MAX;
  return size_mul(tokens, each, &room) ? room : SIZE_MAX;
}

/* One call's memory and error. */
struct detokenizing {
  struct detokenizer *u;
  struct arena *arena;
  struct error *e;
};

/* The text of `count` tokens of the window, from one on; empty after a failure. */
static struct decoder_text decode(const struct detokenizing *g, size_t from, size_t count) {
  struct decoder_text text = {NULL, 0, false};
  tokenizer_decode(g->u->terms->tokenizer, g->u->window + from, count, true, g->arena, &text, g->e);
  return g->e->status ? (struct decoder_text){NULL, 0, false} : text;
}

/* Bytes of a text without those of an incomplete character at its end. */
static size_t count_complete(const struct decoder_text *text) {
  return text->length - (text->open ? sizeof DECODER_REPLACEMENT - 1 : 0);
}

/* How many tokens of the window have a text that later ones do not change, except an incomplete
 * character. */
static size_t count_closed(const struct detokenizer *u) {
  return u->count - tokenizer_count_open(u->terms->tokenizer, u->window, u->count);
}

/* --- the text --- */

static enum status append(struct detokenizer *u, const char *bytes, size_t length,
                          struct error *e) {
  if (length == 0) return e->status;
  if (length > u->room - u->length)
    return error_set(e, STATUS_TOO_LARGE, "the text of the tokens is longer than these may become");
  memcpy(u->text + u->length, bytes, length);
  u->length += length;
  return e->status;
}

/* With a decoder that is not steady, each token may have changed all text: it is made anew. What it
 * shares with the text of the tokens before, in complete characters, is no part of it. */
static enum status make_anew(struct detokenizing *g, const struct decoder_text *text,
                             size_t length) {
  const struct decoder_text before = decode(g, 0, g->u->before);
  const size_t most = size_min(before.length, text->length);
  size_t same = 0;
  while (same < most && before.bytes[same] == text->bytes[same]) same++;
  while (same > 0 && same < text->length && ((unsigned char)text->bytes[same] & 0xc0) == 0x80)
    same--;
  g->u->length = 0;
  if (g->e->status || length <= same) return g->e->status;
  return append(g->u, text->bytes + same, length - same, g->e);
}

/* Appends the final part of the window's text. */
static enum status append_closed(struct detokenizing *g, bool over) {
  enum { FEW = 8 };
  struct detokenizer *u = g->u;
  const size_t closed = over ? u->count : count_closed(u);
  if (closed == u->closed && !over) return g->e->status;
  const struct decoder_text text = decode(g, 0, closed);
  const size_t length = over ? text.length : count_complete(&text);
  u->closed = closed;
  if (!u->steady) return make_anew(g, &text, length);
  if (g->e->status || length < u->known) return g->e->status;
  if (append(u, text.bytes + u->known, length - u->known, g->e)) return g->e->status;
  u->known = length;
  if (over || closed < u->count) return g->e->status;
  /* All text is known, except an incomplete character: the window shrinks to the fewest last tokens
   * that have a text by themselves and end as all of them do. */
  for (size_t few = 1; few <= FEW && few < u->count; few++) {
    const struct decoder_text last = decode(g, u->count - few, few);
    if (last.length == 0 || last.open != text.open) continue;
    memmove(u->window, u->window + u->count - few, few * sizeof *u->window);
    u->count = u->closed = few;
    u->known = count_complete(&last);
    break;
  }
  return g->e->status;
}

/* --- stop sequences --- */

/* The place of the first stop sequence, whose number is *which; u->length: there is none. */
static size_t find_stop(const struct detokenizer *u, size_t *which) {
  const char *from = u->text + u->searched;
  size_t place = u->length;
  for (size_t i = 0; u->searched < u->length && i < u->terms->stops; i++) {
    const struct tokenizer_text *stop = &u->terms->stop[i];
    const char *found = memmem(from, u->length - u->searched, stop->bytes, stop->length);
    if (!found || (size_t)(found - u->text) >= place) continue;
    place = (size_t)(found - u->text);
    *which = i + 1;
  }
  return place;
}

/* Whether the text from this place on is the beginning of a stop sequence. */
static bool may_begin(const struct detokenizer *u, size_t place) {
  const size_t left = u->length - place;
  for (size_t i = 0; i < u->terms->stops; i++) {
    const struct tokenizer_text *stop = &u->terms->stop[i];
    if (left < stop->length && memcmp(stop->bytes, u->text + place, left) == 0) return true;
  }
  return false;
}

static void look_for_stops(struct detokenizer *u, bool over, bool may_end) {
  if (!may_end) u->searched = u->length;
  const size_t place = find_stop(u, &u->stopped);
  size_t free = u->searched;
  if (u->stopped) {
    u->length = u->said = place;
    return;
  }
  while (free < u->length && !may_begin(u, free)) free++;
  if (u->steady) u->said = u->searched = free;
  if (over) u->said = u->length;
}

/* --- tokens --- */

/* Appends tokens that have a text to the window; returns whether there are any. */
static bool add_to_window(struct detokenizer *u, const int32_t *token, size_t count) {
  const size_t before = u->count;
  for (size_t i = 0; i < count; i++)
    if (tokenizer_has_text(u->terms->tokenizer, token[i])) u->window[u->count++] = token[i];
  return u->count > before;
}

enum status detokenizer_init(struct detokenizer *u, const struct detokenizer_terms *terms,
                             const int32_t *before, size_t befores, size_t most, struct arena *a,
                             struct error *e) {
  const size_t last = size_min(befores, DETOKENIZER_BEFORE);
  const struct detokenizing g = {u, a, e};
  size_t tokens;
  if (!size_add(most, last, &tokens))
    return error_set(e, STATUS_TOO_LARGE, "the tokens are too many to count");
  *u = (struct detokenizer){.terms = terms,
                            .room = detokenizer_room(terms->tokenizer, most),
                            .steady = tokenizer_is_steady(terms->tokenizer)};
  u->text = arena_alloc(a, u->room, 1, e);
  u->window = arena_alloc(a, tokens, sizeof *u->window, e);
  if (e->status) return e->status;
  add_to_window(u, before + (befores - last), last);
  u->before = u->count;
  u->closed = count_closed(u);
  const struct decoder_text text = decode(&g, 0, u->closed);
  u->known = count_complete(&text);
  return e->status;
}

enum status detokenizer_add(struct detokenizer *u, const int32_t *token, size_t count, bool over,
                            bool may_end, struct error *e) {
  struct arena arena;
  struct detokenizing g = {.u = u, .arena = &arena, .e = e};
  const bool more = !u->stopped && add_to_window(u, token + u->heard, count - u->heard);
  u->heard = count;
  /* A text that may still change is only made where it is needed. */
  const bool needed = over || (more && (u->steady || u->terms->stops > 0));
  if (u->stopped || !needed) return e->status;
  /* Without a budget: it is little memory, or was charged with the text. */
  arena_init(&arena, NULL);
  if (append_closed(&g, over) == STATUS_OK) look_for_stops(u, over, may_end);
  arena_free(&arena);
  return e->status;
}

/* --- tokens that may come --- */

size_t detokenizer_ahead_room(const struct tokenizer *t) {
  return size_max(tokenizer_piece_max(t), tokenizer_text_max(t));
}

static size_t count_characters(const char *text, size_t length) {
  size_t count = 0;
  for (size_t i = 0; i < length; i++) count += ((unsigned char)text[i] & 0xc0) != 0x80;
  return count;
}

/* The bytes that a token adds after the window, whose text is `window`; or its piece. */
static struct tokenizer_text look_ahead(const struct detokenizing *g,
                                        const struct decoder_text *window, int32_t id) {
  const struct tokenizer *t = g->u->terms->tokenizer;
  struct tokenizer_text own;
  if (!tokenizer_has_text(t, id)) return tokenizer_piece(t, id, g->arena, g->e);
  if (tokenizer_bytes_of(t, id, g->arena, &own, g->e)) return own;
  if (!g->u->steady) return tokenizer_piece(t, id, g->arena, g->e);
  g->u->window[g->u->count] = id; /* where the next token will be */
  const struct decoder_text text = decode(g, 0, g->u->count + 1);
  const size_t length = window->length;
  const bool follows = text.length >= length && text.length - length <= detokenizer_ahead_room(t) &&
                       (length == 0 || memcmp(text.bytes, window->bytes, length) == 0);
  if (!follows || g->e->status) return tokenizer_piece(t, id, g->arena, g->e);
  return (struct tokenizer_text){text.length ? text.bytes + length : "", text.length - length};
}

enum status detokenizer_ahead(struct detokenizer *u, const int32_t *token, size_t count,
                              struct tokenizer_text *out, size_t *characters, struct arena *a,
                              struct error *e) {
  const struct detokenizing g = {u, a, e};
  const struct decoder_text window = decode(&g, 0, u->count);
  *characters = 0;
  if (e->status) return e->status;
  /* The characters of the text, if it is final, and of the window's complete text after it. */
  const size_t complete = count_complete(&window), known = size_min(u->known, complete);
  if (u->steady && u->length > u->counted) {
    u->characters += count_characters(u->text + u->counted, u->length - u->counted);
    u->counted = u->length;
  }
  *characters = u->characters;
  if (complete > known) *characters += count_characters(window.bytes + known, complete - known);
  for (size_t i = 0; i < count && !e->status; i++) out[i] = look_ahead(&g, &window, token[i]);
  return e->status;
}
