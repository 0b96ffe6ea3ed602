/* logprobs: the log probabilities of a choice's tokens. */
#include "server/dialect/openai/logprobs.h"

#include <string.h>

#include "config/document/text.h"
#include "core/base/size.h"
#include "server/answer/answer_section.h"
#include "server/model/answer/stack_detokenizer.h"
#include "server/text/json_string.h"

char *logprobs_write_none(char *out) { return answer_write_text(out, ",\"logprobs\":null"); }

size_t logprobs_room(const struct logprobs *l, const struct tokenizer *t, size_t top,
                     size_t tokens) {
  const size_t strings = 2 + top; /* the token's own may be there twice */
  size_t string, room;
  if (!size_mul(stack_token_text_room(t), l->of_byte, &string) ||
      !size_add(string, l->of_string, &string) || !size_mul(string, strings, &room) ||
      !size_add(room, l->of_token, &room) || !size_mul(room, tokens, &room) ||
      !size_add(room, l->fixed, &room))
    return SIZE_MAX;
  return room;
}

/* --- strings --- */

static const char BYTES[] = "\"bytes:", BYTE[] = "\\\\x";

_Static_assert(sizeof BYTE - 1 + 2 <= (int)JSON_STRING_ROOM, "a byte in hexadecimal digits fits");

enum { STRING_ROOM = sizeof BYTES + sizeof "\"," }; /* a string without its bytes */

/* The tokens of one sequence. */
struct sequence_tokens {
  const struct stack_token_texts *texts;
  const struct stack_sequence *q;
  size_t top; /* most likely tokens in the place of each */
};

/* Writes string `number` of token t. As in OpenAI's API, bytes that are no UTF-8 are
 * "bytes:\xe2\x80". */
static char *write_string(const struct sequence_tokens *k, size_t t, size_t number, char *out) {
  static const char digits[] = "0123456789abcdef";
  const struct tokenizer_text s = stack_token_text(k->texts, t, number);
  if (text_is_utf8(s.bytes, s.length)) return json_string_write(s.bytes, s.length, out);
  out = answer_write_text(out, BYTES);
  for (size_t i = 0; i < s.length; i++) {
    const unsigned char byte = (unsigned char)s.bytes[i];
    out = answer_write_text(out, BYTE);
    *out++ = digits[byte >> 4];
    *out++ = digits[byte & 0xf];
  }
  *out++ = '"';
  return out;
}

static struct sequence_tokens tokens_of(const struct stack_request *r, size_t item) {
  return (struct sequence_tokens){r->detokenizer->sequence[item].token_texts,
                                  &r->generation.sequence[item], r->generation.top_count};
}

/* --- completions: four lists with an element for each token, whose name is its string --- */

static const char TOKENS[] = ",\"logprobs\":{\"tokens\":[", LOGS[] = "],\"token_logprobs\":[",
                  TOP[] = "],\"top_logprobs\":[", PLACES[] = "],\"text_offset\":[", END[] = "]}";

static bool is_chosen(const struct sequence_tokens *k, size_t t, size_t number) {
  return k->q->top_token[t * k->top + number - 1] == k->q->token[t];
}

/* Whether this most likely token is a member of the object. If several have the same string, only
 * the chosen one is, or else the most likely of them. */
static bool is_member(const struct sequence_tokens *k, size_t t, size_t number) {
  const struct tokenizer_text a = stack_token_text(k->texts, t, number);
  if (is_chosen(k, t, number)) return true;
  for (size_t other = 0; other < number; other++) {
    const struct tokenizer_text b = stack_token_text(k->texts, t, other);
    if (a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0) return false;
  }
  return true;
}

/* Writes the object of the most likely tokens. The chosen token is the last one if it is not one of
 * them. */
static char *write_top(const struct sequence_tokens *k, size_t t, char *out) {
  const char *begin = out;
  bool chosen = false;
  *out++ = '{';
  for (size_t number = 1; number <= k->top; number++) {
    if (!is_member(k, t, number)) continue;
    if (out > begin + 1) *out++ = ',';
    out = write_string(k, t, number, out);
    *out++ = ':';
    out = number_write(out, k->q->top_log_probability[t * k->top + number - 1]);
    chosen = chosen || is_chosen(k, t, number);
  }
  if (!chosen) {
    if (out > begin + 1) *out++ = ',';
    out = write_string(k, t, 0, out);
    *out++ = ':';
    out = number_write(out, k->q->log_probability[t]);
  }
  *out++ = '}';
  return out;
}

static char *write_lists(const struct stack_request *r, size_t item, size_t from, size_t end,
                         char *out) {
  const struct sequence_tokens k = tokens_of(r, item);
  out = answer_write_text(out, TOKENS);
  for (size_t t = from; t < end; t++) {
    if (t > from) *out++ = ',';
    out = write_string(&k, t, 0, out);
  }
  out = answer_write_text(out, LOGS);
  for (size_t t = from; t < end; t++) {
    if (t > from) *out++ = ',';
    out = number_write(out, k.q->log_probability[t]);
  }
  out = answer_write_text(out, TOP);
  for (size_t t = from; t < end; t++) {
    if (t > from) *out++ = ',';
    out = write_top(&k, t, out);
  }
  out = answer_write_text(out, PLACES);
  for (size_t t = from; t < end; t++) {
    if (t > from) *out++ = ',';
    out = number_write_integer(out, (int64_t)k.texts->place[t]);
  }
  return answer_write_text(out, END);
}

const struct logprobs logprobs_of_completions = {
    .write = write_lists,
    .fixed = sizeof TOKENS + sizeof LOGS + sizeof TOP + sizeof PLACES + sizeof END,
    .of_token = NUMBER_TEXT_MAX + COUNT_ROOM + sizeof "{},,,",
    .of_string = STRING_ROOM + NUMBER_TEXT_MAX + sizeof ":,",
    .of_byte = JSON_STRING_ROOM};

/* --- chat completions: an object for each token, with its string and its bytes --- */

static const char CONTENT[] = ",\"logprobs\":{\"content\":[",
                  TOKEN[] = "{\"token\":", LOG[] = ",\"logprob\":", CODES[] = ",\"bytes\":[",
                  TOP_TOKENS[] = ",\"top_logprobs\":[", NO_REFUSAL[] = "],\"refusal\":null}";

/* Writes the object of string `number` of token t, without its end. */
static char *write_token(const struct sequence_tokens *k, size_t t, size_t number, float log,
                         char *out) {
  const struct tokenizer_text s = stack_token_text(k->texts, t, number);
  out = write_string(k, t, number, answer_write_text(out, TOKEN));
  out = number_write(answer_write_text(out, LOG), log);
  out = answer_write_text(out, CODES);
  for (size_t i = 0; i < s.length; i++) {
    if (i > 0) *out++ = ',';
    out = number_write_integer(out, (unsigned char)s.bytes[i]);
  }
  *out++ = ']';
  return out;
}

static char *write_tokens(const struct stack_request *r, size_t item, size_t from, size_t end,
                          char *out) {
  const struct sequence_tokens k = tokens_of(r, item);
  if (from == end) return logprobs_write_none(out);
  out = answer_write_text(out, CONTENT);
  for (size_t t = from; t < end; t++) {
    if (t > from) *out++ = ',';
    out = write_token(&k, t, 0, k.q->log_probability[t], out);
    out = answer_write_text(out, TOP_TOKENS);
    for (size_t number = 1; number <= k.top; number++) {
      if (number > 1) *out++ = ',';
      out = write_token(&k, t, number, k.q->top_log_probability[t * k.top + number - 1], out);
      *out++ = '}';
    }
    out = answer_write_text(out, "]}");
  }
  return answer_write_text(out, NO_REFUSAL);
}

const struct logprobs logprobs_of_chat = {.write = write_tokens,
                                          .fixed = sizeof CONTENT + sizeof NO_REFUSAL,
                                          .of_token = sizeof TOP_TOKENS + sizeof "],",
                                          .of_string = STRING_ROOM + NUMBER_TEXT_MAX +
                                                       sizeof TOKEN + sizeof LOG + sizeof CODES +
                                                       sizeof "]},",
                                          .of_byte = JSON_STRING_ROOM + sizeof "255,"};
