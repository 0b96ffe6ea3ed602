/* stack_stream: the events of a request that generates. */
#include "server/stack/stack_stream.h"

#include <string.h>

#include "core/run/size.h"
#include "server/stack/stack_answer.h"
#include "server/stack/stack_words.h"
#include "server/text/json_string.h"
#include "server/text/number.h"

enum {
  EVENT_ROOM =
      176,         /* of an event without text and likeliest tokens, its numbers at their longest */
  TEXT_MOST = 1024 /* bytes of text in an event: what is more comes in the next one */
};

enum status stack_stream_init(struct stack_stream *s, const struct stack_request *of,
                              struct arena *a, struct error *e) {
  const struct stack_run *r = of->main.run;
  const size_t items = r->geometry.items, top = r->generation->top_count;
  *s = (struct stack_stream){.run = r,
                             .usage = stack_answer_usage(of),
                             .utter = of->utter && of->utter->shown ? of->utter : NULL,
                             .event = EVENT_ROOM + top * STACK_TOP_ROOM + NUMBER_WRITE_MARGIN,
                             .sent = arena_alloc(a, items, sizeof *s->sent, e),
                             .said = arena_alloc(a, items, sizeof *s->said, e)};
  if (s->utter) s->event += stack_utter_stop_room(s->utter) + JSON_STRING_ROOM * TEXT_MOST;
  for (size_t i = 0; i < items && !e->status; i++) s->sent[i] = s->said[i] = 0;
  return e->status;
}

bool stack_stream_has_begun(const struct stack_stream *s) {
  for (size_t i = 0; i < s->run->geometry.items; i++)
    if (stack_sequence_count(&s->run->generation->sequence[i]) > 0) return true;
  return false;
}

/* --- events --- */

static char *write_named(char *out, const char *name, int64_t value) {
  out = answer_write_text(out, name);
  return number_write_integer(out, value);
}

static char *write_place(char *out, const struct stack_sequence *q) {
  out = write_named(out, "data: {\"item\":", q->item);
  return write_named(out, ",\"sequence\":", q->sample);
}

/* Up to there, or as many whole characters as an event has. */
static char *write_text(struct stack_stream *s, size_t i, size_t end, char *out) {
  const char *text = s->utter->sequence[i].utterance.text + s->said[i];
  size_t length = size_min(end - s->said[i], TEXT_MOST);
  while (s->said[i] + length < end && ((unsigned char)text[length] & 0xc0) == 0x80) length--;
  s->said[i] += length;
  out = answer_write_text(out, ",\"text\":");
  return json_string_write(text, length, out);
}

static char *write_token(struct stack_stream *s, size_t i, size_t t, char *out) {
  const struct stack_sequence *q = &s->run->generation->sequence[i];
  const size_t top = s->run->generation->top_count;
  out = write_place(out, q);
  out = write_named(out, ",\"token\":", q->token[t]);
  if (s->utter) out = write_text(s, i, s->utter->sequence[i].said[t], out);
  out = answer_write_text(out, ",\"log_probability\":");
  out = number_write(out, q->log_probability[t]);
  if (top > 0) {
    out = answer_write_text(out, ",\"top\":");
    out = stack_write_top(out, q->top_token + t * top, q->top_log_probability + t * top, top);
  }
  return answer_write_text(out, "}\n\n");
}

/* Text alone, which the events of its tokens had no room for. */
static char *write_rest(struct stack_stream *s, size_t i, size_t end, char *out) {
  out = write_place(out, &s->run->generation->sequence[i]);
  out = write_text(s, i, end, out);
  return answer_write_text(out, "}\n\n");
}

static char *write_finish(const struct stack_stream *s, size_t i, char *out) {
  const struct stack_sequence *q = &s->run->generation->sequence[i];
  out = write_place(out, q);
  out = answer_write_text(out, ",\"finish\":\"");
  out = answer_write_text(out, stack_finish_name(q->finish));
  out = answer_write_text(out, "\"");
  if (s->utter) out = stack_utter_write_stop(s->utter, i, out);
  out = answer_write_text(out, ",\"score\":");
  out = number_write(out, (float)q->score);
  return answer_write_text(out, "}\n\n");
}

static char *write_usage(char *out, const struct stack_stream *s) {
  out = answer_write_text(out, "data: {\"usage\":");
  out = answer_usage_write(out, &s->usage);
  return answer_write_text(out, "}\n\n");
}

/* --- what there is --- */

/* Is there text of a token that its event had no room for? */
static bool has_rest(const struct stack_stream *s, size_t i, size_t t) {
  return s->utter && s->said[i] < s->utter->sequence[i].said[t];
}

/* The next event of a sequence; `out` itself: it has none yet. */
static char *write_next(struct stack_stream *s, size_t i, char *out) {
  const struct stack_generation *g = s->run->generation;
  const struct stack_sequence *q = &g->sequence[i];
  /* Where it is finished, the count that is read behind that is the last one. */
  const enum stack_finish finish = atomic_load_explicit(&q->finish, memory_order_acquire);
  const size_t count = stack_sequence_count(q), t = s->sent[i];
  if (t > count) return out;
  if (t > 0 && has_rest(s, i, t - 1))
    return write_rest(s, i, s->utter->sequence[i].said[t - 1], out);
  if (t == count && (!finish || finish == STACK_FINISH_FAILED)) return out;
  s->sent[i]++;
  return t < count ? write_token(s, i, t, out) : write_finish(s, i, out);
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

static char *write_problem(char *out, const char *problem) {
  out = answer_write_text(out, "event: error\ndata: ");
  out = answer_write_text(out, problem);
  return answer_write_text(out, "\n\n");
}

static bool is_room_for(const char *problem, size_t room) {
  return !problem || room >= strlen(problem) + EVENT_ROOM;
}

size_t stack_stream_write(struct stack_stream *s, bool done, const char *problem, char *out,
                          size_t room) {
  char *at = write_events(s, out, out + room);
  if (at > out || !done || s->over || !is_room_for(problem, room)) return (size_t)(at - out);
  s->over = true;
  at = problem ? write_problem(at, problem) : write_usage(at, s);
  return (size_t)(at - out);
}
