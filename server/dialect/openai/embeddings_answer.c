/* embeddings_answer: the answer to POST /v1/embeddings: each vector is an object in a list, its
 * numbers as text or as base64. */
#include "core/base/size.h"
#include "server/dialect/dialect_answer.h"
#include "server/dialect/openai/embeddings.h"
#include "server/model/answer/stack_answer.h"
#include "server/text/base64.h"

static const char OBJECT[] = "{\"object\":\"embedding\",\"index\":", VECTOR[] = ",\"embedding\":";

enum { OBJECT_ROOM = sizeof OBJECT + COUNT_ROOM + sizeof VECTOR + sizeof "\"\"}," + ROW_ROOM };

static char *write_base64(const float *number, size_t count, char *out) {
  *out++ = '"';
  out = base64_write(out, number, count * sizeof *number);
  *out++ = '"';
  return out;
}

/* A row is an object. */
static char *write_vectors(const struct answer_rows *rows, char *out) {
  const struct stack_request *r = rows->section->data;
  const struct stack_run *run = r->main.run;
  for (size_t i = rows->first; i < rows->first + rows->count; i++) {
    const float *vector = run->outputs + i * run->output_size;
    if (i > rows->first) *out++ = ',';
    out = answer_write_text(out, OBJECT);
    out = number_write_integer(out, (int64_t)i);
    out = answer_write_text(out, VECTOR);
    out = r->base64 ? write_base64(vector, run->output_size, out)
                    : number_write_rows(out, vector, 1, run->output_size);
    *out++ = '}';
  }
  return out;
}

/* The numbers of which a row has as many bytes as a vector in base64. */
static size_t *count_numbers(const struct stack_request *r, struct arena *a, struct error *e) {
  const size_t size = r->main.run->output_size;
  size_t *width = arena_alloc(a, 1, sizeof *width, e);
  if (width) *width = r->base64 ? base64_length(size * sizeof(float)) / NUMBER_ROOM + 1 : size;
  return width;
}

enum status embeddings_answer(struct answer *a, const struct contract_reading *read,
                              const char *model, const struct stack_request *r, size_t max_bytes) {
  enum { OBJECT_IS, DATA, MODEL, SECTIONS };
  struct dialect_sheet sheet;
  const char *name = dialect_answer_quote(model, read->arena, read->e);
  const size_t *width = count_numbers(r, read->arena, read->e);
  if (!name || !width || dialect_answer_begin(&sheet, SECTIONS, r, read->arena, read->e))
    return read->e->status;
  sheet.section[OBJECT_IS] = answer_section_text("object", "\"list\"");
  sheet.section[DATA] = dialect_answer_list("data", &r->main.run->geometry.items, width,
                                            OBJECT_ROOM, write_vectors, r);
  sheet.section[MODEL] = answer_section_text("model", name);
  return answer_plan(a, ANSWER_JSON, sheet.content, max_bytes, read->arena, read->e);
}
