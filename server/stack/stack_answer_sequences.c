/* stack_answer_sequences: the sequences of an answer, each an object in the list of its text. */
#include "server/stack/stack_answer_sequences.h"

#include "core/run/size.h"
#include "server/stack/stack_answer.h"
#include "server/stack/stack_words.h"

static const size_t zero = 0;

enum {
  AROUND_ROOM = 96,                             /* the names of a sequence and its own numbers */
  TOKEN_ROOM = sizeof "-2147483648,",           /* of its tokens */
  PLACE_ROOM = TOKEN_ROOM + NUMBER_TEXT_MAX + 4 /* of a token with all but the likeliest */
};

size_t stack_sequence_room(size_t most, size_t top) {
  return AROUND_ROOM + most * (PLACE_ROOM + top * STACK_TOP_ROOM);
}

static char *write_tokens(const struct stack_sequence *q, size_t count, char *out) {
  out = answer_write_text(out, "{\"tokens\":[");
  for (size_t t = 0; t < count; t++) {
    if (t > 0) *out++ = ',';
    out = number_write_integer(out, q->token[t]);
  }
  return answer_write_text(out, "],\"score\":");
}

static char *write_logs(const struct stack_sequence *q, size_t count, char *out) {
  out = answer_write_text(out, ",\"log_probabilities\":");
  out = number_write_rows(out, q->log_probability, 1, count);
  return out;
}

static char *write_sequence(const struct stack_generation *g, size_t index, char *out) {
  const struct stack_sequence *q = &g->sequence[index];
  const size_t count = stack_sequence_count(q), top = g->top_count;
  out = write_tokens(q, count, out);
  out = number_write(out, (float)q->score);
  out = answer_write_text(out, ",\"finish\":\"");
  out = answer_write_text(out, stack_finish_name(q->finish));
  out = answer_write_text(out, "\"");
  out = write_logs(q, count, out);
  if (top > 0) {
    out = answer_write_text(out, ",\"top\":[");
    for (size_t t = 0; t < count; t++) {
      if (t > 0) *out++ = ',';
      out = stack_write_top(out, q->top_token + t * top, q->top_log_probability + t * top, top);
    }
    *out++ = ']';
  }
  return answer_write_text(out, "}");
}

static char *write_sequences(const struct answer_rows *r, char *out) {
  const struct stack_request *of = r->section->data;
  for (size_t i = r->first; i < r->first + r->count; i++) {
    if (i > r->first) *out++ = ',';
    out = write_sequence(&of->generation, r->item * of->returns + i, out);
  }
  return out;
}

void stack_answer_sequences(struct stack_listing *l) {
  const struct stack_request *r = l->r;
  struct answer_section *s = stack_answer_add(l, NULL, "sequences");
  size_t most = 0;
  for (size_t i = 0; i < r->run->geometry.items; i++)
    most = size_max(most, r->generation.sequence[i].most);
  s->batch = true;
  s->items = r->texts;
  s->rows = (struct answer_sizes){&r->returns, 0};
  s->width = (struct answer_sizes){&zero, 0};
  s->begin = (struct answer_sizes){&zero, 0};
  s->row_room = stack_sequence_room(most, r->generation.top_count);
  s->data = r;
  s->write = write_sequences;
}

size_t stack_answer_generated(const void *request) {
  const struct stack_request *r = request;
  size_t tokens = 0;
  for (size_t i = 0; i < r->run->geometry.items; i++)
    tokens += stack_sequence_count(&r->generation.sequence[i]);
  return tokens;
}
