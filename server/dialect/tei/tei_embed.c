/* tei_embed: what all endpoints of text-embeddings-inference share; POST /embed: an embedding for
 * each text, by default of length 1; and POST /embed_all: one for each of its tokens. */
#include <stddef.h>

#include "server/dialect/dialect_answer.h"
#include "server/dialect/dialect_fields.h"
#include "server/dialect/tei/tei.h"
#include "server/json/json_small.h"
#include "server/model/fields/stack_choice_fields.h"

/* --- shared --- */

enum status tei_read_truncate(const struct json_t *value, const struct contract_field *field,
                              void *to, struct error *e) {
  bool cut;
  if (contract_read_flag(value, field, &cut, e)) return e->status;
  *(size_t *)to = cut ? SIZE_MAX : 0;
  return STATUS_OK;
}

enum status tei_pass_direction(const struct json_t *value, const struct contract_field *field,
                               void *to, struct error *e) {
  (void)to;
  if (json_small_is_text(value, "right") || json_small_is_text(value, "Right")) return STATUS_OK;
  return error_at(e, field->pointer,
                  "truncation_direction must be \"right\": texts are truncated at their end");
}

enum status tei_answer(struct answer *a, const struct answer_section *list,
                       const struct contract_reading *read, const struct stack_request *r,
                       size_t max_bytes) {
  struct dialect_sheet sheet;
  if (dialect_answer_begin(&sheet, 1, r, read->arena, read->e)) return read->e->status;
  sheet.content->has_usage = false;
  sheet.content->alone = true;
  *sheet.section = *list;
  return answer_plan(a, ANSWER_JSON, sheet.content, max_bytes, read->arena, read->e);
}

/* --- the contract --- */

enum tei_embed_field {
  EMBED_INPUTS,
  EMBED_ARRAYS,
  EMBED_MODEL = EMBED_ARRAYS,
  EMBED_NORMALIZE,
  EMBED_DIMENSIONS,
  EMBED_TRUNCATE,
  EMBED_TRUNCATION_DIRECTION,
  EMBED_PROMPT_NAME,
  EMBED_FIELDS
};

/* The small values as they were read. */
struct embed_values {
  struct dialect_values common;
  bool normalize;
  size_t dimensions; /* 0: all */
  size_t truncate;   /* as in stack_values */
  struct contract_text prompt_name;
};

#define NAMED(name)     .pointer = "/" name, .name_length = sizeof name - 1
#define VALUE_AT(value) .at = offsetof(struct embed_values, value)

enum { OF_EMBED = 1, OF_EMBED_ALL = 2 };
static const struct contract_request requests[] = {{OF_EMBED, "POST /embed"}, {0, NULL}};

static const struct contract_field fields[EMBED_FIELDS] = {
    [EMBED_INPUTS] =
        {NAMED("inputs"),
         .rule = {.type = TENSOR_INTEGER, .depth_min = 1, .depth_max = 2, .ragged_depth = 2},
         .texts = true, .texts_form = TEXTS_ALONE},
    [EMBED_MODEL] = {NAMED("model"), .read = dialect_read_model, VALUE_AT(common),
                     .nullable = true},
    [EMBED_NORMALIZE] = {NAMED("normalize"), .read = contract_read_flag, VALUE_AT(normalize),
                         .of = OF_EMBED},
    [EMBED_DIMENSIONS] = {NAMED("dimensions"), .read = stack_read_number, VALUE_AT(dimensions),
                          .nullable = true, .of = OF_EMBED},
    [EMBED_TRUNCATE] = {NAMED("truncate"), .read = tei_read_truncate, VALUE_AT(truncate),
                        .nullable = true},
    [EMBED_TRUNCATION_DIRECTION] = {NAMED("truncation_direction"), .read = tei_pass_direction},
    [EMBED_PROMPT_NAME] = {NAMED("prompt_name"), .read = contract_read_text, VALUE_AT(prompt_name),
                           .nullable = true},
};

static const struct contract_stray strays[] = {
    {"input", "use \"inputs\""},
    {"text", "use \"inputs\""},
    {"texts", "use \"inputs\""},
};

#define CONTRACT                                                                    \
  .field = fields, .arrays = EMBED_ARRAYS, .fields = EMBED_FIELDS, .stray = strays, \
  .strays = sizeof strays / sizeof *strays, .plan_cost = dialect_plan_cost, .requests = requests

static const struct contract contract = {CONTRACT, .request = OF_EMBED};
static const struct contract contract_of_all = {CONTRACT, .request = OF_EMBED_ALL};

static void init(void *values, struct arena *a) {
  struct embed_values *v = values;
  v->prompt_name.arena = a;
  v->normalize = true;
  v->truncate = STACK_TRUNCATE_UNSAID;
}

/* --- the request --- */

static enum status ask_pooled(struct dialect_stack *s, const struct contract_reading *read,
                              enum stack_pool pool, struct stack_request *out) {
  static const struct dialect_name names[] = {{"/text", "/inputs"},
                                              {"/tokens", "/inputs"},
                                              {NULL, NULL}};
  const struct embed_values *v = read->values;
  const struct tensor *tokens = read->tensor[EMBED_INPUTS];
  if (!read->texts && !tokens)
    return error_at(read->e, "/inputs", "the field \"inputs\" is missing");
  if (read->texts ? read->texts->items == 0 : tokens->elements == 0)
    return error_at(read->e, "/inputs", "the list is empty");
  dialect_stack_set_items(s, read, EMBED_INPUTS);
  s->values.pool = pool;
  s->values.normalize = pool != STACK_POOL_NONE && v->normalize;
  s->values.dimensions = v->dimensions;
  dialect_stack_prompt(s, &(struct contract_text){0}, &v->prompt_name);
  dialect_stack_truncate(s, v->truncate, SIZE_MAX);
  return dialect_stack_check(s, names, out);
}

static enum status ask(struct dialect_stack *s, const struct contract_reading *read,
                       struct stack_request *out) {
  const enum stack_pool own = s->values.pool;
  return ask_pooled(s, read, own == STACK_POOL_NONE ? STACK_POOL_MEAN : own, out);
}

static enum status ask_all(struct dialect_stack *s, const struct contract_reading *read,
                           struct stack_request *out) {
  return ask_pooled(s, read, STACK_POOL_NONE, out);
}

/* --- the response --- */

static enum status answer(struct answer *a, const struct contract_reading *read, const char *model,
                          const struct stack_request *r, size_t max_bytes) {
  const struct stack_run *run = r->main.run;
  struct answer_section list = dialect_answer_list(NULL, &run->geometry.items, &run->output_size,
                                                   ROW_ROOM, answer_write_floats, run->outputs);
  (void)model;
  return tei_answer(a, &list, read, r, max_bytes);
}

/* Plans a list of rows for each item. */
static enum status answer_all(struct answer *a, const struct contract_reading *read,
                              const char *model, const struct stack_request *r, size_t max_bytes) {
  static const size_t zero = 0;
  const struct geometry *g = &r->main.run->geometry;
  const struct answer_section list = {.batch = true,
                                      .items = g->items,
                                      .heads = 1,
                                      .rows = ANSWER_OF_ITEMS(g, q, &zero),
                                      .width = {&r->main.form->width, 0},
                                      .begin = ANSWER_OF_ITEMS(g, q_row, &zero),
                                      .times = r->main.form->width,
                                      .row_room = ROW_ROOM,
                                      .data = r->main.run->outputs,
                                      .write = answer_write_floats};
  (void)model;
  return tei_answer(a, &list, read, r, max_bytes);
}

const struct dialect tei_embed = {.contract = &contract,
                                  .values_bytes = sizeof(struct embed_values),
                                  .init = init,
                                  .ask = ask,
                                  .answer = answer};

const struct dialect tei_embed_all = {.contract = &contract_of_all,
                                      .values_bytes = sizeof(struct embed_values),
                                      .init = init,
                                      .ask = ask_all,
                                      .answer = answer_all};
