/* completions_logprobs: the log probabilities of tokens in the answer to POST /v1/completions, and
 * in its events: four lists side by side, in which a token is the text that it adds. */
#include <string.h>

#include "config/document/text.h"
#include "core/base/size.h"
#include "server/answer/answer_section.h"
#include "server/dialect/openai/completions.h"
#include "server/model/answer/stack_detokenizer.h"
#include "server/text/json_string.h"

static const char NONE[] = ",\"logprobs\":null", TOKENS[] = ",\"logprobs\":{\"tokens\":[",
                  LOGS[] = "],\"token_logprobs\":[", TOP[] = "],\"top_logprobs\":[",
                  PLACES[] = "],\"text_offset\":[", END[] = "]}",
                  BYTES[] = "\"bytes:", BYTE[] = "\\\\x";

_Static_assert(sizeof BYTE - 1 + 2 <= (int)JSON_STRING_ROOM, "a byte in hexadecimal digits fits");

enum {
  AROUND_ROOM = sizeof TOKENS + sizeof LOGS + sizeof TOP + sizeof PLACES + sizeof END,
  STRING_ROOM = sizeof BYTES + sizeof "\",", /* of a string beside its bytes */
  TOP_ROOM = NUMBER_TEXT_MAX + sizeof ":,",  /* of a likely token beside its string */
  TOKEN_ROOM = NUMBER_TEXT_MAX + COUNT_ROOM + sizeof "{},,,"
};

/* The tokens of one sequence. */
struct told_tokens {
  const struct stack_token_texts *texts;
  const struct stack_sequence *q;
  size_t top; /* of the likeliest in the place of each */
};

static struct told_tokens tokens_of(const struct completions_told *told, size_t item) {
  const struct stack_request *r = told->request;
  return (struct told_tokens){r->detokenizer->sequence[item].token_texts, &r->generation.sequence[item],
                              r->generation.top_count};
}

/* --- strings --- */

/* As OpenAI's service writes what is no text: "bytes:\xe2\x80". */
static char *write_bytes(struct tokenizer_text bytes, char *out) {
  static const char digits[] = "0123456789abcdef";
  out = answer_write_text(out, BYTES);
  for (size_t i = 0; i < bytes.length; i++) {
    const unsigned char byte = (unsigned char)bytes.bytes[i];
    out = answer_write_text(out, BYTE);
    *out++ = digits[byte >> 4];
    *out++ = digits[byte & 0xf];
  }
  *out++ = '"';
  return out;
}

static char *write_string(const struct told_tokens *k, size_t t, size_t number, char *out) {
  const struct tokenizer_text s = stack_token_text(k->texts, t, number);
  if (!text_is_utf8(s.bytes, s.length)) return write_bytes(s, out);
  return json_string_write(s.bytes, s.length, out);
}

static bool are_alike(const struct told_tokens *k, size_t t, size_t number, size_t other) {
  const struct tokenizer_text a = stack_token_text(k->texts, t, number),
                              b = stack_token_text(k->texts, t, other);
  return a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0;
}

/* --- the likeliest --- */

static bool is_chosen(const struct told_tokens *k, size_t t, size_t number) {
  return k->q->top_token[t * k->top + number - 1] == k->q->token[t];
}

/* A member's name is there once: of tokens that are written alike the one that was chosen has it,
 * or else the likeliest. */
static bool has_name(const struct told_tokens *k, size_t t, size_t number) {
  if (is_chosen(k, t, number)) return true;
  for (size_t other = 0; other < number; other++)
    if (are_alike(k, t, number, other)) return false;
  return true;
}

static char *write_member(const struct told_tokens *k, size_t t, size_t number, float log,
                          char *out) {
  out = write_string(k, t, number, out);
  *out++ = ':';
  return number_write(out, log);
}

/* The token that was chosen is among them in any case, at the end if it is none of them. */
static char *write_top(const struct told_tokens *k, size_t t, char *out) {
  const char *begin = out;
  bool chosen = false;
  *out++ = '{';
  for (size_t number = 1; number <= k->top; number++) {
    if (!has_name(k, t, number)) continue;
    if (out > begin + 1) *out++ = ',';
    out = write_member(k, t, number, k->q->top_log_probability[t * k->top + number - 1], out);
    chosen = chosen || is_chosen(k, t, number);
  }
  if (!chosen && out > begin + 1) *out++ = ',';
  if (!chosen) out = write_member(k, t, 0, k->q->log_probability[t], out);
  *out++ = '}';
  return out;
}

/* --- the lists --- */

static char *write_own(const struct told_tokens *k, size_t t, char *out) {
  return write_string(k, t, 0, out);
}

static char *write_log(const struct told_tokens *k, size_t t, char *out) {
  return number_write(out, k->q->log_probability[t]);
}

static char *write_place(const struct told_tokens *k, size_t t, char *out) {
  return number_write_integer(out, (int64_t)k->texts->place[t]);
}

static char *write_list(const struct told_tokens *k, size_t from, size_t before,
                        char *(*write)(const struct told_tokens *k, size_t t, char *out),
                        char *out) {
  for (size_t t = from; t < before; t++) {
    if (t > from) *out++ = ',';
    out = write(k, t, out);
  }
  return out;
}

char *completions_logprobs(const struct completions_told *told, size_t item, size_t from,
                           size_t before, char *out) {
  if (!told->logprobs) return answer_write_text(out, NONE);
  const struct told_tokens k = tokens_of(told, item);
  out = answer_write_text(out, TOKENS);
  out = write_list(&k, from, before, write_own, out);
  out = answer_write_text(out, LOGS);
  out = write_list(&k, from, before, write_log, out);
  out = answer_write_text(out, TOP);
  out = write_list(&k, from, before, write_top, out);
  out = answer_write_text(out, PLACES);
  out = write_list(&k, from, before, write_place, out);
  return answer_write_text(out, END);
}

/* --- their room --- */

/* The chosen token stands in two lists. */
size_t completions_logprobs_room(const struct completions_told *told, size_t tokens) {
  const struct stack_request *r = told->request;
  size_t string, room;
  if (!told->logprobs) return sizeof NONE;
  const size_t strings = 2 + r->generation.top_count;
  if (!size_mul(stack_token_text_room(r->detokenizer->terms.tokenizer), JSON_STRING_ROOM, &string) ||
      !size_add(string, STRING_ROOM + TOP_ROOM, &string) || !size_mul(string, strings, &room) ||
      !size_add(room, TOKEN_ROOM, &room) || !size_mul(room, tokens, &room) ||
      !size_add(room, AROUND_ROOM, &room))
    return SIZE_MAX;
  return room;
}
