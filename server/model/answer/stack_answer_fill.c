/* stack_answer_fill: for each masked token the most likely ones. */
#include "server/model/answer/stack_answer_fill.h"

#include <math.h>

#include "server/model/answer/stack_token_json.h"

static const char POSITION[] = "{\"position\":", TOP[] = ",\"top\":[", TOKEN[] = "{\"token\":",
                  STRING[] = ",\"string\":", PROBABILITY[] = ",\"probability\":";

enum {
  POSITION_ROOM = sizeof POSITION + sizeof TOP + sizeof "2147483648]},",
  TOKEN_ROOM = sizeof TOKEN + sizeof PROBABILITY + sizeof "-2147483648}," + NUMBER_TEXT_MAX
};

/* The most bytes of the object of a token. */
static size_t object_room(const struct tokenizer *t) {
  return TOKEN_ROOM + (t ? sizeof STRING + stack_piece_room(t, -1) : 0);
}

static char *write_token(const struct tokenizer *t, int32_t token, float log, char *out) {
  out = answer_write_text(out, TOKEN);
  out = number_write_integer(out, token);
  if (t) out = stack_write_piece(answer_write_text(out, STRING), t, token);
  out = answer_write_text(out, PROBABILITY);
  out = number_write(out, (float)exp((double)log));
  *out++ = '}';
  return out;
}

/* Writes {"position":5,"top":[{"token":3,"string":"paris","probability":0.5},...]} for each row. */
static char *write_masks(const struct answer_rows *rows, char *out) {
  const struct stack_request *r = rows->section->data;
  const struct stack_run *run = r->main.run;
  const struct tokenizer *t = r->fills_of->tokenizer;
  const size_t first = r->scored[rows->item].first + rows->first;
  for (size_t i = 0; i < rows->count; i++) {
    const int32_t position = r->filled[first + i];
    const size_t row = run->geometry.item[rows->item].q_row + (size_t)position;
    if (i > 0) *out++ = ',';
    out = answer_write_text(out, POSITION);
    out = number_write_integer(out, position);
    out = answer_write_text(out, TOP);
    for (size_t k = 0; k < rows->width; k++) {
      const size_t at = row * r->top + k;
      if (k > 0) *out++ = ',';
      out = write_token(t, run->top_tokens[at], run->top_log_probabilities[at], out);
    }
    *out++ = ']';
    *out++ = '}';
  }
  return out;
}

void stack_answer_fill(struct stack_listing *l) {
  static const size_t zero = 0;
  const struct stack_request *r = l->r;
  struct answer_section *s = stack_listing_add(l, NULL, "masks");
  s->batch = true;
  s->alike = r->targets_alike;
  s->items = r->main.run->geometry.items;
  s->rows = (struct answer_sizes){s->items ? &r->scored->count : &zero, sizeof *r->scored};
  s->width = (struct answer_sizes){&r->top, 0};
  s->begin = (struct answer_sizes){&zero, 0};
  s->times = r->top;
  s->number = NUMBER_TOKEN;
  s->object_room = object_room(r->fills_of->tokenizer);
  s->row_room = ROW_ROOM + POSITION_ROOM + r->top * s->object_room;
  s->data = r;
  s->write = write_masks;
}
