/* completions_stream: the events of POST /v1/completions: each is an answer whose choices are one
 * piece of one text, and the last one is [DONE]. */
#include <string.h>

#include "server/dialect/openai/completions.h"
#include "server/text/json_string.h"

enum { EVENT_ROOM = 384 /* of an event, with the longest name of a model */ };

static size_t room(const struct stack_stream *s) {
  const struct completions_told *told = s->context;
  /* Where there are tokens, there is memory for their strings: no sum overflows. */
  return EVENT_ROOM + (s->run->geometry.items > 0 ? completions_logprobs_room(told, 1) : 0);
}

static char *write_head(const struct stack_stream *s, char *out) {
  const struct completions_told *told = s->context;
  out = answer_write_text(out, "data: {\"id\":\"");
  out = answer_write_text(out, told->id);
  out = answer_write_text(out, "\",\"object\":\"text_completion\",\"created\":");
  out = number_write_integer(out, told->created);
  out = answer_write_text(out, ",\"model\":\"");
  out = answer_write_text(out, told->model);
  return answer_write_text(out, "\",\"choices\":[");
}

/* A piece of a text, with the tokens of a sequence from one on, before another. */
struct completions_piece {
  size_t item, from, before;
  struct tokenizer_text text;
};

static char *write_choice(const struct stack_stream *s, const struct completions_piece *p,
                          const char *finish, char *out) {
  out = write_head(s, out);
  out = answer_write_text(out, "{\"text\":");
  out = json_string_write(p->text.bytes, p->text.length, out);
  out = answer_write_text(out, ",\"index\":");
  out = number_write_integer(out, (int64_t)p->item);
  out = completions_logprobs(s->context, p->item, p->from, p->before, out);
  out = answer_write_text(out, ",\"finish_reason\":");
  if (finish) *out++ = '"';
  out = answer_write_text(out, finish ? finish : "null");
  if (finish) *out++ = '"';
  return answer_write_text(out, "}]}\n\n");
}

static char *write_token(const struct stack_stream *s, size_t i, size_t t,
                         struct tokenizer_text text, char *out) {
  const struct completions_piece piece = {i, t, t + 1, text};
  return write_choice(s, &piece, NULL, out);
}

static char *write_more(const struct stack_stream *s, size_t i, struct tokenizer_text text,
                        char *out) {
  const struct completions_piece piece = {i, 0, 0, text};
  return write_choice(s, &piece, NULL, out);
}

static char *write_finish(const struct stack_stream *s, size_t i, char *out) {
  const enum stack_finish finish = s->run->generation->sequence[i].finish;
  const struct completions_piece nothing = {i, 0, 0, {"", 0}};
  return write_choice(s, &nothing, completions_finish(finish), out);
}

static char *write_done(char *out) { return answer_write_text(out, "data: [DONE]\n\n"); }

static char *write_end(const struct stack_stream *s, char *out) {
  const struct completions_told *told = s->context;
  if (told->tells_usage) {
    out = write_head(s, out);
    out = answer_write_text(out, "],\"usage\":");
    out = completions_usage(out, &s->usage);
    out = answer_write_text(out, "}\n\n");
  }
  return write_done(out);
}

static char *write_problem(const char *problem, char *out) {
  out = answer_write_text(out, "data: ");
  out = answer_write_text(out, problem);
  return write_done(answer_write_text(out, "\n\n"));
}

static const struct stack_events speech = {.room = room,
                                           .token = write_token,
                                           .more = write_more,
                                           .finish = write_finish,
                                           .end = write_end,
                                           .problem = write_problem};

enum status completions_stream(struct stack_stream *s, const struct completions_told *told,
                               struct arena *arena, struct error *e) {
  if (stack_stream_init(s, &speech, told, told->request, arena, e)) return e->status;
  return told->echo ? stack_stream_begin_with(s, told->echo, arena, e) : STATUS_OK;
}
