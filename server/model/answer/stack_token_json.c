/* stack_token_json: JSON of tokens that may follow. */
#include "server/model/answer/stack_token_json.h"

#include "server/answer/answer_section.h"
#include "server/number/number.h"
#include "server/text/json_string.h"

static const char TOKEN[] = "{\"token\":", LOG_PROBABILITY[] = ",\"log_probability\":",
                  PARENT[] = "{\"parent\":", OF_BEAM[] = ",\"token\":", SUM[] = ",\"sum\":";

_Static_assert(sizeof TOKEN + sizeof LOG_PROBABILITY + sizeof "-2147483648}," + NUMBER_TEXT_MAX <=
                   (int)STACK_TOP_ROOM,
               "a token and its log probability fit");

_Static_assert(sizeof PARENT + sizeof OF_BEAM + sizeof LOG_PROBABILITY + sizeof SUM +
                       2 * sizeof "-2147483648}," + 2 * NUMBER_TEXT_MAX <=
                   (int)STACK_BEAM_ROOM,
               "a beam of a search fits");

char *stack_write_top(char *out, const int32_t *token, const float *log, size_t count) {
  *out++ = '[';
  for (size_t i = 0; i < count; i++) {
    if (i > 0) *out++ = ',';
    out = answer_write_text(out, TOKEN);
    out = number_write_integer(out, token[i]);
    out = answer_write_text(out, LOG_PROBABILITY);
    out = number_write(out, log[i]);
    *out++ = '}';
  }
  *out++ = ']';
  return out;
}

char *stack_write_beams(char *out, const struct stack_beam *beam, size_t count) {
  *out++ = '[';
  for (size_t i = 0; i < count; i++) {
    if (i > 0) *out++ = ',';
    out = answer_write_text(out, PARENT);
    out = number_write_integer(out, beam[i].parent);
    out = answer_write_text(out, OF_BEAM);
    out = number_write_integer(out, beam[i].token);
    out = answer_write_text(out, LOG_PROBABILITY);
    out = number_write(out, beam[i].log_probability);
    out = answer_write_text(out, SUM);
    out = number_write(out, (float)beam[i].sum);
    *out++ = '}';
  }
  *out++ = ']';
  return out;
}

enum { QUOTES = sizeof "\"\",", NOTHING = sizeof "null," };

size_t stack_piece_room(const struct tokenizer *t, int64_t id) {
  const size_t most = id < 0 ? tokenizer_piece_max(t) : tokenizer_piece_room(t, id);
  return QUOTES + NOTHING + JSON_STRING_ROOM * most + (id < 0 ? most : 0);
}

char *stack_write_piece(char *out, const struct tokenizer *t, int64_t id) {
  /* The piece is put after all that its JSON may need. */
  char *piece = out + stack_piece_room(t, -1) - tokenizer_piece_max(t);
  const size_t length = tokenizer_write_piece(t, id, piece);
  if (length == SIZE_MAX) return answer_write_text(out, "null");
  return json_string_write(piece, length, out);
}

const char *stack_finish_name(enum stack_finish finish) {
  static const char *const name[] = {[STACK_FINISH_NOT] = "",
                                     [STACK_FINISH_END] = "end",
                                     [STACK_FINISH_STOP] = "stop",
                                     [STACK_FINISH_LENGTH] = "length"};
  return name[finish];
}
