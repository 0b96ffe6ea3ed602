/* completions_answer: the response to a request for completions: each text is an object in a list.
 * In a stream each event is such a response with one part of one text, and the last one is [DONE].
 */
#include "server/dialect/openai/completions_answer.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base/size.h"
#include "server/dialect/dialect_answer.h"
#include "server/dialect/openai/generation_fields.h"
#include "server/dialect/openai/logprobs.h"
#include "server/model/answer/stack_detokenizer.h"
#include "server/text/json_string.h"

/* --- usage --- */

static char *write_counts(char *out, const struct answer_usage *u) {
  const size_t generated = u->generated(u->of);
  out = answer_write_text(out, "{\"prompt_tokens\":");
  out = number_write_integer(out, (int64_t)u->tokens);
  out = answer_write_text(out, ",\"completion_tokens\":");
  out = number_write_integer(out, (int64_t)generated);
  out = answer_write_text(out, ",\"total_tokens\":");
  return number_write_integer(out, (int64_t)(u->tokens + generated));
}

/* Writes {"prompt_tokens":…,"completion_tokens":…,"total_tokens":…}. */
static char *write_usage(char *out, const struct answer_usage *u) {
  return answer_write_text(write_counts(out, u), "}");
}

/* The same with ,"prompt_tokens_details":{"cached_tokens":…}. */
static char *write_usage_cached(char *out, const struct answer_usage *u) {
  out = answer_write_text(write_counts(out, u), ",\"prompt_tokens_details\":{\"cached_tokens\":");
  return answer_write_text(number_write_integer(out, (int64_t)u->cached), "}}");
}

/* --- the formats --- */

struct completions_form {
  const char *id;              /* the beginning of an identifier */
  const char *object, *chunk;  /* the types of a response, in quotes, and of an event */
  const char *text, *text_end; /* before and after a text */
  const char *part, *part_end; /* the same for parts of a text */
  const char *begin, *nothing; /* instead of a part: first, if not NULL, and last */
  const struct logprobs *logprobs;
  char *(*write_usage)(char *out, const struct answer_usage *u);
};

const struct completions_form completions_of_prompts = {.id = "cmpl",
                                                        .object = "\"text_completion\"",
                                                        .chunk = "text_completion",
                                                        .text = "{\"text\":",
                                                        .text_end = "",
                                                        .part = "{\"text\":",
                                                        .part_end = "",
                                                        .nothing = "{\"text\":\"\"",
                                                        .logprobs = &logprobs_of_completions,
                                                        .write_usage = write_usage};

/* The strings of chats are longer than those of completions. */
static const char MESSAGE[] = "{\"message\":{\"role\":\"assistant\",\"content\":",
                  MESSAGE_END[] = ",\"refusal\":null}", CHUNK[] = "chat.completion.chunk",
                  ROLE[] = "{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}";

const struct completions_form completions_of_chat = {.id = "chatcmpl",
                                                     .object = "\"chat.completion\"",
                                                     .chunk = CHUNK,
                                                     .text = MESSAGE,
                                                     .text_end = MESSAGE_END,
                                                     .part = "{\"delta\":{\"content\":",
                                                     .part_end = "}",
                                                     .begin = ROLE,
                                                     .nothing = "{\"delta\":{}",
                                                     .logprobs = &logprobs_of_chat,
                                                     .write_usage = write_usage_cached};

enum { AROUND_ROOM = sizeof MESSAGE + sizeof MESSAGE_END };

/* --- what a response has next to its texts --- */

struct completions {
  const struct completions_form *form;
  const char *model;
  const struct stack_request *request;
  const struct tokenizer_text *echo; /* [texts] the prompts; or NULL */
  int64_t created;                   /* seconds since 1970 */
  char id[DIALECT_ID_SIZE];
  bool has_usage, has_logprobs;
};

/* NULL with an error. */
static const struct completions *completions_new(const struct contract_reading *read,
                                                 const char *model, const struct stack_request *r) {
  const struct generation_values *v = read->values;
  const struct tensor *tokens = read->tensor[GENERATION_INPUT];
  struct completions *c = arena_alloc(read->arena, 1, sizeof *c, read->e);
  if (!c) return NULL;
  *c = (struct completions){.form = v->form,
                            .model = model,
                            .request = r,
                            .created = (int64_t)time(NULL),
                            .has_usage = v->usage,
                            .has_logprobs = v->logprobs.wanted};
  dialect_answer_id(c->form->id, c->id);
  if (!v->echo) return c;

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

/* Writes ,"logprobs":… for tokens `from` to `end` - 1 of a sequence. */
static char *write_logprobs(const struct completions *c, size_t item, size_t from, size_t end,
                            char *out) {
  return c->has_logprobs ? c->form->logprobs->write(c->request, item, from, end, out)
                         : logprobs_write_none(out);
}

static size_t room_of_logprobs(const struct completions *c, size_t tokens) {
  const struct stack_request *r = c->request;
  return c->has_logprobs ? logprobs_room(c->form->logprobs, r->detokenizer->terms.tokenizer,
                                         r->generation.top_count, tokens)
                         : LOGPROBS_NONE_ROOM;
}

/* --- at once --- */

static const char INDEX[] = ",\"index\":", FINISH[] = ",\"finish_reason\":\"";

enum { CHOICE_ROOM = AROUND_ROOM + sizeof INDEX + COUNT_ROOM + sizeof FINISH + 16 + ROW_ROOM };

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
    out = answer_write_text(out, c->form->text);
    *out++ = '"';
    if (echo) out = json_string_write_part(echo->bytes, echo->length, out);
    out = json_string_write_part(u->text, u->length, out);
    *out++ = '"';
    out = answer_write_text(out, c->form->text_end);
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
    if (!size_add(each, echo, &each) || !size_add(each, room_of_logprobs(c, most), &each))
      return SIZE_MAX;
    room = size_max(room, each);
  }
  return size_add(room, CHOICE_ROOM, &room) ? room : SIZE_MAX;
}

enum status completions_answer(struct answer *a, const struct contract_reading *read,
                               const char *model, const struct stack_request *r, size_t max_bytes) {
  enum { ID, OBJECT, CREATED, MODEL, CHOICES, SECTIONS, CREATED_ROOM = COUNT_ROOM + 2 };
  const struct completions *c = completions_new(read, model, r);
  struct arena *arena = read->arena;
  struct error *e = read->e;
  struct dialect_sheet sheet;
  if (!c) return e->status;
  const char *id = dialect_answer_quote(c->id, arena, e),
             *name = dialect_answer_quote(c->model, arena, e);
  char *created = arena_alloc(arena, CREATED_ROOM, 1, e);
  if (e->status || dialect_answer_begin(&sheet, SECTIONS, r, arena, e)) return e->status;
  snprintf(created, CREATED_ROOM, "%lld", (long long)c->created);
  sheet.content->usage.write = c->form->write_usage;
  sheet.section[ID] = answer_section_text("id", id);
  sheet.section[OBJECT] = answer_section_text("object", c->form->object);
  sheet.section[CREATED] = answer_section_text("created", created);
  sheet.section[MODEL] = answer_section_text("model", name);
  sheet.section[CHOICES] = dialect_answer_list("choices", &r->main.run->geometry.items, NULL,
                                               choice_room(c), write_choices, c);
  return answer_plan(a, ANSWER_JSON, sheet.content, max_bytes, arena, e);
}

/* --- as a stream --- */

/* An event's fixed strings, and the most bytes of an event without text. */
static const char EVENT[] =
    "data: {\"id\":\"\",\"object\":\"\",\"created\":,\"model\":\"\",\"choices\":[,"
    "\"index\":,\"finish_reason\":\"length\"}],\"usage\":}\n\ndata: [DONE]\n\n";
enum {
  EVENT_ROOM = sizeof EVENT + DIALECT_ID_SIZE + sizeof CHUNK + MODEL_NAME_SIZE + 2 * COUNT_ROOM +
               sizeof ROLE + LOGPROBS_NONE_ROOM + ANSWER_USAGE_ROOM
};

static size_t room(const struct stack_stream *s) {
  /* The first token of a sequence takes two events. Each token has memory for its strings: no sum
   * overflows. */
  return 2 * EVENT_ROOM + (s->run->geometry.items > 0 ? room_of_logprobs(s->context, 1) : 0);
}

static char *write_head(const struct stack_stream *s, char *out) {
  const struct completions *c = s->context;
  out = answer_write_text(out, "data: {\"id\":\"");
  out = answer_write_text(out, c->id);
  out = answer_write_text(out, "\",\"object\":\"");
  out = answer_write_text(out, c->form->chunk);
  out = answer_write_text(out, "\",\"created\":");
  out = number_write_integer(out, c->created);
  out = answer_write_text(out, ",\"model\":\"");
  out = answer_write_text(out, c->model);
  return answer_write_text(out, "\",\"choices\":[");
}

/* A part of a sequence's text, or `instead` of it if that is not NULL; and its tokens `from` to
 * `end` - 1. */
struct completions_part {
  size_t item, from, end;
  struct tokenizer_text text;
  const char *instead;
};

/* Writes an event; `finish` is NULL before the end of the sequence. */
static char *write_choice(const struct stack_stream *s, const struct completions_part *p,
                          const char *finish, char *out) {
  const struct completions *c = s->context;
  out = write_head(s, out);
  if (p->instead) {
    out = answer_write_text(out, p->instead);
  } else {
    out = answer_write_text(out, c->form->part);
    out = json_string_write(p->text.bytes, p->text.length, out);
    out = answer_write_text(out, c->form->part_end);
  }
  out = answer_write_text(out, ",\"index\":");
  out = number_write_integer(out, (int64_t)p->item);
  out = write_logprobs(c, p->item, p->from, p->end, out);
  out = answer_write_text(out, ",\"finish_reason\":");
  if (finish) *out++ = '"';
  out = answer_write_text(out, finish ? finish : "null");
  if (finish) *out++ = '"';
  return answer_write_text(out, "}]}\n\n");
}

/* The role of a message has an event of its own, without log probabilities: OpenAI's client for
 * JavaScript adds those of a sequence's first event twice. */
static char *write_token(const struct stack_stream *s, size_t i, size_t t,
                         struct tokenizer_text text, char *out) {
  const struct completions *c = s->context;
  const struct completions_part part = {i, t, t + 1, text, NULL},
                                begin = {.item = i, .instead = c->form->begin};
  if (t == 0 && begin.instead) out = write_choice(s, &begin, NULL, out);
  return write_choice(s, &part, NULL, out);
}

static char *write_more(const struct stack_stream *s, size_t i, struct tokenizer_text text,
                        char *out) {
  const struct completions_part part = {i, 0, 0, text, NULL};
  return write_choice(s, &part, NULL, out);
}

static char *write_finish(const struct stack_stream *s, size_t i, char *out) {
  const enum stack_finish finish = s->run->generation->sequence[i].finish;
  const struct completions *c = s->context;
  const struct completions_part nothing = {.item = i, .instead = c->form->nothing};
  return write_choice(s, &nothing, finish_name(finish), out);
}

static char *write_end(const struct stack_stream *s, char *out) {
  const struct completions *c = s->context;
  if (c->has_usage) {
    out = write_head(s, out);
    out = answer_write_text(out, "],\"usage\":");
    out = c->form->write_usage(out, &s->usage);
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

enum status completions_stream(struct stack_stream *s, const struct contract_reading *read,
                               const char *model, const struct stack_request *r) {
  const struct completions *c = completions_new(read, model, r);
  struct arena *arena = read->arena;
  struct error *e = read->e;
  if (!c || stack_stream_init(s, &events, c, c->request, arena, e)) return e->status;
  return c->echo ? stack_stream_begin_with(s, c->echo, arena, e) : STATUS_OK;
}
