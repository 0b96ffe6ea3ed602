/* detokenizer: each new token is spelled together with a few before it, mostly with one, and what
 * is new in their text is appended. */
#include "config/tokenizer/detokenizer.h"

#include <string.h>

#include "core/base/size.h"

size_t detokenizer_room(const struct tokenizer *t, size_t tokens) {
  const size_t each = tokenizer_text_max(t);
  size_t room;
  if (each == SIZE_MAX || !size_add(tokens, DETOKENIZER_BEFORE, &tokens)) return SIZE_MAX;
  return size_mul(tokens, each, &room) ? room : SIZE_MAX;
}

/* --- spelling --- */

/* What one call works with. */
struct detokenizing {
  struct detokenizer *u;
  struct arena *arena;
  struct error *e;
};

/* The text of so many tokens of the window, from one on. */
static struct decoder_text spell(const struct detokenizing *g, size_t from, size_t count) {
  struct decoder_text text = {NULL, 0, false};
  tokenizer_decode(g->u->terms->tokenizer, g->u->window + from, count, true, g->arena, &text, g->e);
  return g->e->status ? (struct decoder_text){NULL, 0, false} : text;
}

/* Its bytes without those of an unfinished character. */
static size_t count_whole(const struct decoder_text *text) {
  return text->length - (text->open ? sizeof DECODER_REPLACEMENT - 1 : 0);
}

/* Tokens of the window whose text later ones leave as it is, but for an unfinished character. */
static size_t count_closed(const struct detokenizer *u) {
  return u->count - tokenizer_count_open(u->terms->tokenizer, u->window, u->count);
}

/* All text is known, but for a character that is unfinished: the next one is spelled from the last
 * tokens on, as few as have text by themselves, and end as all of them do. */
static void move_on(struct detokenizing *g, bool open) {
  enum { FEW = 8 };
  struct detokenizer *u = g->u;
  for (size_t few = 1; few <= FEW && few < u->count; few++) {
    const struct decoder_text text = spell(g, u->count - few, few);
    if (text.length == 0 || text.open != open) continue;
    memmove(u->window, u->window + u->count - few, few * sizeof *u->window);
    u->count = u->closed = few;
    u->known = count_whole(&text);
    return;
  }
}

/* --- the text --- */

static enum status add(struct detokenizer *u, const char *bytes, size_t length, struct error *e) {
  if (length == 0) return e->status;
  if (length > u->room - u->length)
    return error_set(e, STATUS_TOO_LARGE, "the text of the tokens is longer than these may become");
  memcpy(u->text + u->length, bytes, length);
  u->length += length;
  return e->status;
}

/* How far the text of the tokens before the first one goes on in this one, in whole characters. */
static size_t count_before(const struct detokenizing *g, const struct decoder_text *text) {
  const struct decoder_text before = spell(g, 0, g->u->before);
  const size_t most = size_min(before.length, text->length);
  size_t same = 0;
  while (same < most && before.bytes[same] == text->bytes[same]) same++;
  while (same > 0 && same < text->length && ((unsigned char)text->bytes[same] & 0xc0) == 0x80)
    same--;
  return same;
}

/* Of a decoder that is not steady each token may have changed all text: it is made anew. */
static enum status make_anew(struct detokenizing *g, const struct decoder_text *text,
                             size_t length) {
  const size_t known = count_before(g, text);
  g->u->length = 0;
  if (g->e->status || length <= known) return g->e->status;
  return add(g->u, text->bytes + known, length - known, g->e);
}

/* Appends what the tokens of the window have as text for good. */
static enum status add_settled(struct detokenizing *g, bool over) {
  struct detokenizer *u = g->u;
  const size_t closed = over ? u->count : count_closed(u);
  if (closed == u->closed && !over) return g->e->status;
  const struct decoder_text text = spell(g, 0, closed);
  const size_t length = over ? text.length : count_whole(&text);
  u->closed = closed;
  if (!u->steady) return make_anew(g, &text, length);
  if (g->e->status || length < u->known) return g->e->status;
  if (add(u, text.bytes + u->known, length - u->known, g->e)) return g->e->status;
  u->known = length;
  if (!over && closed == u->count) move_on(g, text.open);
  return g->e->status;
}

/* --- texts that end it --- */

/* The place of the first text that ends the detokenizer; u->length: there is none. */
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

/* Is the rest of the text, from this place on, the beginning of a text that ends it? */
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

/* Takes tokens into the window. Are there any that have a text? */
static bool take(struct detokenizer *u, const int32_t *token, size_t count) {
  const size_t before = u->count;
  for (size_t i = 0; i < count; i++)
    if (tokenizer_has_text(u->terms->tokenizer, token[i])) u->window[u->count++] = token[i];
  return u->count > before;
}

/* The detokenizer begins behind the text of the tokens before it. */
enum status detokenizer_init(struct detokenizer *u, const struct detokenizer_terms *terms,
                             const int32_t *before, size_t befores, size_t most, struct arena *a,
                             struct error *e) {
  const size_t taken = size_min(befores, DETOKENIZER_BEFORE);
  const struct detokenizing g = {u, a, e};
  size_t tokens;
  if (!size_add(most, taken, &tokens))
    return error_set(e, STATUS_TOO_LARGE, "the tokens are too many to count");
  *u = (struct detokenizer){.terms = terms,
                            .room = detokenizer_room(terms->tokenizer, most),
                            .steady = tokenizer_is_steady(terms->tokenizer)};
  u->text = arena_alloc(a, u->room, 1, e);
  u->window = arena_alloc(a, tokens, sizeof *u->window, e);
  if (e->status) return e->status;
  take(u, before + (befores - taken), taken);
  u->before = u->count;
  u->closed = count_closed(u);
  const struct decoder_text text = spell(&g, 0, u->closed);
  u->known = count_whole(&text);
  return e->status;
}

enum status detokenizer_add(struct detokenizer *u, const int32_t *token, size_t count, bool over,
                            bool may_end, struct error *e) {
  struct arena arena;
  struct detokenizing g = {.u = u, .arena = &arena, .e = e};
  const bool more = !u->stopped && take(u, token + u->heard, count - u->heard);
  u->heard = count;
  /* A text that may still change is made where it counts. */
  const bool counts = over || (more && (u->steady || u->terms->stops > 0));
  if (u->stopped || !counts) return e->status;
  arena_init(&arena,
             NULL); /* what is little, or was charged once with the text, is charged no more */
  if (add_settled(&g, over) == STATUS_OK) look_for_stops(u, over, may_end);
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

/* Of the text so far: what is settled of it, and what is whole behind that in the text of the
 * window, which has all of it where nothing settles. */
static size_t count_all(struct detokenizer *u, const struct decoder_text *window) {
  const size_t whole = count_whole(window), known = size_min(u->known, whole);
  if (u->steady && u->length > u->counted) {
    u->characters += count_characters(u->text + u->counted, u->length - u->counted);
    u->counted = u->length;
  }
  return u->characters +
         (whole > known ? count_characters(window->bytes + known, whole - known) : 0);
}

/* What a token adds behind the window, whose text is known; or its piece. */
static struct tokenizer_text add_behind(const struct detokenizing *g,
                                        const struct decoder_text *window, int32_t id) {
  const struct tokenizer *t = g->u->terms->tokenizer;
  const size_t length = window->length;
  g->u->window[g->u->count] = id; /* where the next one is going to lie */
  const struct decoder_text text = spell(g, 0, g->u->count + 1);
  const bool follows = text.length >= length && text.length - length <= detokenizer_ahead_room(t) &&
                       (length == 0 || memcmp(text.bytes, window->bytes, length) == 0);
  if (!follows || g->e->status) return tokenizer_piece(t, id, g->arena, g->e);
  return (struct tokenizer_text){text.length ? text.bytes + length : "", text.length - length};
}

static struct tokenizer_text look_ahead(const struct detokenizing *g,
                                        const struct decoder_text *window, int32_t id) {
  const struct tokenizer *t = g->u->terms->tokenizer;
  struct tokenizer_text own;
  if (!tokenizer_has_text(t, id)) return tokenizer_piece(t, id, g->arena, g->e);
  if (tokenizer_bytes_of(t, id, g->arena, &own, g->e)) return own;
  if (!g->u->steady) return tokenizer_piece(t, id, g->arena, g->e);
  return add_behind(g, window, id);
}

enum status detokenizer_ahead(struct detokenizer *u, const int32_t *token, size_t count,
                              struct tokenizer_text *out, size_t *characters, struct arena *a,
                              struct error *e) {
  const struct detokenizing g = {u, a, e};
  const struct decoder_text window = spell(&g, 0, u->count);
  *characters = e->status ? 0 : count_all(u, &window);
  for (size_t i = 0; i < count && !e->status; i++) out[i] = look_ahead(&g, &window, token[i]);
  return e->status;
}
