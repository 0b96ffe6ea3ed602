/* embeddings: the fields of POST /v1/embeddings, and the request that they make: the one that
 * POST /v1/models/NAME/encode makes of the same texts, with the model's own pooling. Its response
 * has an object for each vector, with numbers as text or base64. */
#include "server/dialect/dialect.h"

#include <stddef.h>
#include <stdio.h>

#include "core/base/size.h"
#include "server/dialect/dialect_answer.h"
#include "server/dialect/dialect_fields.h"
#include "server/model/fields/stack_choice_fields.h"
#include "server/text/base64.h"

/* --- the contract --- */

enum { TRUNCATE = 1 };

static const struct contract_field fields[] = {
    {DIALECT_NAMED("input"), DIALECT_TEXTS_OR_TOKENS},
    [TRUNCATE] = {DIALECT_VALUE("truncate", stack_fields_truncate, truncate), .nullable = true},
    DIALECT_MODEL,
    {DIALECT_VALUE("encoding_format", contract_read_base64, base64), .nullable = true},
    {DIALECT_VALUE("dimensions", stack_read_number, dimensions), .nullable = true},
    DIALECT_USER,
    {DIALECT_VALUE("prompt", contract_read_text, prompt), .nullable = true,
     .longest = STACK_PROMPT_LONGEST},
    {DIALECT_VALUE("prompt_name", contract_read_text, prompt_name), .nullable = true},
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
  const struct dialect_values *v = r->values;
  const uint64_t items = r->texts ? r->texts->items : 0;
  return dialect_plan_cost(r) + CONTRACT_TEXT_NS * v->prompt.length * items;
}

static const struct contract contract = {DIALECT_CONTRACT, .arrays = 1, .plan_cost = plan_cost};

/* --- what is asked --- */

/* Rejects empty inputs. A list of no tokens among others is stack_check's. */
static enum status check_input(const struct contract_reading *read) {
  const struct texts *texts = read->texts;
  const struct tensor *tokens = read->tensor[0];
  if (!texts && !tokens) return error_at(read->e, "/input", "the field \"input\" is missing");
  if (tokens && tokens->elements == 0) return error_at(read->e, "/input", "the list is empty");
  for (size_t i = 0; texts && i < texts->items; i++) {
    char pointer[ERROR_POINTER_SIZE];
    if (texts->part[i].length > 0) continue;
    snprintf(pointer, sizeof pointer, texts->alone ? "/input" : "/input/%zu", i);
    return error_at(read->e, pointer, "the text is empty");
  }
  if (tokens && read->seen >> TRUNCATE & 1)
    return error_at(read->e, "/truncate",
                    "\"truncate\" requires texts, but \"input\" contains token ids");
  return STATUS_OK;
}

static enum status ask(struct dialect_stack *s, const struct contract_reading *read,
                       struct stack_request *out) {
  static const struct dialect_name names[] = {{"/text", "/input"},
                                              {"/tokens", "/input"},
                                              {NULL, NULL}};
  const struct dialect_values *v = read->values;
  if (check_input(read)) return read->e->status;
  dialect_stack_set_items(s, read, 0);
  s->values.base64 = v->base64;
  s->values.dimensions = v->dimensions;
  dialect_stack_prompt(s, &v->prompt, &v->prompt_name);
  dialect_stack_truncate(s, v->truncate, 0);
  if (dialect_stack_pool(s)) return read->e->status;
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

const struct dialect embeddings = {.contract = &contract, .ask = ask, .answer = answer};
