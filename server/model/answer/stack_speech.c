/* stack_speech: the events of a stream in our own words. */
#include "server/model/answer/stack_speech.h"

#include "server/model/answer/stack_detokenizer.h"
#include "server/model/answer/stack_words.h"
#include "server/number/number.h"
#include "server/text/json_string.h"

enum { EVENT_ROOM = 176 /* of an event without likeliest tokens, its numbers at their longest */ };

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

const struct stack_speech stack_speech = {.room = room,
                                          .token = write_token,
                                          .more = write_more,
                                          .finish = write_finish,
                                          .end = write_end,
                                          .problem = write_problem};
