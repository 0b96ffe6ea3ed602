/* stack_spelled: the strings of tokens, kept as the thread that chose them finds them. */
#include "server/model/answer/stack_spelled.h"

#include <stdio.h>
#include <string.h>

#include "core/base/size.h"

static const char LONGEST_ID[] = "token_id:-2147483648";

size_t stack_spelled_room(const struct tokenizer *t) {
  return size_max(detokenizer_ahead_room(t), sizeof LONGEST_ID);
}

struct stack_spelled *stack_spelled_new(const struct tokenizer *t, size_t most, size_t top,
                                        struct arena *a, struct error *e) {
  struct stack_spelled *s = arena_alloc(a, 1, sizeof *s, e);
  size_t strings;
  if (!s) return NULL;
  *s = (struct stack_spelled){.each = 1 + top};
  if (!size_mul(most, s->each, &strings)) strings = SIZE_MAX; /* which no arena has */
  s->bytes = arena_alloc(a, strings, stack_spelled_room(t), e);
  s->end = arena_alloc(a, strings, sizeof *s->end, e);
  s->place = arena_alloc(a, most, sizeof *s->place, e);
  return e->status ? NULL : s;
}

static size_t begin_of(const struct stack_spelled *s, size_t string) {
  return string ? s->end[string - 1] : 0;
}

static void put(struct stack_spelled *s, size_t string, int32_t token, struct tokenizer_text text) {
  const size_t begin = begin_of(s, string);
  char *out = s->bytes + begin;
  if (!text.bytes)
    text.length = (size_t)snprintf(out, sizeof LONGEST_ID, "token_id:%d", (int)token);
  else if (text.length)
    memcpy(out, text.bytes, text.length);
  s->end[string] = begin + text.length;
}

/* Work for one token alone. */
struct spelling {
  int32_t *token;              /* [each] */
  struct tokenizer_text *text; /* [each] */
};

static enum status look_ahead(struct stack_spelled *s, struct detokenizer *u,
                              const struct stack_sequence *q, size_t t, struct arena *a,
                              struct error *e) {
  const size_t top = s->each - 1;
  const struct spelling w = {arena_alloc(a, s->each, sizeof *w.token, e),
                             arena_alloc(a, s->each, sizeof *w.text, e)};
  if (e->status) return e->status;
  w.token[0] = q->token[t];
  if (top > 0) memcpy(w.token + 1, q->top_token + t * top, top * sizeof *w.token);
  if (detokenizer_ahead(u, w.token, s->each, w.text, &s->place[t], a, e)) return e->status;
  for (size_t i = 0; i < s->each; i++) put(s, t * s->each + i, w.token[i], w.text[i]);
  return e->status;
}

enum status stack_spelled_add(struct stack_spelled *s, struct detokenizer *u,
                              const struct stack_generation *g, size_t item, size_t t,
                              struct error *e) {
  struct arena arena;
  must(g->top_count + 1 == s->each);
  arena_init(&arena, NULL); /* a few pieces */
  look_ahead(s, u, &g->sequence[item], t, &arena, e);
  arena_free(&arena);
  return e->status;
}

struct tokenizer_text stack_spelled_string(const struct stack_spelled *s, size_t t, size_t number) {
  const size_t string = t * s->each + number, begin = begin_of(s, string);
  return (struct tokenizer_text){s->bytes + begin, s->end[string] - begin};
}
