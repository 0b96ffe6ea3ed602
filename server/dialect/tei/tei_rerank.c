/* tei_rerank: POST /rerank: the texts that fit a query, the best first. */
#include <stddef.h>

#include "server/dialect/ranking.h"
#include "server/dialect/tei/tei.h"
#include "server/text/json_string.h"

/* --- the contract --- */

enum tei_rerank_field {
  RERANK_TEXTS,
  RERANK_QUERY,
  RERANK_MODEL,
  RERANK_RAW_SCORES,
  RERANK_RETURN_TEXT,
  RERANK_TRUNCATE,
  RERANK_TRUNCATION_DIRECTION,
  RERANK_FIELDS
};

#define NAMED(name)     .pointer = "/" name, .name_length = sizeof name - 1
#define VALUE_AT(value) .at = offsetof(struct ranking_values, value)

static const struct contract_field fields[RERANK_FIELDS] = {
    [RERANK_TEXTS] = {NAMED("texts"), .texts = true, .texts_form = TEXTS_OF_A_LIST},
    [RERANK_QUERY] = {NAMED("query"), .read = contract_read_text, VALUE_AT(query),
                      .longest = RANKING_QUERY_LONGEST},
    [RERANK_MODEL] = {NAMED("model"), .read = dialect_read_model, VALUE_AT(common),
                      .nullable = true},
    [RERANK_RAW_SCORES] = {NAMED("raw_scores"), .read = contract_read_flag, VALUE_AT(raw)},
    [RERANK_RETURN_TEXT] = {NAMED("return_text"), .read = contract_read_flag,
                            VALUE_AT(shows_texts)},
    [RERANK_TRUNCATE] = {NAMED("truncate"), .read = tei_read_truncate, VALUE_AT(truncate),
                         .nullable = true},
    [RERANK_TRUNCATION_DIRECTION] = {NAMED("truncation_direction"), .read = tei_pass_direction},
};

static const struct contract_stray strays[] = {
    {"documents", "use \"texts\" (\"documents\" is a field of POST /v1/rerank)"},
    {"inputs", "use \"query\" and \"texts\""},
    {"top_n", "it is supported by POST /v1/rerank"},
    {"return_documents", "use \"return_text\""},
};

static const struct contract contract = {.field = fields,
                                         .fields = RERANK_FIELDS,
                                         .stray = strays,
                                         .strays = sizeof strays / sizeof *strays,
                                         .plan_cost = ranking_plan_cost};

static void init(void *values, struct arena *a) {
  struct ranking_values *v = values;
  v->query.arena = a;
  v->truncate = STACK_TRUNCATE_UNSAID;
}

static enum status ask(struct dialect_stack *s, const struct contract_reading *read,
                       struct stack_request *out) {
  return ranking_ask(s, read, fields[RERANK_TEXTS].pointer, out);
}

/* --- the response --- */

static char *write_rank(const struct ranked *one, struct tokenizer_text text, char *out) {
  out = answer_write_text(out, "{\"index\":");
  out = number_write_integer(out, one->index);
  if (text.bytes) {
    out = answer_write_text(out, ",\"text\":");
    out = json_string_write(text.bytes, text.length, out);
  }
  out = answer_write_text(out, ",\"score\":");
  out = number_write(out, one->score);
  *out++ = '}';
  return out;
}

static enum status answer(struct answer *a, const struct contract_reading *read, const char *model,
                          const struct stack_request *r, size_t max_bytes) {
  struct answer_section list;
  (void)model;
  if (ranking_section(&list, NULL, read, r, write_rank)) return read->e->status;
  return tei_answer(a, &list, read, r, max_bytes);
}

const struct dialect tei_rerank = {.contract = &contract,
                                   .values_bytes = sizeof(struct ranking_values),
                                   .init = init,
                                   .ask = ask,
                                   .answer = answer};
