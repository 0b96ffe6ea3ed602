/* stack_detokenizer: tokens become text by the thread that chose them. */
#include "server/model/answer/stack_detokenizer.h"

#include <string.h>

#include "core/base/size.h"
#include "server/answer/answer_section.h"
#include "server/text/json_string.h"

static const char TEXT[] = ",\"text\":", STOP[] = ",\"stop\":", STRINGS[] = ",\"strings\":[";

enum { QUOTES = 3 /* of a string, and the comma in front of it */ };

/* --- tokens that come --- */

/* The first failure is kept. */
static enum stack_finish fail(struct stack_detokenizer *u, const struct error *e) {
  if (!atomic_exchange(&u->failed, true)) u->error = *e;
  return STACK_FINISH_FAILED;
}

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

/* A token that ends a sequence is no part of its text. */
static enum stack_finish hear(struct stack_listener *l, size_t item, size_t count,
                              enum stack_finish finish) {
  struct stack_detokenizer *u = (struct stack_detokenizer *)l;
  const struct stack_sequence *q = &u->generation->sequence[item];
  struct stack_detokenized *s = &u->sequence[item];
  struct error e = {0};
  const bool ended = finish == STACK_FINISH_END || finish == STACK_FINISH_STOP;
  const bool may_end = count >= u->generation->choice.min_tokens;
  if (s->spelled &&
      stack_spelled_add(s->spelled, &s->detokenizer, u->generation, item, count - 1, &e))
    return fail(u, &e);
  detokenizer_add(&s->detokenizer, q->token, count - ended, finish != STACK_FINISH_NOT, may_end,
                  &e);
  if (s->strings && !e.status) add_strings(u, s, q->token, count, &e);
  if (e.status) return fail(u, &e);
  if (s->said) s->said[count - 1] = s->detokenizer.said;
  return s->detokenizer.stopped ? STACK_FINISH_STOP : finish;
}

static enum status fault(const struct stack_listener *l, struct error *e) {
  const struct error *of = &((const struct stack_detokenizer *)l)->error;
  return error_set(e, of->status, "%s", of->detail);
}

/* --- the texts --- */

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

static size_t strings_room(const struct tokenizer *t, size_t most) {
  size_t each, room;
  return size_mul(tokenizer_piece_max(t), JSON_STRING_ROOM, &each) &&
                 size_add(each, QUOTES + sizeof "null", &each) && size_mul(each, most, &room)
             ? room
             : SIZE_MAX;
}

static enum status begin(const struct stack_request *r, size_t item, struct arena *a,
                         struct error *e) {
  struct stack_detokenizer *u = r->detokenizer;
  struct stack_detokenized *s = &u->sequence[item];
  const size_t most = r->generation.sequence[item].most;
  const struct stack_run *run = r->main.run;
  const struct item *text = &run->geometry.item[item];
  *s = (struct stack_detokenized){0};
  if (detokenizer_init(&s->detokenizer, &u->terms, run->tokens + text->q_row, text->q, most, a, e))
    return e->status;
  if (r->stream) s->said = arena_alloc(a, most, sizeof *s->said, e);
  if (r->tells_tokens) s->strings = arena_alloc(a, strings_room(u->terms.tokenizer, most), 1, e);
  if (u->spelled) s->spelled = stack_spelled_new(u->terms.tokenizer, most, r->top, a, e);
  return e->status;
}

enum status stack_detokenizer_begin(const struct stack_request *r, struct arena *a,
                                    struct error *e) {
  const size_t items = r->main.run->geometry.items;
  if (!r->detokenizer) return STATUS_OK;
  r->detokenizer->sequence = arena_alloc(a, items, sizeof *r->detokenizer->sequence, e);
  for (size_t i = 0; i < items && !e->status; i++) begin(r, i, a, e);
  return e->status;
}

/* --- the answer --- */

size_t stack_detokenizer_stop_room(const struct stack_detokenizer *u) {
  size_t longest = 0;
  for (size_t i = 0; i < u->terms.stops; i++) longest = size_max(longest, u->terms.stop[i].length);
  return sizeof STOP + QUOTES + JSON_STRING_ROOM * longest; /* a text of some request */
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
