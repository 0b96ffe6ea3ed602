/* tei_rerank: POST /rerank: the texts that fit a query, the best first. */
#include <stddef.h>

#include "server/dialect/ranking.h"
#include "server/dialect/tei/tei.h"
#include "server/text/json_string.h"

/* --- the contract --- */

static const struct contract_field fields[] = {
    {DIALECT_NAMED("texts"), .texts = true, .texts_form = TEXTS_OF_A_LIST},
    RANKING_QUERY,
    DIALECT_MODEL,
    {DIALECT_VALUE("raw_scores", contract_read_flag, raw)},
    {DIALECT_VALUE("return_text", contract_read_flag, shows_texts)},
    {DIALECT_VALUE("truncate", tei_read_truncate, truncate), .nullable = true},
    {DIALECT_NAMED("truncation_direction"), .read = tei_pass_direction},
};

static const struct contract_stray strays[] = {
    {"documents", "use \"texts\" (\"documents\" is a field of POST /v1/rerank)"},
    {"inputs", "use \"query\" and \"texts\""},
    {"top_n", "it is supported by POST /v1/rerank"},
    {"return_documents", "use \"return_text\""},
};

static const struct contract contract = {DIALECT_CONTRACT, .plan_cost = ranking_plan_cost};

static enum status ask(struct dialect_stack *s, const struct contract_reading *read,
                       struct stack_request *out) {
  return ranking_ask(s, read, fields[0].pointer, out);
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

const struct dialect tei_rerank = {.contract = &contract, .ask = ask, .answer = answer};
