/* embeddings_answer: the answer to POST /v1/embeddings: each vector is an object in a list, its
 * numbers as text or as base64. */
#include <stdio.h>

#include "core/run/size.h"
#include "server/dialect/embeddings.h"
#include "server/stack/stack_answer.h"
#include "server/text/base64.h"

static const char OBJECT[] = "{\"object\":\"embedding\",\"index\":", VECTOR[] = ",\"embedding\":";

enum { OBJECT_ROOM = sizeof OBJECT + COUNT_ROOM + sizeof VECTOR + sizeof "\"\"}," + ROW_ROOM };

static const size_t zero = 0;

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

static enum status add_vectors(struct answer_section *s, const struct stack_request *r,
                               struct arena *a, struct error *e) {
  const size_t *width = count_numbers(r, a, e);
  *s = (struct answer_section){.name = "data",
                               .number = NUMBER_TOKEN, /* text in any case */
                               .batch = true,
                               .single = true,
                               .items = 1,
                               .heads = 1,
                               .rows = {&r->main.run->geometry.items, 0},
                               .width = {width, 0},
                               .begin = {&zero, 0},
                               .row_room = OBJECT_ROOM,
                               .data = r,
                               .write = write_vectors};
  return e->status;
}

static enum status add_texts(struct answer_section *model_section, struct answer_section *usage,
                             const char *model, size_t tokens, struct arena *a, struct error *e) {
  enum { USAGE_ROOM = 96 };
  const size_t room = strlen(model) + sizeof "\"\"";
  char *name = arena_alloc(a, room, 1, e), *used = arena_alloc(a, USAGE_ROOM, 1, e);
  if (e->status) return e->status;
  snprintf(name, room, "\"%s\"", model);
  snprintf(used, USAGE_ROOM, "{\"prompt_tokens\":%zu,\"total_tokens\":%zu}", tokens, tokens);
  *model_section = answer_section_text("model", name);
  *usage = answer_section_text("usage", used);
  return STATUS_OK;
}

enum status embeddings_answer(struct answer *a, const struct contract_reading *read,
                              const char *model, const struct stack_request *r, size_t max_bytes) {
  enum { OBJECT_IS, DATA, MODEL, USAGE, SECTIONS };
  struct arena *arena = read->arena;
  struct error *e = read->e;
  struct answer_content *content = arena_alloc(arena, 1, sizeof *content, e);
  struct answer_section *section = arena_alloc(arena, SECTIONS, sizeof *section, e);
  *a = (struct answer){.form = ANSWER_JSON};
  if (e->status) return e->status;
  *content =
      (struct answer_content){.left = r->main.run->left, .sections = SECTIONS, .section = section};
  section[OBJECT_IS] = answer_section_text("object", "\"list\"");
  if (add_vectors(&section[DATA], r, arena, e) ||
      add_texts(&section[MODEL], &section[USAGE], model, stack_answer_given(r), arena, e))
    return e->status;
  return answer_plan(a, ANSWER_JSON, content, max_bytes, arena, e);
}
