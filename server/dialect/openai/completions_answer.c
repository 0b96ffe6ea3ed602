/* completions_answer: the response to POST /v1/completions: each text is an object in a list. In a
 * stream each event is such a response with one part of one text, and the last one is [DONE]. */
#include "server/dialect/openai/completions_answer.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "config/document/text.h"
#include "core/base/size.h"
#include "server/dialect/dialect_answer.h"
#include "server/model/answer/stack_detokenizer.h"
#include "server/text/json_string.h"

/* --- what a response has next to its texts --- */

struct completions {
  const char *model;
  const struct stack_request *request;
  const struct tokenizer_text *echo; /* [texts] the prompts; or NULL */
  int64_t created;                   /* seconds since 1970 */
  char id[DIALECT_ID_SIZE];
  bool has_usage, has_logprobs;
};

/* NULL with an error. */
static const struct completions *completions_new(const struct completions_asked *asked) {
  const struct contract_reading *read = asked->read;
  const struct stack_request *r = asked->request;
  const struct tensor *tokens = asked->tokens;
  struct completions *c = arena_alloc(read->arena, 1, sizeof *c, read->e);
  if (!c) return NULL;
  *c = (struct completions){.model = asked->model,
                            .request = r,
                            .created = (int64_t)time(NULL),
                            .has_usage = asked->wishes->usage,
                            .has_logprobs = asked->wishes->logprobs.wanted};
  dialect_answer_id("cmpl", c->id);
  if (!asked->wishes->echo) return c;

  /* The prompts as they were sent, or the text of their tokens. */
  struct tokenizer_text *echo = arena_alloc(read->arena, r->texts, sizeof *echo, read->e);
  const int32_t *token = read->texts ? NULL : tokens->data;
  c->echo = echo;
  for (size_t i = 0; i < r->texts && !read->e->status; i++) {
    if (read->texts) {
      const struct texts_part *part = &read->texts->part[i];
      echo[i] = (struct tokenizer_text){read->texts->bytes + part->at, part->length};
      continue;
    }
    const size_t length = tokens->depth == 1 ? tokens->count : tensor_shape_at(tokens, i).dim[0];
    struct decoder_text text = {NULL, 0, false};
    tokenizer_decode(r->detokenizer->terms.tokenizer, token, length, true, read->arena, &text,
                     read->e);
    echo[i] = (struct tokenizer_text){text.bytes, text.length};
    token += length;
  }
  return read->e->status ? NULL : c;
}

static const char *finish_name(enum stack_finish finish) {
  return finish == STACK_FINISH_LENGTH ? "length" : "stop";
}

/* Writes {"prompt_tokens":…,"completion_tokens":…,"total_tokens":…}. */
static char *write_usage(char *out, const struct answer_usage *u) {
  const size_t generated = u->generated(u->of);
  out = answer_write_text(out, "{\"prompt_tokens\":");
  out = number_write_integer(out, (int64_t)u->tokens);
  out = answer_write_text(out, ",\"completion_tokens\":");
  out = number_write_integer(out, (int64_t)generated);
  out = answer_write_text(out, ",\"total_tokens\":");
  out = number_write_integer(out, (int64_t)(u->tokens + generated));
  return answer_write_text(out, "}");
}

/* --- log probabilities: four lists with an element for each token, whose name is its text --- */

static const char NONE[] = ",\"logprobs\":null", TOKENS[] = ",\"logprobs\":{\"tokens\":[",
                  LOGS[] = "],\"token_logprobs\":[", TOP[] = "],\"top_logprobs\":[",
                  PLACES[] = "],\"text_offset\":[", END[] = "]}",
                  BYTES[] = "\"bytes:", BYTE[] = "\\\\x";

_Static_assert(sizeof BYTE - 1 + 2 <= (int)JSON_STRING_ROOM, "a byte in hexadecimal digits fits");

enum {
  LOGPROBS_ROOM = sizeof TOKENS + sizeof LOGS + sizeof TOP + sizeof PLACES + sizeof END,
  STRING_ROOM = sizeof BYTES + sizeof "\",", /* a string without its bytes */
  TOP_ROOM = NUMBER_TEXT_MAX + sizeof ":,",  /* a most likely token without its string */
  TOKEN_ROOM = NUMBER_TEXT_MAX + COUNT_ROOM + sizeof "{},,,"
};

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

/* Writes ,"logprobs":… for tokens `from` to `end` - 1 of a sequence. */
static char *write_logprobs(const struct completions *c, size_t item, size_t from, size_t end,
                            char *out) {
  const struct stack_request *r = c->request;
  if (!c->has_logprobs) return answer_write_text(out, NONE);
  const struct sequence_tokens k = {r->detokenizer->sequence[item].token_texts,
                                    &r->generation.sequence[item], r->generation.top_count};
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

/* The most bytes of that for `tokens` tokens; SIZE_MAX: an overflow. The chosen token is in two
 * lists. */
static size_t logprobs_room(const struct completions *c, size_t tokens) {
  const struct stack_request *r = c->request;
  size_t string, room;
  if (!c->has_logprobs) return sizeof NONE;
  const size_t strings = 2 + r->generation.top_count;
  if (!size_mul(stack_token_text_room(r->detokenizer->terms.tokenizer), JSON_STRING_ROOM,
                &string) ||
      !size_add(string, STRING_ROOM + TOP_ROOM, &string) || !size_mul(string, strings, &room) ||
      !size_add(room, TOKEN_ROOM, &room) || !size_mul(room, tokens, &room) ||
      !size_add(room, LOGPROBS_ROOM, &room))
    return SIZE_MAX;
  return room;
}

/* --- at once --- */

static const char TEXT[] = "{\"text\":", INDEX[] = ",\"index\":",
                  FINISH[] = ",\"finish_reason\":\"";

enum { CHOICE_ROOM = sizeof TEXT + sizeof INDEX + COUNT_ROOM + sizeof FINISH + 16 + ROW_ROOM };

/* Writes an object for each sequence. The prompt, if it is echoed, and the generated text are one
 * string. */
static char *write_choices(const struct answer_rows *rows, char *out) {
  const struct completions *c = rows->section->data;
  const struct stack_request *r = c->request;
  for (size_t i = rows->first; i < rows->first + rows->count; i++) {
    const struct tokenizer_text *echo = c->echo ? &c->echo[i / r->each] : NULL;
    const struct detokenizer *u = &r->detokenizer->sequence[i].detokenizer;
    const struct stack_sequence *q = &r->generation.sequence[i];
    if (i > rows->first) *out++ = ',';
    out = answer_write_text(out, TEXT);
    *out++ = '"';
    if (echo) out = json_string_write_part(echo->bytes, echo->length, out);
    out = json_string_write_part(u->text, u->length, out);
    *out++ = '"';
    out = answer_write_text(out, INDEX);
    out = number_write_integer(out, (int64_t)i);
    out = write_logprobs(c, i, 0, stack_sequence_count(q), out);
    out = answer_write_text(out, FINISH);
    out = answer_write_text(out, finish_name(q->finish));
    out = answer_write_text(out, "\"}");
  }
  return out;
}

/* The most bytes of an object; SIZE_MAX: an overflow. */
static size_t choice_room(const struct completions *c) {
  const struct stack_request *r = c->request;
  size_t room = 0;
  for (size_t i = 0; i < r->main.run->geometry.items; i++) {
    const size_t most = r->generation.sequence[i].most;
    size_t each = stack_detokenizer_room(r->detokenizer, most, false), echo = 0;
    if (c->echo && !size_mul(c->echo[i / r->each].length, JSON_STRING_ROOM, &echo)) return SIZE_MAX;
    if (!size_add(each, echo, &each) || !size_add(each, logprobs_room(c, most), &each))
      return SIZE_MAX;
    room = size_max(room, each);
  }
  return size_add(room, CHOICE_ROOM, &room) ? room : SIZE_MAX;
}

enum status completions_answer(struct answer *a, const struct completions_asked *asked,
                               size_t max_bytes) {
  enum { ID, OBJECT, CREATED, MODEL, CHOICES, SECTIONS, CREATED_ROOM = COUNT_ROOM + 2 };
  const struct completions *c = completions_new(asked);
  const struct stack_request *r = asked->request;
  struct arena *arena = asked->read->arena;
  struct error *e = asked->read->e;
  struct dialect_sheet sheet;
  if (!c) return e->status;
  const char *id = dialect_answer_quote(c->id, arena, e),
             *model = dialect_answer_quote(c->model, arena, e);
  char *created = arena_alloc(arena, CREATED_ROOM, 1, e);
  if (e->status || dialect_answer_begin(&sheet, SECTIONS, r, arena, e)) return e->status;
  snprintf(created, CREATED_ROOM, "%lld", (long long)c->created);
  sheet.content->usage.write = write_usage;
  sheet.section[ID] = answer_section_text("id", id);
  sheet.section[OBJECT] = answer_section_text("object", "\"text_completion\"");
  sheet.section[CREATED] = answer_section_text("created", created);
  sheet.section[MODEL] = answer_section_text("model", model);
  sheet.section[CHOICES] = dialect_answer_list("choices", &r->main.run->geometry.items, NULL,
                                               choice_room(c), write_choices, c);
  return answer_plan(a, ANSWER_JSON, sheet.content, max_bytes, arena, e);
}

/* --- as a stream --- */

enum { EVENT_ROOM = 384 }; /* an event with the longest name of a model, without text */

static size_t room(const struct stack_stream *s) {
  /* Each token has memory for its strings: no sum overflows. */
  return EVENT_ROOM + (s->run->geometry.items > 0 ? logprobs_room(s->context, 1) : 0);
}

static char *write_head(const struct stack_stream *s, char *out) {
  const struct completions *c = s->context;
  out = answer_write_text(out, "data: {\"id\":\"");
  out = answer_write_text(out, c->id);
  out = answer_write_text(out, "\",\"object\":\"text_completion\",\"created\":");
  out = number_write_integer(out, c->created);
  out = answer_write_text(out, ",\"model\":\"");
  out = answer_write_text(out, c->model);
  return answer_write_text(out, "\",\"choices\":[");
}

/* A part of a sequence's text, and its tokens `from` to `end` - 1. */
struct completions_part {
  size_t item, from, end;
  struct tokenizer_text text;
};

/* Writes an event; `finish` is NULL before the end of the sequence. */
static char *write_choice(const struct stack_stream *s, const struct completions_part *p,
                          const char *finish, char *out) {
  out = write_head(s, out);
  out = answer_write_text(out, "{\"text\":");
  out = json_string_write(p->text.bytes, p->text.length, out);
  out = answer_write_text(out, ",\"index\":");
  out = number_write_integer(out, (int64_t)p->item);
  out = write_logprobs(s->context, p->item, p->from, p->end, out);
  out = answer_write_text(out, ",\"finish_reason\":");
  if (finish) *out++ = '"';
  out = answer_write_text(out, finish ? finish : "null");
  if (finish) *out++ = '"';
  return answer_write_text(out, "}]}\n\n");
}

static char *write_token(const struct stack_stream *s, size_t i, size_t t,
                         struct tokenizer_text text, char *out) {
  const struct completions_part part = {i, t, t + 1, text};
  return write_choice(s, &part, NULL, out);
}

static char *write_more(const struct stack_stream *s, size_t i, struct tokenizer_text text,
                        char *out) {
  const struct completions_part part = {i, 0, 0, text};
  return write_choice(s, &part, NULL, out);
}

static char *write_finish(const struct stack_stream *s, size_t i, char *out) {
  const enum stack_finish finish = s->run->generation->sequence[i].finish;
  const struct completions_part nothing = {i, 0, 0, {"", 0}};
  return write_choice(s, &nothing, finish_name(finish), out);
}

static char *write_end(const struct stack_stream *s, char *out) {
  const struct completions *c = s->context;
  if (c->has_usage) {
    out = write_head(s, out);
    out = answer_write_text(out, "],\"usage\":");
    out = write_usage(out, &s->usage);
    out = answer_write_text(out, "}\n\n");
  }
  return answer_write_text(out, "data: [DONE]\n\n");
}

static char *write_problem(const char *problem, char *out) {
  out = answer_write_text(out, "data: ");
  out = answer_write_text(out, problem);
  return answer_write_text(out, "\n\ndata: [DONE]\n\n");
}

static const struct stack_events events = {.room = room,
                                           .token = write_token,
                                           .more = write_more,
                                           .finish = write_finish,
                                           .end = write_end,
                                           .problem = write_problem};

enum status completions_stream(struct stack_stream *s, const struct completions_asked *asked) {
  const struct completions *c = completions_new(asked);
  struct arena *arena = asked->read->arena;
  struct error *e = asked->read->e;
  if (!c || stack_stream_init(s, &events, c, c->request, arena, e)) return e->status;
  return c->echo ? stack_stream_begin_with(s, c->echo, arena, e) : STATUS_OK;
}
