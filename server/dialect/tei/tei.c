/* tei: what the requests and answers of text-embeddings-inference have in common. */
#include "server/dialect/tei/tei.h"

#include "server/dialect/dialect_answer.h"
#include "server/json/json_small.h"

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
