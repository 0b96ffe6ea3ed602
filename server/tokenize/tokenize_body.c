/* tokenize_body: the fields of requests to tokenize and detokenize, and their work. */
#include "server/tokenize/tokenize_body.h"

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/base/size.h"

/* --- the contracts --- */

enum tokenize_field {
  TOKENIZE_TOKENS,
  TOKENIZE_ARRAYS,
  TOKENIZE_TEXT = TOKENIZE_ARRAYS,
  TOKENIZE_SPECIAL,
  TOKENIZE_TRUNCATE,
  TOKENIZE_FIELDS
};

/* The small values as they were read. */
struct tokenize_values {
  bool special;
  size_t longest; /* tokens that a text is truncated to; 0: no truncation */
};

static enum status read_truncate(const json_t *value, const struct contract_field *field, void *to,
                                 struct error *e) {
  if (!json_is_integer(value) || json_integer_value(value) < 1)
    return error_at(e, field->pointer, "truncate must be an integer of at least 1");
  *(size_t *)to = (size_t)json_integer_value(value);
  return STATUS_OK;
}

#define NAMED(name)     .pointer = "/" name, .name_length = sizeof name - 1
#define VALUE_AT(value) .at = offsetof(struct tokenize_values, value)

enum { OF_TOKENIZE = 1, OF_DETOKENIZE = 2 };
static const struct contract_request requests[] = {{OF_TOKENIZE, "POST /v1/models/NAME/tokenize"},
                                                   {OF_DETOKENIZE,
                                                    "POST /v1/models/NAME/detokenize"},
                                                   {0, NULL}};

static const struct contract_field fields[TOKENIZE_FIELDS] = {
    [TOKENIZE_TOKENS] =
        {NAMED("tokens"),
         .rule = {.type = TENSOR_INTEGER, .depth_min = 1, .depth_max = 2, .ragged_depth = 2},
         .of = OF_DETOKENIZE},
    [TOKENIZE_TEXT] = {NAMED("text"), .texts = true, .of = OF_TOKENIZE},
    [TOKENIZE_SPECIAL] = {NAMED("special_tokens"), .read = contract_read_flag, VALUE_AT(special)},
    [TOKENIZE_TRUNCATE] = {NAMED("truncate"), .read = read_truncate, VALUE_AT(longest),
                           .of = OF_TOKENIZE},
};

/* Names that other services and libraries use. */
static const struct contract_stray strays[] = {
    {"input", "use \"text\" for texts"},
    {"inputs", "use \"text\" for texts"},
    {"prompt", "use \"text\" for texts"},
    {"content", "use \"text\" for texts"},
    {"ids", "use \"tokens\" for token ids"},
    {"input_ids", "use \"tokens\" for token ids"},
    {"token_ids", "use \"tokens\" for token ids"},
    {"add_special_tokens", "use \"special_tokens\""},
    {"skip_special_tokens", "use \"special_tokens\": false"},
    {"model", "name the model in the path: POST /v1/models/NAME/tokenize"},
};

uint64_t tokenize_spell_cost(const struct contract_reading *r) {
  enum { PIECE_NS = 40 };
  return r->tensor[TOKENIZE_TOKENS] ? PIECE_NS * (uint64_t)r->tensor[TOKENIZE_TOKENS]->count : 0;
}

#define CONTRACT                                                                          \
  .field = fields, .arrays = TOKENIZE_ARRAYS, .fields = TOKENIZE_FIELDS, .stray = strays, \
  .strays = sizeof strays / sizeof *strays, .requests = requests

static const struct contract to_tokens = {CONTRACT, .request = OF_TOKENIZE};
static const struct contract to_text = {CONTRACT, .request = OF_DETOKENIZE,
                                        .plan_cost = tokenize_spell_cost};

/* --- the body --- */

struct tokenize_body {
  struct body body;
  const struct whole *whole;
  bool back;
  struct tokenize_values values;
};

struct tokenize_body *tokenize_body_new(const struct whole *w, const struct body_terms *terms,
                                        size_t max_items, struct arena *a, struct error *e) {
  struct tokenize_body *b = arena_alloc(a, 1, sizeof *b, e);
  if (!b) return NULL;
  *b = (struct tokenize_body){.whole = w,
                              .back = terms->ask == ASK_DETOKENIZE,
                              .values = {.special = true}};
  b->body.reading = (struct contract_reading){.contract = b->back ? &to_text : &to_tokens,
                                              .max_items = max_items,
                                              .values = &b->values};
  return body_init(&b->body, terms, a, e) ? NULL : b;
}

struct body *tokenize_body_of(struct tokenize_body *b) {
  return &b->body;
}

/* --- a run without steps of its own --- */

static bool no_unit(const struct step *s, struct cursor *at, struct unit *u) {
  (void)s, (void)at, (void)u;
  return false;
}

static const struct step nothing = {.unit = no_unit};
static const struct step *const nothings[] = {&nothing};
static const struct program no_program = {.step = nothings, .steps = 1, .aside = true};

/* --- the work --- */

enum status tokenize_spell_all(const struct contract_reading *r, const struct whole *w,
                               bool special, struct tokenize_request *out) {
  const struct tensor *t = r->tensor[TOKENIZE_TOKENS];
  const size_t size = tokenizer_size(w->tokenizer);
  *out = (struct tokenize_request){.run.program = &no_program, .back = true};
  out->alone = t->depth == 1 && t->count > 0;
  out->items = out->alone ? 1 : t->elements;
  out->text = arena_alloc(r->arena, out->items, sizeof *out->text, r->e);
  const int32_t *id = t->data;
  for (size_t i = 0; out->text && i < out->items; i++) {
    const size_t count = out->alone ? t->count : tensor_shape_at(t, i).dim[0];
    for (size_t n = 0; n < count; n++) {
      if (id[n] >= 0 && (size_t)id[n] < size) continue;
      char pointer[ERROR_POINTER_SIZE];
      if (t->depth == 1)
        snprintf(pointer, sizeof pointer, "/tokens/%zu", n);
      else
        snprintf(pointer, sizeof pointer, "/tokens/%zu/%zu", i, n);
      return error_at(r->e, pointer,
                      "token %d is out of range: the tokenizer's tokens are 0 to %zu", (int)id[n],
                      size - 1);
    }
    if (tokenizer_decode(w->tokenizer, id, count, !special, r->arena, &out->text[i], r->e))
      return r->e->status;
    if (count) id += count;
  }
  return r->e->status;
}

enum status tokenize_cut_all(const struct contract_reading *r, const struct whole *w, bool special,
                             size_t longest, struct tokenize_request *out) {
  const struct tokenize_ask ask = {
      .of_each = {.special = special, .traced = true, .patience = r->patience},
      .form = {[TOKENIZE_OF_TEXT].longest = longest},
      .most_pairs = SIZE_MAX};
  *out = (struct tokenize_request){.run.program = &no_program};
  if (tokenize_texts_check(w->tokenizer, r->texts, &ask, longest, r->e)) return r->e->status;
  return tokenize_texts(&out->texts, w->tokenizer, r->texts, &ask, r->arena, r->e);
}

enum status tokenize_rendered(const struct contract_reading *r, const struct whole *w,
                              const struct texts *texts, struct tokenize_request *out) {
  const struct tokenize_ask ask = {.of_each = {.traced = true, .patience = r->patience},
                                   .most_pairs = SIZE_MAX};
  out->run.program = &no_program;
  if (!texts) return r->e->status;
  return tokenize_texts(&out->texts, w->tokenizer, texts, &ask, r->arena, r->e);
}

/* --- the end of the body --- */

enum status tokenize_body_finish(struct tokenize_body *b, struct tokenize_request *out) {
  const struct contract_reading *r = &b->body.reading;
  struct body_v2_asked none;
  memset(out, 0, sizeof *out);
  if (body_finish(&b->body, &none)) return b->body.e->status;
  if (b->back ? !r->tensor[TOKENIZE_TOKENS] : !r->texts)
    return error_at(r->e, fields[b->back ? TOKENIZE_TOKENS : TOKENIZE_TEXT].pointer,
                    "the field \"%s\" is missing",
                    contract_name(&fields[b->back ? TOKENIZE_TOKENS : TOKENIZE_TEXT]));
  return b->back ? tokenize_spell_all(r, b->whole, b->values.special, out)
                 : tokenize_cut_all(r, b->whole, b->values.special, b->values.longest, out);
}
