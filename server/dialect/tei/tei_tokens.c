/* tei_tokens: POST /tokenize and POST /decode: the tokens of texts, and the texts of tokens. */
#include <stddef.h>
#include <string.h>

#include "core/base/size.h"
#include "server/dialect/dialect_fields.h"
#include "server/dialect/tei/tei.h"
#include "server/model/check/stack_tokenize.h"
#include "server/text/json_string.h"
#include "server/tokenize/tokenize_answer.h"

/* --- the contracts --- */

enum { OF_TOKENIZE = 1, OF_DECODE = 2 };
static const struct contract_request requests[] = {{OF_TOKENIZE, "POST /tokenize"},
                                                   {OF_DECODE, "POST /decode"},
                                                   {0, NULL}};

static const struct contract_field fields[] = {
    {DIALECT_NAMED("ids"),
     .rule = {.type = TENSOR_INTEGER, .depth_min = 1, .depth_max = 2, .ragged_depth = 2},
     .of = OF_DECODE},
    {DIALECT_NAMED("inputs"), .texts = true, .texts_form = TEXTS_ALONE, .of = OF_TOKENIZE},
    DIALECT_MODEL,
    {DIALECT_VALUE("add_special_tokens", contract_read_flag, special), .of = OF_TOKENIZE},
    {DIALECT_VALUE("skip_special_tokens", contract_read_flag, special), .of = OF_DECODE},
    {DIALECT_VALUE("prompt_name", contract_read_text, prompt_name), .nullable = true,
     .of = OF_TOKENIZE},
};

static const struct contract_stray strays[] = {
    {"input", "use \"inputs\" for texts"},
    {"text", "use \"inputs\" for texts"},
    {"tokens", "use \"ids\" for token ids"},
};

#define CONTRACT DIALECT_CONTRACT, .arrays = 1, .requests = requests

static const struct contract to_tokens = {CONTRACT, .request = OF_TOKENIZE,
                                          .plan_cost = dialect_plan_cost};
static const struct contract to_texts = {CONTRACT, .request = OF_DECODE,
                                         .plan_cost = tokenize_spell_cost};

/* --- texts with a prompt --- */

/* Adds the prompt before each text: together they may have as many bytes as a body, `most`. NULL
 * with an error. */
static const struct texts *add_prompt(const struct contract_text *prompt, const struct texts *t,
                                      size_t most, struct arena *a, struct error *e) {
  size_t bytes;
  if (!size_mul(prompt->length, t->items, &bytes) || !size_add(bytes, t->length, &bytes) ||
      bytes > most) {
    error_limit(e, "max_body_bytes",
                "%zu texts have more than %zu bytes, each with a prompt of %zu", t->items, most,
                prompt->length);
    return NULL;
  }
  struct texts *made = arena_alloc(a, 1, sizeof *made, e);
  struct texts_part *part = arena_alloc(a, t->items, sizeof *part, e);
  char *to = arena_alloc(a, bytes, 1, e);
  if (e->status) return NULL;
  *made = *t;
  made->bytes = to;
  made->part = part;
  made->length = bytes;
  for (size_t i = 0, at = 0; i < t->items; i++) {
    const size_t length = t->part[i].length;
    part[i] = (struct texts_part){at, prompt->length + length};
    memcpy(to + at, prompt->bytes, prompt->length);
    if (length) memcpy(to + at + prompt->length, t->bytes + t->part[i].at, length);
    at += part[i].length;
  }
  return made;
}

/* --- the request --- */

static const struct dialect_name names[] = {{"/text", "/inputs"},
                                            {"/tokens", "/ids"},
                                            {NULL, NULL}};

static enum status tokenize(const struct contract_reading *read, const struct whole *w,
                            const struct body_limits *limits, struct tokenize_request *out) {
  const struct dialect_values *v = read->values;
  struct contract_reading r = *read;
  struct contract_text prompt;
  if (!r.texts) return error_at(r.e, "/inputs", "the field \"inputs\" is missing");
  if (r.texts->items == 0) return error_at(r.e, "/inputs", "the list is empty");
  if (stack_tokenize_prompt(w, &v->prompt_name, &prompt, r.e)) return r.e->status;
  if (prompt.length) r.texts = add_prompt(&prompt, r.texts, limits->max_body_bytes, r.arena, r.e);
  if (r.texts && tokenize_cut_all(&r, w, v->special, 0, out)) dialect_stack_locate(names, r.e);
  return r.e->status;
}

static enum status decode(const struct contract_reading *read, const struct whole *w,
                          const struct body_limits *limits, struct tokenize_request *out) {
  const struct dialect_values *v = read->values;
  const struct tensor *ids = read->tensor[0];
  (void)limits;
  if (!ids) return error_at(read->e, "/ids", "the field \"ids\" is missing");
  if (ids->elements == 0) return error_at(read->e, "/ids", "the list is empty");
  if (tokenize_spell_all(read, w, !v->special, out)) dialect_stack_locate(names, read->e);
  out->alone = false; /* a text, too, stands in a list */
  return read->e->status;
}

/* --- the response --- */

/* Plans a response that is this JSON; NULL: memory was missing. */
static enum status answer_json(struct answer *a, const struct contract_reading *read,
                               const char *value, size_t max_bytes) {
  struct answer_content *content = arena_alloc(read->arena, 1, sizeof *content, read->e);
  struct answer_section *section = arena_alloc(read->arena, 1, sizeof *section, read->e);
  if (!value || read->e->status) return read->e->status;
  *section = answer_section_text(NULL, value);
  *content = (struct answer_content){.alone = true, .sections = 1, .section = section};
  return answer_plan(a, ANSWER_JSON, content, max_bytes, read->arena, read->e);
}

static enum status answer_texts(struct answer *a, const struct contract_reading *read,
                                const struct tokenize_request *r, size_t max_bytes) {
  return answer_json(a, read, tokenize_answer_texts(r, read->arena, read->e), max_bytes);
}

static const char ID[] = "{\"id\":", TEXT[] = ",\"text\":", SPECIAL[] = ",\"special\":",
                  START[] = ",\"start\":", STOP[] = ",\"stop\":";

/* Whether the byte continues a UTF-8 character. */
static bool is_within(char byte) { return ((unsigned char)byte & 0xc0) == 0x80; }

/* Writes the text that a token came from. Each byte of a character that begins before the token
 * becomes U+FFFD, and so does the beginning of a character that ends after it. */
static char *write_part(const char *text, const struct token *t, char *out) {
  size_t begin = t->begin, end = t->end;
  *out++ = '"';
  for (; begin < end && is_within(text[begin]); begin++)
    out = answer_write_text(out, DECODER_REPLACEMENT);
  size_t last = end; /* the place after the first byte of the last character */
  while (last > begin && is_within(text[last - 1])) last--;
  const unsigned char first = last > begin ? (unsigned char)text[last - 1] : 0;
  const size_t bytes = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  const bool cut = last > begin && last - 1 + bytes > end;
  if (cut) end = last - 1;
  out = json_string_write_part(text + begin, end - begin, out);
  if (cut) out = answer_write_text(out, DECODER_REPLACEMENT);
  *out++ = '"';
  return out;
}

/* Writes the object of a token. */
static char *write_token(const struct contract_reading *read, const struct tokenizer *tokenizer,
                         const char *text, const struct token *t, char *out) {
  const struct tokenizer_text piece = t->special
                                          ? tokenizer_piece(tokenizer, t->id, read->arena, read->e)
                                          : (struct tokenizer_text){0};
  out = number_write_integer(answer_write_text(out, ID), t->id);
  out = answer_write_text(out, TEXT);
  out = t->special ? json_string_write(piece.bytes, piece.length, out) : write_part(text, t, out);
  out = answer_write_text(answer_write_text(out, SPECIAL), t->special ? "true" : "false");
  out = answer_write_text(out, START);
  out = t->special ? answer_write_text(out, "null") : number_write_integer(out, t->begin);
  out = answer_write_text(out, STOP);
  out = t->special ? answer_write_text(out, "null") : number_write_integer(out, t->end);
  *out++ = '}';
  return out;
}

/* The most bytes of the response; SIZE_MAX: an overflow. Many tokens may come from one long part of
 * a text. */
static size_t count_room(const struct tokenize_texts *d) {
  enum {
    INTEGER = 12,
    AROUND = sizeof ID + sizeof TEXT + sizeof SPECIAL + sizeof START + sizeof STOP
  };
  enum {
    EACH = AROUND + 3 * INTEGER + sizeof "false" + 2 * sizeof DECODER_REPLACEMENT + sizeof "\"\"},"
  };
  size_t room = 3 * (d->texts->items + 1) + 1 + NUMBER_WRITE_MARGIN;
  for (size_t i = 0; i < d->tokens.count; i++) {
    const struct token *t = &d->tokens.token[i];
    size_t bytes = t->special ? tokenizer_piece_room(d->tokenizer, t->id) : t->end - t->begin;
    if (!size_mul(bytes, JSON_STRING_ROOM, &bytes) || !size_add(bytes, EACH, &bytes) ||
        !size_add(room, bytes, &room))
      return SIZE_MAX;
  }
  return room;
}

static enum status answer_tokens(struct answer *a, const struct contract_reading *read,
                                 const struct tokenize_request *r, size_t max_bytes) {
  const struct tokenize_texts *d = &r->texts;
  const size_t room = count_room(d);
  if (room > max_bytes)
    return error_limit(read->e, "max_answer_bytes",
                       "the tokens and their texts may need %zu bytes; the limit is %zu", room,
                       max_bytes);
  char *value = arena_alloc(read->arena, room, 1, read->e), *out = value;
  if (!value) return read->e->status;
  *out++ = '[';
  for (size_t item = 0; item < d->texts->items; item++) {
    const char *text = d->texts->bytes + d->texts->part[item].at;
    if (item > 0) *out++ = ',';
    *out++ = '[';
    for (size_t i = d->first[item]; i < d->first[item + 1]; i++) {
      if (i > d->first[item]) *out++ = ',';
      out = write_token(read, d->tokenizer, text, &d->tokens.token[i], out);
    }
    *out++ = ']';
  }
  *out++ = ']';
  *out = '\0';
  return answer_json(a, read, value, max_bytes);
}

const struct dialect tei_tokenize = {.contract = &to_tokens,
                                     .defaults = {.special = true},
                                     .tokenize = tokenize,
                                     .answer_tokenized = answer_tokens};
const struct dialect tei_decode = {.contract = &to_texts,
                                   .defaults = {.special = true},
                                   .tokenize = decode,
                                   .answer_tokenized = answer_texts};
