/* dialect_answer: what the responses of all dialects share. */
#include "server/dialect/dialect_answer.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "core/base/clock.h"
#include "server/model/answer/stack_answer.h"

static const size_t zero = 0;

static char *write_usage(char *out, const struct answer_usage *u) {
  out = answer_write_text(out, "{\"prompt_tokens\":");
  out = number_write_integer(out, (int64_t)u->tokens);
  out = answer_write_text(out, ",\"total_tokens\":");
  out = number_write_integer(out, (int64_t)u->tokens);
  return answer_write_text(out, "}");
}

enum status dialect_answer_begin(struct dialect_sheet *sheet, size_t sections,
                                 const struct stack_request *r, struct arena *a, struct error *e) {
  struct answer_content *content = arena_alloc(a, 1, sizeof *content, e);
  struct answer_section *section = arena_alloc(a, sections, sizeof *section, e);
  if (e->status) return e->status;
  *content = (struct answer_content){.left = r->main.run->left,
                                     .sections = sections,
                                     .section = section,
                                     .has_usage = true,
                                     .usage = stack_answer_usage(r)};
  content->usage.write = write_usage;
  *sheet = (struct dialect_sheet){content, section};
  return STATUS_OK;
}

struct answer_section dialect_answer_list(const char *name, const size_t *rows, const size_t *width,
                                          size_t row_room,
                                          char *(*write)(const struct answer_rows *rows, char *out),
                                          const void *data) {
  return (struct answer_section){.name = name,
                                 .number = NUMBER_TOKEN, /* text in any case */
                                 .batch = true,
                                 .single = true,
                                 .items = 1,
                                 .heads = 1,
                                 .rows = {rows, 0},
                                 .width = {width ? width : &zero, 0},
                                 .begin = {&zero, 0},
                                 .row_room = row_room,
                                 .data = data,
                                 .write = write};
}

const char *dialect_answer_quote(const char *text, struct arena *a, struct error *e) {
  const size_t room = strlen(text) + sizeof "\"\"";
  char *quoted = arena_alloc(a, room, 1, e);
  if (quoted) snprintf(quoted, room, "\"%s\"", text);
  return quoted;
}

void dialect_answer_id(const char *kind, char id[DIALECT_ID_SIZE]) {
  uint64_t number;
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number) number = clock_now();
  snprintf(id, DIALECT_ID_SIZE, "%s-%016llx", kind, (unsigned long long)number);
}
