/* rerank: the fields of POST /v1/rerank, and its response. */
#include "server/dialect/dialect.h"

#include <stddef.h>

#include "server/dialect/dialect_answer.h"
#include "server/dialect/ranking.h"
#include "server/model/fields/stack_choice_fields.h"
#include "server/text/json_string.h"

/* --- the contract --- */

/* Rejects fields that some clients send as null, which is accepted. */
static enum status refuse(const struct json_t *value, const struct contract_field *field, void *to,
                          struct error *e) {
  (void)value, (void)to;
  return error_at(e, field->pointer,
                  "%s is not supported: \"truncate\" truncates query and document together, and "
                  "documents are strings or objects with \"text\"",
                  contract_name(field));
}

/* Accepts "max_chunks_per_doc" and ignores it: a document is one chunk. */
static enum status pass_chunks(const struct json_t *value, const struct contract_field *field,
                               void *to, struct error *e) {
  size_t chunks;
  (void)to;
  return stack_read_number(value, field, &chunks, e);
}

static const struct contract_field fields[] = {
    {DIALECT_NAMED("documents"), .texts = true, .texts_form = TEXTS_OF_A_LIST},
    RANKING_QUERY,
    DIALECT_MODEL,
    {DIALECT_VALUE("top_n", stack_read_number, best), .nullable = true},
    {DIALECT_VALUE("return_documents", contract_read_flag, shows_texts), .nullable = true},
    {DIALECT_VALUE("truncate", stack_fields_truncate, truncate), .nullable = true},
    DIALECT_USER,
    {DIALECT_NAMED("max_chunks_per_doc"), .read = pass_chunks, .nullable = true},
    {DIALECT_NAMED("max_tokens_per_doc"), .read = refuse, .nullable = true},
    {DIALECT_NAMED("rank_fields"), .read = refuse, .nullable = true},
};

static const char documents_here[] = "use \"documents\"";
static const char truncation[] = "use \"truncate\", the tokens of query and document together";

static const struct contract_stray strays[] = {
    {"texts", documents_here},
    {"inputs", documents_here},
    {"input", "use \"query\" and \"documents\""},
    {"text", "use \"query\" and \"documents\""},
    {"top_k", "use \"top_n\""},
    {"return_text", "use \"return_documents\""},
    {"truncate_prompt_tokens", truncation},
};

static const struct contract contract = {DIALECT_CONTRACT, .plan_cost = ranking_plan_cost};

static enum status ask(struct dialect_stack *s, const struct contract_reading *read,
                       struct stack_request *out) {
  return ranking_ask(s, read, fields[0].pointer, out);
}

/* --- the response --- */

static char *write_result(const struct ranked *one, struct tokenizer_text text, char *out) {
  out = answer_write_text(out, "{\"index\":");
  out = number_write_integer(out, one->index);
  out = answer_write_text(out, ",\"relevance_score\":");
  out = number_write(out, one->score);
  if (text.bytes) {
    out = answer_write_text(out, ",\"document\":{\"text\":");
    out = json_string_write(text.bytes, text.length, out);
    *out++ = '}';
  }
  *out++ = '}';
  return out;
}

static enum status answer(struct answer *a, const struct contract_reading *read, const char *model,
                          const struct stack_request *r, size_t max_bytes) {
  enum { ID, OBJECT, MODEL, RESULTS, META, SECTIONS };
  struct dialect_sheet sheet;
  char unique[DIALECT_ID_SIZE];
  dialect_answer_id("rerank", unique);
  if (dialect_answer_begin(&sheet, SECTIONS, r, read->arena, read->e)) return read->e->status;
  const char *id = dialect_answer_quote(unique, read->arena, read->e),
             *name = dialect_answer_quote(model, read->arena, read->e);
  sheet.section[ID] = answer_section_text("id", id);
  sheet.section[OBJECT] = answer_section_text("object", "\"list\"");
  sheet.section[MODEL] = answer_section_text("model", name);
  sheet.section[META] = answer_section_text("meta", "{}"); /* Cohere's clients want one */
  if (!id || !name || ranking_section(&sheet.section[RESULTS], "results", read, r, write_result))
    return read->e->status;
  return answer_plan(a, ANSWER_JSON, sheet.content, max_bytes, read->arena, read->e);
}

const struct dialect rerank = {
    .contract = &contract, .defaults = {.shows_texts = true}, .ask = ask, .answer = answer};
