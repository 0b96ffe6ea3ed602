/* cohere_embed: the fields of POST /v1/embed and /v2/embed, and their responses: embeddings as a
 * list, or as an object of lists by their types, of which "float" is supported. */
#include "server/dialect/dialect.h"

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#include "core/base/size.h"
#include "server/dialect/dialect_answer.h"
#include "server/dialect/dialect_fields.h"
#include "server/dialect/ranking.h"
#include "server/json/json_small.h"
#include "server/model/answer/stack_answer.h"
#include "server/model/check/stack_tokenize.h"
#include "server/model/fields/stack_choice_fields.h"
#include "server/text/json_string.h"

/* --- the contract --- */

/* Purposes of texts, and the names of the prompts that a model may have for each. */
static const struct {
  const char *type;
  const char *prompt[5];
} purposes[] = {{"search_query", {"query", "search_query"}},
                {"search_document", {"document", "search_document", "passage", "corpus"}},
                {"classification", {"classification"}},
                {"clustering", {"clustering"}}};
enum { PURPOSES = sizeof purposes / sizeof *purposes, PURPOSE_NONE = PURPOSES };

/* The small values as they were read. */
struct cohere_embed_values {
  struct dialect_values common;
  unsigned purpose;
  bool by_type; /* whether embeddings are an object by their types */
  size_t most;  /* tokens that a text is cut to; 0: the model's own length */
};

#define OWN_VALUE(name, reader, member)                                                      \
  {                                                                                          \
    DIALECT_NAMED(name), .read = reader, .at = offsetof(struct cohere_embed_values, member), \
                         .nullable = true                                                    \
  }

_Static_assert(offsetof(struct cohere_embed_values, common) == 0, "dialect_values are first");

static enum status read_purpose(const json_t *value, const struct contract_field *field, void *to,
                                struct error *e) {
  unsigned *purpose = to;
  for (*purpose = 0; *purpose < PURPOSES; ++*purpose)
    if (json_small_is_text(value, purposes[*purpose].type)) return STATUS_OK;
  return error_at(e, field->pointer,
                  "input_type must be \"search_query\", \"search_document\", "
                  "\"classification\" or \"clustering\"");
}

static enum status read_types(const json_t *value, const struct contract_field *field, void *to,
                              struct error *e) {
  const bool one = json_array_size(value) == 1;
  if (!one || !json_small_is_text(json_array_get(value, 0), "float"))
    return error_at(e, field->pointer,
                    "embedding_types must be [\"float\"]: other types are not supported");
  *(bool *)to = true;
  return STATUS_OK;
}

static enum status read_truncate(const json_t *value, const struct contract_field *field, void *to,
                                 struct error *e) {
  *(size_t *)to = json_small_is_text(value, "NONE") ? 0 : SIZE_MAX;
  if (*(size_t *)to == 0 || json_small_is_text(value, "END")) return STATUS_OK;
  return error_at(e, field->pointer,
                  "truncate must be \"END\" or \"NONE\": texts are truncated at their end");
}

/* Rejects images, and "inputs", which may contain them. */
static enum status refuse(const json_t *value, const struct contract_field *field, void *to,
                          struct error *e) {
  (void)value, (void)to;
  return error_at(e, field->pointer,
                  "%s is not supported, and images are not either: send \"texts\"",
                  contract_name(field));
}

static const struct contract_field fields[] = {
    {DIALECT_NAMED("texts"), .texts = true, .texts_form = TEXTS_ALONE},
    DIALECT_MODEL,
    OWN_VALUE("input_type", read_purpose, purpose),
    OWN_VALUE("embedding_types", read_types, by_type),
    OWN_VALUE("output_dimension", stack_read_number, common.dimensions),
    OWN_VALUE("truncate", read_truncate, common.truncate),
    OWN_VALUE("max_tokens", stack_read_number, most),
    {DIALECT_NAMED("images"), .read = refuse, .nullable = true},
    {DIALECT_NAMED("inputs"), .read = refuse, .nullable = true},
};

static const char texts_here[] = "use \"texts\" for texts";
static const struct contract_stray strays[] = {{"input", texts_here}, {"text", texts_here}};

static const struct contract contract = {DIALECT_CONTRACT, .plan_cost = dialect_plan_cost};

static void init(void *values, struct arena *a) {
  struct cohere_embed_values *v = values;
  (void)a;
  v->purpose = PURPOSE_NONE;
}

static void init_v2(void *values, struct arena *a) {
  struct cohere_embed_values *v = values;
  init(values, a);
  v->by_type = true;
}

/* --- the request --- */

static enum status ask(struct dialect_stack *s, const struct contract_reading *read,
                       struct stack_request *out) {
  static const struct dialect_name names[] = {{"/text", "/texts"},
                                              {"/truncate", "/max_tokens"},
                                              {"/dimensions", "/output_dimension"},
                                              {NULL, NULL}};
  const struct cohere_embed_values *v = read->values;
  if (!read->texts) return error_at(read->e, "/texts", "the field \"texts\" is missing");
  if (v->most && v->common.truncate == 0)
    return error_at(read->e, "/max_tokens", "a maximum length excludes \"truncate\": \"NONE\"");
  if (read->texts->items == 0) return error_at(read->e, "/texts", "the list is empty");
  s->reading.texts = read->texts;
  dialect_stack_mark(s, STACK_FIELD_TEXT);
  if (v->purpose != PURPOSE_NONE)
    stack_tokenize_first(&s->values.prompt, s->whole, purposes[v->purpose].prompt);
  s->values.dimensions = v->common.dimensions;
  dialect_stack_truncate(s, v->most ? v->most : v->common.truncate, SIZE_MAX);
  if (dialect_stack_pool(s)) return read->e->status;
  return dialect_stack_check(s, names, out);
}

/* --- the response --- */

/* Writes the texts that were sent, as a list. NULL with an error. */
static const char *write_texts(const struct texts *t, struct arena *a, struct error *e) {
  enum { AROUND = sizeof "\"\"," };
  size_t room, around;
  if (!size_mul(t->length, JSON_STRING_ROOM, &room) || !size_mul(t->items, AROUND, &around) ||
      !size_add(room, around, &room) || !size_add(room, sizeof "[]", &room))
    room = SIZE_MAX;
  char *text = arena_alloc(a, room, 1, e), *out = text;
  if (!text) return NULL;
  *out++ = '[';
  for (size_t i = 0; i < t->items; i++) {
    if (i > 0) *out++ = ',';
    out = json_string_write(t->bytes + t->part[i].at, t->part[i].length, out);
  }
  *out++ = ']';
  *out = '\0';
  return text;
}

static enum status answer(struct answer *a, const struct contract_reading *read, const char *model,
                          const struct stack_request *r, size_t max_bytes) {
  enum { ID, EMBEDDINGS, TEXTS, META, RESPONSE_TYPE, SECTIONS, META_ROOM = 80 };
  const struct cohere_embed_values *v = read->values;
  const struct stack_run *run = r->main.run;
  struct dialect_sheet sheet;
  char unique[DIALECT_ID_SIZE];
  (void)model;
  dialect_answer_id("embed", unique);
  if (dialect_answer_begin(&sheet, SECTIONS, r, read->arena, read->e)) return read->e->status;
  const char *id = dialect_answer_quote(unique, read->arena, read->e),
             *texts = write_texts(read->texts, read->arena, read->e);
  char *meta = arena_alloc(read->arena, META_ROOM, 1, read->e);
  if (read->e->status) return read->e->status;
  snprintf(meta, META_ROOM, "{\"billed_units\":{\"input_tokens\":%zu}}",
           sheet.content->usage.tokens);
  sheet.content->has_usage = false;
  sheet.section[ID] = answer_section_text("id", id);
  sheet.section[EMBEDDINGS] =
      dialect_answer_list(v->by_type ? "float" : "embeddings", &run->geometry.items,
                          &run->output_size, ROW_ROOM, answer_write_floats, run->outputs);
  if (v->by_type) sheet.section[EMBEDDINGS].group = "embeddings";
  sheet.section[TEXTS] = answer_section_text("texts", texts);
  sheet.section[META] = answer_section_text("meta", meta);
  sheet.section[RESPONSE_TYPE] =
      answer_section_text("response_type",
                          v->by_type ? "\"embeddings_by_type\"" : "\"embeddings_floats\"");
  return answer_plan(a, ANSWER_JSON, sheet.content, max_bytes, read->arena, read->e);
}

const struct dialect cohere_embed = {.contract = &contract,
                                     .values_bytes = sizeof(struct cohere_embed_values),
                                     .init = init,
                                     .ask = ask,
                                     .answer = answer};
const struct dialect cohere_embed_v2 = {.contract = &contract,
                                        .values_bytes = sizeof(struct cohere_embed_values),
                                        .init = init_v2,
                                        .ask = ask,
                                        .answer = answer};
