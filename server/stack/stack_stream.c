/* stack_stream: the events of a request that generates. */
#include "server/stack/stack_stream.h"

#include <string.h>

#include "server/stack/stack_answer.h"
#include "server/stack/stack_words.h"
#include "server/text/number.h"

enum { EVENT_ROOM = 160 /* of an event without likeliest tokens, its numbers at their longest */ };

enum status stack_stream_init(struct stack_stream *s, const struct stack_request *of,
                              struct arena *a, struct error *e) {
  const struct stack_run *r = of->main.run;
  const size_t items = r->geometry.items, top = r->generation->top_count;
  *s = (struct stack_stream){.run = r,
                             .usage = stack_answer_usage(of),
                             .event = EVENT_ROOM + top * STACK_TOP_ROOM + NUMBER_WRITE_MARGIN,
                             .sent = arena_alloc(a, items, sizeof *s->sent, e)};
  if (s->sent) memset(s->sent, 0, items * sizeof *s->sent);
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

static char *write_token(char *out, const struct stack_sequence *q, size_t t, size_t top) {
  out = write_place(out, q);
  out = write_named(out, ",\"token\":", q->token[t]);
  out = answer_write_text(out, ",\"log_probability\":");
  out = number_write(out, q->log_probability[t]);
  if (top > 0) {
    out = answer_write_text(out, ",\"top\":");
    out = stack_write_top(out, q->top_token + t * top, q->top_log_probability + t * top, top);
  }
  return answer_write_text(out, "}\n\n");
}

static char *write_finish(char *out, const struct stack_sequence *q) {
  out = write_place(out, q);
  out = answer_write_text(out, ",\"finish\":\"");
  out = answer_write_text(out, stack_finish_name(q->finish));
  out = answer_write_text(out, "\",\"score\":");
  out = number_write(out, (float)q->score);
  return answer_write_text(out, "}\n\n");
}

static char *write_usage(char *out, const struct stack_stream *s) {
  out = answer_write_text(out, "data: {\"usage\":");
  out = answer_usage_write(out, &s->usage);
  return answer_write_text(out, "}\n\n");
}

/* --- what there is --- */

/* The next event of a sequence; `out` itself: it has none yet. */
static char *write_next(struct stack_stream *s, size_t i, char *out) {
  const struct stack_generation *g = s->run->generation;
  const struct stack_sequence *q = &g->sequence[i];
  /* Where it is finished, the count that is read behind that is the last one. */
  const enum stack_finish finish = atomic_load_explicit(&q->finish, memory_order_acquire);
  const size_t count = stack_sequence_count(q), t = s->sent[i];
  if (t > count) return out;
  if (t < count) {
    s->sent[i]++;
    return write_token(out, q, t, g->top_count);
  }
  if (!finish) return out;
  s->sent[i]++;
  return write_finish(out, q);
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
