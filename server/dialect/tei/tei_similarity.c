/* tei_similarity: POST /similarity: the cosine of the embeddings of a source sentence and of each
 * sentence. */
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/base/size.h"
#include "server/dialect/dialect_answer.h"
#include "server/dialect/ranking.h"
#include "server/dialect/tei/tei.h"

/* --- the contract --- */

enum { SENTENCES_LONGEST = 256 * 1024 }; /* bytes of JSON of "inputs" */

/* The small values as they were read. */
struct similarity_values {
  struct dialect_values common;
  struct arena *arena;
  struct texts *texts; /* the sentences, then the source sentence */
};

_Static_assert(offsetof(struct similarity_values, common) == 0, "dialect_values are first");

/* Appends a text. The arrays have room for it. */
static enum status add_text(struct texts *t, const json_t *text, const char *pointer,
                            struct error *e) {
  const size_t length = json_string_length(text);
  if (!json_is_string(text)) return error_at(e, pointer, "must be a text");
  memcpy(t->bytes + t->length, json_string_value(text), length);
  t->part[t->items++] = (struct texts_part){t->length, length};
  t->length += length;
  return STATUS_OK;
}

/* Rejects anything but an object with these members. */
static enum status check_members(const json_t *object, const char *const *known,
                                 const struct contract_field *field, struct error *e) {
  const char *key;
  json_t *value;
  if (!json_is_object(object))
    return error_at(e, field->pointer, "%s must be an object", contract_name(field));
  json_object_foreach((json_t *)object, key, value) {
    size_t i = 0;
    while (known[i] && strcmp(known[i], key) != 0) i++;
    if (known[i]) continue;
    char shown[CONTRACT_NAME_SHOWN + 1], name[ERROR_POINTER_SIZE], pointer[ERROR_POINTER_SIZE];
    contract_show_name(key, strlen(key), shown, name, sizeof name - field->name_length - 1);
    snprintf(pointer, sizeof pointer, "%s%s", field->pointer, name);
    return error_at(e, pointer, "unknown member \"%s\" of %s", shown, contract_name(field));
  }
  return STATUS_OK;
}

static enum status read_inputs(const json_t *value, const struct contract_field *field, void *to,
                               struct error *e) {
  static const char *const known[] = {"source_sentence", "sentences", NULL};
  struct similarity_values *v = to;
  const json_t *sentences = json_object_get(value, "sentences"),
               *source = json_object_get(value, "source_sentence");
  const size_t count = json_array_size(sentences);
  size_t bytes = json_string_length(source);
  if (check_members(value, known, field, e)) return e->status;
  if (count == 0)
    return error_at(e, "/inputs/sentences", "sentences must be a list of at least one string");
  if (!source)
    return error_at(e, "/inputs/source_sentence", "the member \"source_sentence\" is missing");
  for (size_t i = 0; i < count; i++) bytes += json_string_length(json_array_get(sentences, i));
  v->texts = arena_alloc(v->arena, 1, sizeof *v->texts, e);
  struct texts_part *part = arena_alloc(v->arena, count + 1, sizeof *part, e);
  char *text = arena_alloc(v->arena, bytes, 1, e);
  if (e->status) return e->status;
  *v->texts = (struct texts){.bytes = text, .part = part, .of_item = 1};
  for (size_t i = 0; i < count; i++) {
    char pointer[ERROR_POINTER_SIZE];
    snprintf(pointer, sizeof pointer, "/inputs/sentences/%zu", i);
    if (add_text(v->texts, json_array_get(sentences, i), pointer, e)) return e->status;
  }
  return add_text(v->texts, source, "/inputs/source_sentence", e);
}

static enum status read_parameters(const json_t *value, const struct contract_field *field,
                                   void *to, struct error *e) {
  static const struct contract_field truncate = {DIALECT_NAMED("parameters/truncate")},
                                     direction = {DIALECT_NAMED("parameters/truncation_direction")},
                                     prompt = {DIALECT_NAMED("parameters/prompt_name")};
  static const char *const known[] = {"truncate", "truncation_direction", "prompt_name", NULL};
  struct similarity_values *v = to;
  const json_t *cut = json_object_get(value, known[0]), *end = json_object_get(value, known[1]),
               *name = json_object_get(value, known[2]);
  if (check_members(value, known, field, e)) return e->status;
  if (cut && !json_is_null(cut)) tei_read_truncate(cut, &truncate, &v->common.truncate, e);
  if (end && !json_is_null(end)) tei_pass_direction(end, &direction, NULL, e);
  if (name && !json_is_null(name)) contract_read_text(name, &prompt, &v->common.prompt_name, e);
  return e->status;
}

static const struct contract_field fields[] = {
    {DIALECT_NAMED("inputs"), .read = read_inputs, .longest = SENTENCES_LONGEST},
    DIALECT_MODEL,
    {DIALECT_NAMED("parameters"), .read = read_parameters, .nullable = true},
};

static const char both_in_inputs[] =
    "\"inputs\" is an object: {\"source_sentence\": \"...\", \"sentences\": [\"...\"]}";
static const struct contract_stray strays[] = {
    {"source_sentence", both_in_inputs},
    {"sentences", both_in_inputs},
    {"truncate", "it is a member of \"parameters\""},
    {"prompt_name", "it is a member of \"parameters\""},
};

static uint64_t plan_cost(const struct contract_reading *r) {
  const struct similarity_values *v = r->values;
  if (!v->texts) return dialect_plan_cost(r);
  struct contract_reading of_texts = *r;
  of_texts.texts = v->texts;
  return dialect_plan_cost(&of_texts) + contract_texts_cost(v->texts, r->prompt);
}

static const struct contract contract = {DIALECT_CONTRACT, .plan_cost = plan_cost};

static void init(void *values, struct arena *a) {
  struct similarity_values *v = values;
  v->arena = a;
}

/* --- the request --- */

static enum status ask(struct dialect_stack *s, const struct contract_reading *read,
                       struct stack_request *out) {
  static const struct dialect_name names[] = {{"/text", "/inputs/sentences"},
                                              {"/tokens", "/inputs/sentences"},
                                              {"/prompt_name", "/parameters/prompt_name"},
                                              {NULL, NULL}};
  const struct similarity_values *v = read->values;
  if (!v->texts) return error_at(read->e, "/inputs", "the field \"inputs\" is missing");
  if (v->texts->items > s->limits->max_items)
    return error_limit(read->e, "max_items", "%zu texts exceed the limit of %zu", v->texts->items,
                       s->limits->max_items);
  s->reading.texts = v->texts;
  dialect_stack_mark(s, STACK_FIELD_TEXT);
  dialect_stack_prompt(s, &(struct contract_text){0}, &v->common.prompt_name);
  dialect_stack_truncate(s, v->common.truncate, SIZE_MAX);
  s->values.normalize = true;
  if (dialect_stack_pool(s)) return read->e->status;
  if (!dialect_stack_check(s, names, out)) return STATUS_OK;
  /* An error about the text after the sentences is one about the source sentence. */
  struct error *e = read->e;
  char last[ERROR_POINTER_SIZE];
  snprintf(last, sizeof last, "/inputs/sentences/%zu", v->texts->items - 1);
  if (strcmp(e->pointer, last) == 0)
    snprintf(e->pointer, sizeof e->pointer, "/inputs/source_sentence");
  return e->status;
}

/* --- the response --- */

static char *write_cosines(const struct answer_rows *rows, char *out) {
  const struct stack_run *run = rows->section->data;
  const size_t size = run->output_size, sentences = run->geometry.items - 1;
  for (size_t i = rows->first; i < rows->first + rows->count; i++) {
    if (i > rows->first) *out++ = ',';
    out = number_write(out,
                       ranking_dot(run->outputs + sentences * size, run->outputs + i * size, size));
  }
  return out;
}

static enum status answer(struct answer *a, const struct contract_reading *read, const char *model,
                          const struct stack_request *r, size_t max_bytes) {
  const struct similarity_values *v = read->values;
  size_t *sentences = arena_alloc(read->arena, 1, sizeof *sentences, read->e);
  (void)model;
  if (!sentences) return read->e->status;
  *sentences = v->texts->items - 1;
  const struct answer_section list =
      dialect_answer_list(NULL, sentences, NULL, ROW_ROOM + NUMBER_ROOM, write_cosines,
                          r->main.run);
  return tei_answer(a, &list, read, r, max_bytes);
}

const struct dialect tei_similarity = {.contract = &contract,
                                       .values_bytes = sizeof(struct similarity_values),
                                       .init = init,
                                       .ask = ask,
                                       .answer = answer};
