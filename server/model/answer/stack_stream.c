/* stack_stream: which event comes next. */
#include "server/model/answer/stack_stream.h"

#include <string.h>

#include "core/base/size.h"
#include "server/model/answer/stack_answer.h"
#include "server/model/answer/stack_detokenizer.h"
#include "server/number/number.h"
#include "server/text/json_string.h"

enum { TEXT_MOST = 1024 /* bytes of text in an event: what is more comes in the next one */ };

enum status stack_stream_init(struct stack_stream *s, const struct stack_speech *speech,
                              const void *of_speech, const struct stack_request *of,
                              struct arena *a, struct error *e) {
  const struct stack_run *r = of->main.run;
  const size_t items = r->geometry.items;
  *s = (struct stack_stream){.speech = speech,
                             .of_speech = of_speech,
                             .run = r,
                             .usage = stack_answer_usage(of),
                             .detokenizer = of->detokenizer,
                             .texts = of->detokenizer && of->detokenizer->shown,
                             .sent = arena_alloc(a, items, sizeof *s->sent, e),
                             .said = arena_alloc(a, items, sizeof *s->said, e)};
  s->event = speech->room(s) + NUMBER_WRITE_MARGIN;
  if (s->texts) s->event += JSON_STRING_ROOM * TEXT_MOST;
  s->most = size_max(s->event, STACK_PROBLEM_MOST + STACK_AROUND_PROBLEM);
  s->held = arena_alloc(a, s->most, 1, e);
  for (size_t i = 0; i < items && !e->status; i++) s->sent[i] = s->said[i] = 0;
  return e->status;
}

enum status stack_stream_begin_with(struct stack_stream *s, const struct tokenizer_text *front,
                                    struct arena *a, struct error *e) {
  const size_t items = s->run->geometry.items;
  must(s->detokenizer != NULL); /* an event has room for text */
  s->fronted = arena_alloc(a, items, sizeof *s->fronted, e);
  if (!s->fronted) return e->status;
  for (size_t i = 0; i < items; i++) s->fronted[i] = 0;
  s->front = front;
  return STATUS_OK;
}

bool stack_stream_has_begun(const struct stack_stream *s) {
  for (size_t i = 0; i < s->run->geometry.items; i++)
    if (stack_sequence_count(&s->run->generation->sequence[i]) > 0) return true;
  return false;
}

/* --- what there is --- */

/* What is left of a text, or as many whole characters of it as an event may have. */
static struct tokenizer_text cut(const char *text, size_t left) {
  size_t length = size_min(left, TEXT_MOST);
  while (length < left && ((unsigned char)text[length] & 0xc0) == 0x80) length--;
  return (struct tokenizer_text){text, length};
}

static size_t front_left(const struct stack_stream *s, size_t i) {
  return s->front ? s->front[s->run->generation->sequence[i].item].length - s->fronted[i] : 0;
}

static struct tokenizer_text take_front(struct stack_stream *s, size_t i) {
  const char *text = s->front[s->run->generation->sequence[i].item].bytes + s->fronted[i];
  const struct tokenizer_text part = cut(text, front_left(s, i));
  s->fronted[i] += part.length;
  return part;
}

/* The part of the text up to token t that no event has had yet. */
static struct tokenizer_text take_text(struct stack_stream *s, size_t i, size_t t) {
  if (!s->texts) return (struct tokenizer_text){NULL, 0};
  const char *text = s->detokenizer->sequence[i].detokenizer.text + s->said[i];
  const struct tokenizer_text part = cut(text, s->detokenizer->sequence[i].said[t] - s->said[i]);
  s->said[i] += part.length;
  return part;
}

/* Did the event of token t have no room for all of its text? */
static bool has_rest(const struct stack_stream *s, size_t i, size_t t) {
  return s->texts && s->said[i] < s->detokenizer->sequence[i].said[t];
}

/* The next event of a sequence; `out` itself: it has none yet. */
static char *write_next(struct stack_stream *s, size_t i, char *out) {
  const struct stack_generation *g = s->run->generation;
  const struct stack_sequence *q = &g->sequence[i];
  /* Where it is finished, the count that is read behind that is the last one. */
  const enum stack_finish finish = atomic_load_explicit(&q->finish, memory_order_acquire);
  const size_t count = stack_sequence_count(q), t = s->sent[i];
  if (t > count) return out;
  if (front_left(s, i) > 0) return s->speech->more(s, i, take_front(s, i), out);
  if (t > 0 && has_rest(s, i, t - 1)) return s->speech->more(s, i, take_text(s, i, t - 1), out);
  if (t == count && !finish) return out;
  s->sent[i]++;
  return t < count ? s->speech->token(s, i, t, take_text(s, i, t), out)
                   : s->speech->finish(s, i, out);
}

/* An event of each sequence in turn, as long as there are any. */
static char *write_events(struct stack_stream *s, char *out, const char *end) {
  const size_t items = s->run->geometry.items;
  for (size_t idle = 0; idle < items && (size_t)(end - out) >= s->event;) {
    char *before = out;
    out = write_next(s, s->next, out);
    idle = out == before ? idle + 1 : 0;
    s->next = (s->next + 1) % items;
  }
  return out;
}

static size_t write_all(struct stack_stream *s, bool done, const char *problem, char *out,
                        size_t room) {
  char *at = write_events(s, out, out + room);
  if (at > out || !done || s->over) return (size_t)(at - out);
  s->over = true;
  at = problem ? s->speech->problem(problem, at) : s->speech->end(s, at);
  return (size_t)(at - out);
}

static size_t give_held(struct stack_stream *s, char *out, size_t room) {
  const size_t bytes = size_min(room, s->held_end - s->held_at);
  memcpy(out, s->held + s->held_at, bytes);
  s->held_at += bytes;
  return bytes;
}

size_t stack_stream_write(struct stack_stream *s, bool done, const char *problem, char *out,
                          size_t room) {
  must(!problem || strlen(problem) + STACK_AROUND_PROBLEM <= s->most);
  if (s->held_at < s->held_end) return give_held(s, out, room);
  if (room >= s->most) return write_all(s, done, problem, out, room);
  s->held_at = 0;
  s->held_end = write_all(s, done, problem, s->held, s->most);
  return give_held(s, out, room);
}
