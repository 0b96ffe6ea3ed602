/* dialect_answer: what the answers of all dialects have in common. */
#include "server/dialect/dialect_answer.h"

#include <stdio.h>
#include <string.h>

static const size_t zero = 0;

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
