/* tei_embed: what all endpoints of text-embeddings-inference share; POST /embed: an embedding for
 * each text, by default of length 1; POST /embed_all: one for each of its tokens; and POST
 * /embed_sparse: the weights of its tokens. */
#include <stddef.h>

#include "server/dialect/dialect_answer.h"
#include "server/dialect/dialect_fields.h"
#include "server/dialect/tei/tei.h"
#include "server/json/json_small.h"
#include "server/model/answer/stack_answer_sparse.h"
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

enum { OF_EMBED = 1, OF_EMBED_ALL = 2, OF_SPARSE = 4 };
static const struct contract_request requests[] = {{OF_EMBED, "POST /embed"}, {0, NULL}};

static const struct contract_field fields[] = {
    {DIALECT_NAMED("inputs"), DIALECT_TEXTS_OR_TOKENS},
    DIALECT_MODEL,
    {DIALECT_VALUE("normalize", contract_read_flag, normalize), .of = OF_EMBED},
    {DIALECT_VALUE("dimensions", stack_read_number, dimensions), .nullable = true, .of = OF_EMBED},
    {DIALECT_VALUE("truncate", tei_read_truncate, truncate), .nullable = true},
    {DIALECT_NAMED("truncation_direction"), .read = tei_pass_direction},
    {DIALECT_VALUE("prompt_name", contract_read_text, prompt_name), .nullable = true},
};

static const struct contract_stray strays[] = {
    {"input", "use \"inputs\""},
    {"text", "use \"inputs\""},
    {"texts", "use \"inputs\""},
};

#define CONTRACT DIALECT_CONTRACT, .arrays = 1, .plan_cost = dialect_plan_cost, .requests = requests

static const struct contract contract = {CONTRACT, .request = OF_EMBED};
static const struct contract contract_of_all = {CONTRACT, .request = OF_EMBED_ALL};
static const struct contract contract_of_sparse = {CONTRACT, .request = OF_SPARSE};

/* --- the request --- */

static enum status ask_pooled(struct dialect_stack *s, const struct contract_reading *read,
                              struct stack_request *out) {
  static const struct dialect_name names[] = {{"/text", "/inputs"},
                                              {"/tokens", "/inputs"},
                                              {NULL, NULL}};
  const struct dialect_values *v = read->values;
  const struct tensor *tokens = read->tensor[0];
  if (!read->texts && !tokens)
    return error_at(read->e, "/inputs", "the field \"inputs\" is missing");
  if (read->texts ? read->texts->items == 0 : tokens->elements == 0)
    return error_at(read->e, "/inputs", "the list is empty");
  dialect_stack_set_items(s, read, 0);
  const enum stack_pool pool = s->values.pool;
  s->values.normalize = pool != STACK_POOL_NONE && stack_pool_is_dense(pool) && v->normalize;
  s->values.dimensions = v->dimensions;
  dialect_stack_prompt(s, &(struct contract_text){0}, &v->prompt_name);
  dialect_stack_truncate(s, v->truncate, SIZE_MAX);
  return dialect_stack_check(s, names, out);
}

static enum status ask(struct dialect_stack *s, const struct contract_reading *read,
                       struct stack_request *out) {
  return dialect_stack_pool(s) ? read->e->status : ask_pooled(s, read, out);
}

static enum status ask_all(struct dialect_stack *s, const struct contract_reading *read,
                           struct stack_request *out) {
  s->values.pool = STACK_POOL_NONE;
  return ask_pooled(s, read, out);
}

static enum status ask_sparse(struct dialect_stack *s, const struct contract_reading *read,
                              struct stack_request *out) {
  s->values.pool = STACK_POOL_SPARSE;
  return ask_pooled(s, read, out);
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

/* Plans a list of {"index":3,"value":0.5} for each item. */
static enum status answer_sparse(struct answer *a, const struct contract_reading *read,
                                 const char *model, const struct stack_request *r,
                                 size_t max_bytes) {
  const struct answer_section list = stack_answer_sparse_list(r);
  (void)model;
  return tei_answer(a, &list, read, r, max_bytes);
}

const struct dialect tei_embed = {
    .contract = &contract, .defaults = {.normalize = true}, .ask = ask, .answer = answer};

const struct dialect tei_embed_all = {.contract = &contract_of_all,
                                      .ask = ask_all,
                                      .answer = answer_all};

const struct dialect tei_embed_sparse = {.contract = &contract_of_sparse,
                                         .ask = ask_sparse,
                                         .answer = answer_sparse};
