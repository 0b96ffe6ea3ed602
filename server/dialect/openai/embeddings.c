/* embeddings: the fields of POST /v1/embeddings, and what they ask a model for: what
 * POST /v1/models/NAME/encode makes of the same texts, with the model's own pool. */
#include "server/dialect/openai/embeddings.h"

#include <stddef.h>
#include <stdio.h>

#include "server/dialect/dialect_fields.h"
#include "server/model/fields/stack_choice_fields.h"

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

static enum status refuse_empty_text(struct error *e, const struct texts *t, size_t item) {
  char pointer[ERROR_POINTER_SIZE];
  if (t->alone)
    snprintf(pointer, sizeof pointer, "/input");
  else
    snprintf(pointer, sizeof pointer, "/input/%zu", item);
  return error_at(e, pointer, "the text is empty");
}

/* Is there anything to be embedded? A list of no tokens among others is for stack_check. */
static enum status check_input(const struct contract_reading *read) {
  const struct texts *texts = read->texts;
  const struct tensor *tokens = read->tensor[EMBEDDINGS_INPUT];
  if (!texts && !tokens) return error_at(read->e, "/input", "the field \"input\" is missing");
  if (tokens && tokens->elements == 0) return error_at(read->e, "/input", "the list is empty");
  for (size_t i = 0; texts && i < texts->items; i++)
    if (texts->part[i].length == 0) return refuse_empty_text(read->e, texts, i);
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
  dialect_stack_give_items(s, read, EMBEDDINGS_INPUT);
  s->values.base64 = v->base64;
  s->values.dimensions = v->dimensions;
  dialect_stack_prompt(s, &v->prompt, &v->prompt_name);
  dialect_stack_truncate(s, v->truncate, 0);
  if (s->values.pool == STACK_POOL_NONE) s->values.pool = STACK_POOL_MEAN;
  return dialect_stack_check(s, names, out);
}

const struct dialect embeddings = {.contract = &contract,
                                   .values_bytes = sizeof(struct embeddings_values),
                                   .init = init,
                                   .ask = ask,
                                   .answer = embeddings_answer};
