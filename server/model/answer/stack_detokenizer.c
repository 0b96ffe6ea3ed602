/* stack_detokenizer: generated tokens become text in the thread that chose them. */
#include "server/model/answer/stack_detokenizer.h"

#include <stdio.h>
#include <string.h>

#include "core/base/size.h"
#include "server/answer/answer_section.h"
#include "server/text/json_string.h"

static const char TEXT[] = ",\"text\":", STOP[] = ",\"stop\":", STRINGS[] = ",\"strings\":[";
static const char LONGEST_ID[] = "token_id:-2147483648";

enum { QUOTES = 3 /* the quotes of a string, and a comma before it */ };

/* --- the text of each token --- */

size_t stack_token_text_room(const struct tokenizer *t) {
  return size_max(detokenizer_ahead_room(t), sizeof LONGEST_ID);
}

/* Memory for `most` tokens, each with `top` most likely ones. NULL without memory. */
static struct stack_token_texts *token_texts_new(const struct tokenizer *t, size_t most, size_t top,
                                                 struct arena *a, struct error *e) {
  struct stack_token_texts *s = arena_alloc(a, 1, sizeof *s, e);
  size_t strings;
  if (!s) return NULL;
  *s = (struct stack_token_texts){.each = 1 + top};
  if (!size_mul(most, s->each, &strings)) strings = SIZE_MAX; /* which no arena has */
  s->bytes = arena_alloc(a, strings, stack_token_text_room(t), e);
  s->end = arena_alloc(a, strings, sizeof *s->end, e);
  s->place = arena_alloc(a, most, sizeof *s->place, e);
  return e->status ? NULL : s;
}

static size_t string_begin(const struct stack_token_texts *s, size_t string) {
  return string ? s->end[string - 1] : 0;
}

struct tokenizer_text stack_token_text(const struct stack_token_texts *s, size_t t, size_t number) {
  const size_t string = t * s->each + number, begin = string_begin(s, string);
  return (struct tokenizer_text){s->bytes + begin, s->end[string] - begin};
}

/* Adds the strings of token t, which the detokenizer has not got yet. Errors go to `e`. */
static void add_token_texts(struct stack_token_texts *s, struct detokenizer *u,
                            const struct stack_generation *g, const struct stack_sequence *q,
                            size_t t, struct error *e) {
  const size_t top = s->each - 1;
  struct arena arena;
  must(g->top_count == top);
  arena_init(&arena, NULL); /* a few pieces */
  int32_t *token = arena_alloc(&arena, s->each, sizeof *token, e);
  struct tokenizer_text *text = arena_alloc(&arena, s->each, sizeof *text, e);
  if (e->status) goto done;
  token[0] = q->token[t];
  if (top > 0) memcpy(token + 1, q->top_token + t * top, top * sizeof *token);
  if (detokenizer_ahead(u, token, s->each, text, &s->place[t], &arena, e)) goto done;
  for (size_t i = 0; i < s->each; i++) {
    const size_t string = t * s->each + i, begin = string_begin(s, string);
    char *out = s->bytes + begin;
    size_t length = text[i].length;
    if (!text[i].bytes)
      length = (size_t)snprintf(out, sizeof LONGEST_ID, "token_id:%d", (int)token[i]);
    else if (length)
      memcpy(out, text[i].bytes, length);
    s->end[string] = begin + length;
  }
done:
  arena_free(&arena);
}

/* --- the listener --- */

/* Appends the JSON strings of the tokens up to `count`. Errors go to `e`. */
static void add_strings(const struct stack_detokenizer *u, struct stack_detokenized *s,
                        const int32_t *token, size_t count, struct error *e) {
  struct arena arena;
  char *out = s->strings + s->strings_length;
  arena_init(&arena, NULL); /* a few pieces */
  for (; s->strings_count < count && !e->status; s->strings_count++) {
    const int32_t id = token[s->strings_count];
    const struct tokenizer_text piece = tokenizer_piece(u->terms.tokenizer, id, &arena, e);
    *out++ = ',';
    out = piece.bytes ? json_string_write(piece.bytes, piece.length, out)
                      : answer_write_text(out, "null");
  }
  s->strings_length = (size_t)(out - s->strings);
  arena_free(&arena);
}

/* Makes text of the last of `count` tokens. A token that ends a sequence has no text. */
static enum stack_finish hear(struct stack_listener *l, size_t item, size_t count,
                              enum stack_finish finish) {
  struct stack_detokenizer *u = (struct stack_detokenizer *)l;
  const struct stack_sequence *q = &u->generation->sequence[item];
  struct stack_detokenized *s = &u->sequence[item];
  struct error e = {0};
  const bool ended = finish == STACK_FINISH_END || finish == STACK_FINISH_STOP;
  const bool may_end = count >= u->generation->choice.min_tokens;
  if (s->token_texts)
    add_token_texts(s->token_texts, &s->detokenizer, u->generation, q, count - 1, &e);
  if (!e.status)
    detokenizer_add(&s->detokenizer, q->token, count - ended, finish != STACK_FINISH_NOT, may_end,
                    &e);
  if (s->strings && !e.status) add_strings(u, s, q->token, count, &e);
  if (e.status) {
    if (!atomic_exchange(&u->failed, true)) u->error = e;
    return STACK_FINISH_FAILED;
  }
  if (s->sendable) s->sendable[count - 1] = s->detokenizer.said;
  return s->detokenizer.stopped ? STACK_FINISH_STOP : finish;
}

static enum status fault(const struct stack_listener *l, struct error *e) {
  const struct error *of = &((const struct stack_detokenizer *)l)->error;
  return error_set(e, of->status, "%s", of->detail);
}

/* --- a request --- */

struct stack_detokenizer *stack_detokenizer_new(const struct detokenizer_terms *terms,
                                                struct stack_request *r, struct arena *a,
                                                struct error *e) {
  struct stack_detokenizer *u = arena_alloc(a, 1, sizeof *u, e);
  if (!u) return NULL;
  *u = (struct stack_detokenizer){.listener = {hear, fault},
                                  .terms = *terms,
                                  .generation = &r->generation};
  r->detokenizer = u;
  r->generation.listener = &u->listener;
  return u;
}

/* The most bytes of `most` token strings; SIZE_MAX: an overflow. */
static size_t strings_room(const struct tokenizer *t, size_t most) {
  size_t each, room;
  return size_mul(tokenizer_piece_max(t), JSON_STRING_ROOM, &each) &&
                 size_add(each, QUOTES + sizeof "null", &each) && size_mul(each, most, &room)
             ? room
             : SIZE_MAX;
}

enum status stack_detokenizer_begin(const struct stack_request *r, struct arena *a,
                                    struct error *e) {
  const struct stack_run *run = r->main.run;
  const size_t items = run->geometry.items;
  struct stack_detokenizer *u = r->detokenizer;
  if (!u) return STATUS_OK;
  const struct tokenizer *t = u->terms.tokenizer;
  u->sequence = arena_alloc(a, items, sizeof *u->sequence, e);
  for (size_t i = 0; i < items && !e->status; i++) {
    struct stack_detokenized *s = &u->sequence[i];
    const size_t most = r->generation.sequence[i].most;
    const struct item *prompt = &run->geometry.item[i];
    *s = (struct stack_detokenized){0};
    if (detokenizer_init(&s->detokenizer, &u->terms, run->tokens + prompt->q_row, prompt->q, most,
                         a, e))
      return e->status;
    if (r->stream) s->sendable = arena_alloc(a, most, sizeof *s->sendable, e);
    if (r->tells_tokens) s->strings = arena_alloc(a, strings_room(t, most), 1, e);
    if (u->token_texts) s->token_texts = token_texts_new(t, most, r->top, a, e);
  }
  return e->status;
}

/* --- JSON --- */

size_t stack_detokenizer_stop_room(const struct stack_detokenizer *u) {
  size_t longest = 0;
  for (size_t i = 0; i < u->terms.stops; i++) longest = size_max(longest, u->terms.stop[i].length);
  return sizeof STOP + QUOTES + JSON_STRING_ROOM * longest; /* at most STACK_STOP_LONGEST */
}

size_t stack_detokenizer_room(const struct stack_detokenizer *u, size_t most, bool strings) {
  const struct tokenizer *t = u->terms.tokenizer;
  size_t bytes = detokenizer_room(t, most);
  size_t room = sizeof TEXT + sizeof STRINGS + QUOTES + stack_detokenizer_stop_room(u);
  if (!size_mul(bytes, JSON_STRING_ROOM, &bytes) || !size_add(room, bytes, &room) ||
      (strings && !size_add(room, strings_room(t, most), &room)))
    return SIZE_MAX;
  return room;
}

char *stack_detokenizer_write_stop(const struct stack_detokenizer *u, size_t item, char *out) {
  const size_t stopped = u->sequence[item].detokenizer.stopped;
  if (!stopped) return out;
  const struct tokenizer_text *stop = &u->terms.stop[stopped - 1];
  return json_string_write(stop->bytes, stop->length, answer_write_text(out, STOP));
}

char *stack_detokenizer_write(const struct stack_detokenizer *u, size_t item, char *out) {
  const struct stack_detokenized *s = &u->sequence[item];
  if (u->shown) {
    out = answer_write_text(out, TEXT);
    out = json_string_write(s->detokenizer.text, s->detokenizer.length, out);
  }
  out = stack_detokenizer_write_stop(u, item, out);
  if (!s->strings) return out;
  const size_t comma = s->strings_length > 0;
  out = answer_write_text(out, STRINGS);
  memcpy(out, s->strings + comma, s->strings_length - comma);
  out += s->strings_length - comma;
  *out++ = ']';
  return out;
}
