/* stack_stream: which event comes next, and the events of our own API. */
#include "server/model/answer/stack_stream.h"

#include <string.h>

#include "core/base/size.h"
#include "server/model/answer/stack_answer.h"
#include "server/model/answer/stack_detokenizer.h"
#include "server/model/answer/stack_token_json.h"
#include "server/number/number.h"
#include "server/text/json_string.h"

/* --- events of our own API --- */

enum { EVENT_ROOM = 176 }; /* an event without most likely tokens, its numbers at their longest */

static size_t room(const struct stack_stream *s) {
  const size_t stop = s->detokenizer ? stack_detokenizer_stop_room(s->detokenizer) : 0;
  return EVENT_ROOM + s->run->generation->top_count * STACK_TOP_ROOM + stop;
}

static char *write_named(char *out, const char *name, int64_t value) {
  out = answer_write_text(out, name);
  return number_write_integer(out, value);
}

static char *write_place(char *out, const struct stack_sequence *q) {
  out = write_named(out, "data: {\"item\":", q->item);
  return write_named(out, ",\"sequence\":", q->sample);
}

static char *write_text(struct tokenizer_text text, char *out) {
  return json_string_write(text.bytes, text.length, answer_write_text(out, ",\"text\":"));
}

static char *write_token(const struct stack_stream *s, size_t i, size_t t,
                         struct tokenizer_text text, char *out) {
  const struct stack_sequence *q = &s->run->generation->sequence[i];
  const size_t top = s->run->generation->top_count;
  out = write_place(out, q);
  out = write_named(out, ",\"token\":", q->token[t]);
  if (s->texts) out = write_text(text, out);
  out = answer_write_text(out, ",\"log_probability\":");
  out = number_write(out, q->log_probability[t]);
  if (top > 0) {
    out = answer_write_text(out, ",\"top\":");
    out = stack_write_top(out, q->top_token + t * top, q->top_log_probability + t * top, top);
  }
  return answer_write_text(out, "}\n\n");
}

static char *write_more(const struct stack_stream *s, size_t i, struct tokenizer_text text,
                        char *out) {
  out = write_place(out, &s->run->generation->sequence[i]);
  return answer_write_text(write_text(text, out), "}\n\n");
}

static char *write_finish(const struct stack_stream *s, size_t i, char *out) {
  const struct stack_sequence *q = &s->run->generation->sequence[i];
  out = write_place(out, q);
  out = answer_write_text(out, ",\"finish\":\"");
  out = answer_write_text(out, stack_finish_name(q->finish));
  out = answer_write_text(out, "\"");
  if (s->detokenizer) out = stack_detokenizer_write_stop(s->detokenizer, i, out);
  out = answer_write_text(out, ",\"score\":");
  out = number_write(out, (float)q->score);
  return answer_write_text(out, "}\n\n");
}

static char *write_end(const struct stack_stream *s, char *out) {
  out = answer_write_text(out, "data: {\"usage\":");
  out = answer_usage_write(out, &s->usage);
  return answer_write_text(out, "}\n\n");
}

static char *write_problem(const char *problem, char *out) {
  out = answer_write_text(out, "event: error\ndata: ");
  out = answer_write_text(out, problem);
  return answer_write_text(out, "\n\n");
}

const struct stack_events stack_events = {.room = room,
                                          .token = write_token,
                                          .more = write_more,
                                          .finish = write_finish,
                                          .end = write_end,
                                          .problem = write_problem};

/* --- the stream --- */

enum { TEXT_MOST = 1024 }; /* bytes of text in an event: the rest follows in the next one */

enum status stack_stream_init(struct stack_stream *s, const struct stack_events *events,
                              const void *context, const struct stack_request *of, struct arena *a,
                              struct error *e) {
  const struct stack_run *r = of->main.run;
  const size_t items = r->geometry.items;
  *s = (struct stack_stream){.events = events,
                             .context = context,
                             .run = r,
                             .usage = stack_answer_usage(of),
                             .detokenizer = of->detokenizer,
                             .texts = of->detokenizer && of->detokenizer->shown,
                             .sent = arena_alloc(a, items, sizeof *s->sent, e),
                             .text_sent = arena_alloc(a, items, sizeof *s->text_sent, e)};
  s->event = events->room(s) + NUMBER_WRITE_MARGIN;
  if (s->texts) s->event += JSON_STRING_ROOM * TEXT_MOST;
  s->most = size_max(s->event, STACK_PROBLEM_MOST + STACK_AROUND_PROBLEM);
  s->held = arena_alloc(a, s->most, 1, e);
  for (size_t i = 0; i < items && !e->status; i++) s->sent[i] = s->text_sent[i] = 0;
  return e->status;
}

enum status stack_stream_begin_with(struct stack_stream *s, const struct tokenizer_text *prompt,
                                    struct arena *a, struct error *e) {
  const size_t items = s->run->geometry.items;
  must(s->detokenizer != NULL); /* an event has room for text */
  s->prompt_sent = arena_alloc(a, items, sizeof *s->prompt_sent, e);
  if (!s->prompt_sent) return e->status;
  for (size_t i = 0; i < items; i++) s->prompt_sent[i] = 0;
  s->prompt = prompt;
  return STATUS_OK;
}

bool stack_stream_has_begun(const struct stack_stream *s) {
  for (size_t i = 0; i < s->run->geometry.items; i++)
    if (stack_sequence_count(&s->run->generation->sequence[i]) > 0) return true;
  return false;
}

/* The next part of a text of `length` bytes, whole characters that fit in an event. Adds its bytes
 * to *sent. */
static struct tokenizer_text next_text(const char *text, size_t length, size_t *sent) {
  const size_t left = length - *sent;
  size_t part = size_min(left, TEXT_MOST);
  text += *sent;
  while (part < left && ((unsigned char)text[part] & 0xc0) == 0x80) part--;
  *sent += part;
  return (struct tokenizer_text){text, part};
}

/* Writes the next event of a sequence. Returns `out` if there is none yet. */
static char *write_next(struct stack_stream *s, size_t i, char *out) {
  const struct stack_events *events = s->events;
  const struct stack_sequence *q = &s->run->generation->sequence[i];
  const struct stack_detokenized *d = s->texts ? &s->detokenizer->sequence[i] : NULL;
  /* If it is finished, the count that is read after that is the last one. */
  const enum stack_finish finish = atomic_load_explicit(&q->finish, memory_order_acquire);
  const size_t count = stack_sequence_count(q), t = s->sent[i];
  if (t > count) return out;
  if (s->prompt && s->prompt_sent[i] < s->prompt[q->item].length) {
    const struct tokenizer_text *prompt = &s->prompt[q->item];
    return events->more(s, i, next_text(prompt->bytes, prompt->length, &s->prompt_sent[i]), out);
  }
  /* The event of the token before may have had no room for all of its text. */
  if (d && t > 0 && s->text_sent[i] < d->sendable[t - 1])
    return events->more(s, i, next_text(d->detokenizer.text, d->sendable[t - 1], &s->text_sent[i]),
                        out);
  if (t == count && !finish) return out;
  s->sent[i]++;
  if (t == count) return events->finish(s, i, out);
  const struct tokenizer_text text =
      d ? next_text(d->detokenizer.text, d->sendable[t], &s->text_sent[i])
        : (struct tokenizer_text){0};
  return events->token(s, i, t, text, out);
}

/* Writes events into at least s->most bytes: of each sequence in turn as long as there are any, and
 * in the end the last one. Returns their bytes. */
static size_t write_all(struct stack_stream *s, bool done, const char *problem, char *out,
                        size_t room) {
  const size_t items = s->run->geometry.items;
  char *at = out;
  for (size_t idle = 0; idle < items && (size_t)(out + room - at) >= s->event;) {
    char *before = at;
    at = write_next(s, s->next, at);
    idle = at == before ? idle + 1 : 0;
    s->next = (s->next + 1) % items;
  }
  if (at > out || !done || s->over) return (size_t)(at - out);
  s->over = true;
  at = problem ? s->events->problem(problem, at) : s->events->end(s, at);
  return (size_t)(at - out);
}

size_t stack_stream_write(struct stack_stream *s, bool done, const char *problem, char *out,
                          size_t room) {
  must(!problem || strlen(problem) + STACK_AROUND_PROBLEM <= s->most);
  if (s->held_at == s->held_end) {
    if (room >= s->most) return write_all(s, done, problem, out, room);
    s->held_at = 0;
    s->held_end = write_all(s, done, problem, s->held, s->most);
  }
  const size_t bytes = size_min(room, s->held_end - s->held_at);
  memcpy(out, s->held + s->held_at, bytes);
  s->held_at += bytes;
  return bytes;
}
