/* embeddings: the fields of POST /v1/embeddings, and the request that they make: the one that
 * POST /v1/models/NAME/encode makes of the same texts, with the model's own pooling. Its response
 * has an object for each vector, with numbers as text or base64. */
#include "server/dialect/openai/embeddings.h"

#include <stddef.h>
#include <stdio.h>

#include "core/base/size.h"
#include "server/dialect/dialect_answer.h"
#include "server/dialect/dialect_fields.h"
#include "server/model/fields/stack_choice_fields.h"
#include "server/text/base64.h"

/* --- the contract --- */

enum embeddings_field {
  EMBEDDINGS_INPUT,
  EMBEDDINGS_ARRAYS,
  EMBEDDINGS_MODEL = EMBEDDINGS_ARRAYS,
  EMBEDDINGS_ENCODING_FORMAT,
  EMBEDDINGS_DIMENSIONS,
  EMBEDDINGS_USER,
  EMBEDDINGS_TRUNCATE,
  EMBEDDINGS_PROMPT,
  EMBEDDINGS_PROMPT_NAME,
  EMBEDDINGS_FIELDS
};

/* The small values as they were read. */
struct embeddings_values {
  struct dialect_values common;
  bool base64;
  size_t dimensions; /* 0: all */
  size_t truncate;   /* as in stack_values */
  struct contract_text prompt, prompt_name;
};

#define NAMED(name)     .pointer = "/" name, .name_length = sizeof name - 1
#define VALUE_AT(value) .at = offsetof(struct embeddings_values, value)

static const struct contract_field fields[EMBEDDINGS_FIELDS] = {
    [EMBEDDINGS_INPUT] =
        {NAMED("input"),
         .rule = {.type = TENSOR_INTEGER, .depth_min = 1, .depth_max = 2, .ragged_depth = 2},
         .texts = true, .texts_form = TEXTS_ALONE},
    [EMBEDDINGS_MODEL] = {NAMED("model"), .read = dialect_read_model, VALUE_AT(common),
                          .nullable = true},
    [EMBEDDINGS_ENCODING_FORMAT] = {NAMED("encoding_format"), .read = contract_read_base64,
                                    VALUE_AT(base64), .nullable = true},
    [EMBEDDINGS_DIMENSIONS] = {NAMED("dimensions"), .read = stack_read_number, VALUE_AT(dimensions),
                               .nullable = true},
    [EMBEDDINGS_USER] = {NAMED("user"), .read = dialect_pass_text, .nullable = true,
                         .longest = DIALECT_USER_LONGEST},
    [EMBEDDINGS_TRUNCATE] = {NAMED("truncate"), .read = stack_fields_truncate, VALUE_AT(truncate),
                             .nullable = true},
    [EMBEDDINGS_PROMPT] = {NAMED("prompt"), .read = contract_read_text, VALUE_AT(prompt),
                           .nullable = true, .longest = STACK_PROMPT_LONGEST},
    [EMBEDDINGS_PROMPT_NAME] = {NAMED("prompt_name"), .read = contract_read_text,
                                VALUE_AT(prompt_name), .nullable = true},
};

static const char texts_here[] = "use \"input\" for texts";
static const char tokens_here[] = "use \"input\" for token ids, too";
static const char models_own[] =
    "the model's own pooling applies: POST /v1/models/NAME/encode accepts another";

static const struct contract_stray strays[] = {
    {"text", texts_here},
    {"texts", texts_here},
    {"inputs", texts_here},
    {"tokens", tokens_here},
    {"input_ids", tokens_here},
    {"pool", models_own},
    {"pooling", models_own},
    {"normalize", models_own},
    {"truncate_prompt_tokens", "use \"truncate\""},
};

static uint64_t plan_cost(const struct contract_reading *r) {
  const struct embeddings_values *v = r->values;
  const uint64_t items = r->texts ? r->texts->items : 0;
  return dialect_plan_cost(r) + CONTRACT_TEXT_NS * v->prompt.length * items;
}

static const struct contract contract = {.field = fields,
                                         .arrays = EMBEDDINGS_ARRAYS,
                                         .fields = EMBEDDINGS_FIELDS,
                                         .stray = strays,
                                         .strays = sizeof strays / sizeof *strays,
                                         .plan_cost = plan_cost};

static void init(void *values, struct arena *a) {
  struct embeddings_values *v = values;
  v->prompt.arena = v->prompt_name.arena = a;
  v->truncate = STACK_TRUNCATE_UNSAID;
}

/* --- what is asked --- */

/* Rejects empty inputs. A list of no tokens among others is stack_check's. */
static enum status check_input(const struct contract_reading *read) {
  const struct texts *texts = read->texts;
  const struct tensor *tokens = read->tensor[EMBEDDINGS_INPUT];
  if (!texts && !tokens) return error_at(read->e, "/input", "the field \"input\" is missing");
  if (tokens && tokens->elements == 0) return error_at(read->e, "/input", "the list is empty");
  for (size_t i = 0; texts && i < texts->items; i++) {
    char pointer[ERROR_POINTER_SIZE];
    if (texts->part[i].length > 0) continue;
    snprintf(pointer, sizeof pointer, texts->alone ? "/input" : "/input/%zu", i);
    return error_at(read->e, pointer, "the text is empty");
  }
  if (tokens && read->seen >> EMBEDDINGS_TRUNCATE & 1)
    return error_at(read->e, "/truncate",
                    "\"truncate\" requires texts, but \"input\" contains token ids");
  return STATUS_OK;
}

static enum status ask(struct dialect_stack *s, const struct contract_reading *read,
                       struct stack_request *out) {
  static const struct dialect_name names[] = {{"/text", "/input"},
                                              {"/tokens", "/input"},
                                              {NULL, NULL}};
  const struct embeddings_values *v = read->values;
  if (check_input(read)) return read->e->status;
  dialect_stack_set_items(s, read, EMBEDDINGS_INPUT);
  s->values.base64 = v->base64;
  s->values.dimensions = v->dimensions;
  dialect_stack_prompt(s, &v->prompt, &v->prompt_name);
  dialect_stack_truncate(s, v->truncate, 0);
  if (s->values.pool == STACK_POOL_NONE) s->values.pool = STACK_POOL_MEAN;
  return dialect_stack_check(s, names, out);
}

/* --- the response --- */

static const char OBJECT[] = "{\"object\":\"embedding\",\"index\":", VECTOR[] = ",\"embedding\":";

enum { OBJECT_ROOM = sizeof OBJECT + COUNT_ROOM + sizeof VECTOR + sizeof "\"\"}," + ROW_ROOM };

/* Writes an object for each vector. */
static char *write_vectors(const struct answer_rows *rows, char *out) {
  const struct stack_request *r = rows->section->data;
  const struct stack_run *run = r->main.run;
  for (size_t i = rows->first; i < rows->first + rows->count; i++) {
    const float *vector = run->outputs + i * run->output_size;
    if (i > rows->first) *out++ = ',';
    out = answer_write_text(out, OBJECT);
    out = number_write_integer(out, (int64_t)i);
    out = answer_write_text(out, VECTOR);
    if (r->base64) {
      *out++ = '"';
      out = base64_write(out, vector, run->output_size * sizeof *vector);
      *out++ = '"';
    } else {
      out = number_write_rows(out, vector, 1, run->output_size);
    }
    *out++ = '}';
  }
  return out;
}

static enum status answer(struct answer *a, const struct contract_reading *read, const char *model,
                          const struct stack_request *r, size_t max_bytes) {
  enum { OBJECT_IS, DATA, MODEL, SECTIONS };
  struct dialect_sheet sheet;
  const size_t size = r->main.run->output_size;
  const char *name = dialect_answer_quote(model, read->arena, read->e);
  size_t *width = arena_alloc(read->arena, 1, sizeof *width, read->e);
  if (!name || !width || dialect_answer_begin(&sheet, SECTIONS, r, read->arena, read->e))
    return read->e->status;
  /* The numbers whose text has at least as many bytes as a vector in base64. */
  *width = r->base64 ? base64_length(size * sizeof(float)) / NUMBER_ROOM + 1 : size;
  sheet.section[OBJECT_IS] = answer_section_text("object", "\"list\"");
  sheet.section[DATA] = dialect_answer_list("data", &r->main.run->geometry.items, width,
                                            OBJECT_ROOM, write_vectors, r);
  sheet.section[MODEL] = answer_section_text("model", name);
  return answer_plan(a, ANSWER_JSON, sheet.content, max_bytes, read->arena, read->e);
}

const struct dialect embeddings = {.contract = &contract,
                                   .values_bytes = sizeof(struct embeddings_values),
                                   .init = init,
                                   .ask = ask,
                                   .answer = answer};
