/* dialect_answer: what the responses of all dialects share. */
#ifndef SERVER_DIALECT_ANSWER_H
#define SERVER_DIALECT_ANSWER_H

#include "core/base/arena.h"
#include "server/answer/answer.h"
#include "server/model/fields/stack_request.h"

/* A response that is being planned. */
struct dialect_sheet {
  struct answer_content *content;
  struct answer_section *section; /* its sections, to be filled in */
};

/* Begins a response with so many sections. Its usage is in OpenAI's format,
 * {"prompt_tokens":…,"total_tokens":…}. Fails without memory. */
enum status dialect_answer_begin(struct dialect_sheet *sheet, size_t sections,
                                 const struct stack_request *r, struct arena *a, struct error *e);

/* A list of this name with an element for each of *rows rows, which `write` writes: at most
 * `row_room` bytes of text, and the bytes of *width numbers; NULL: no numbers. */
struct answer_section dialect_answer_list(const char *name, const size_t *rows, const size_t *width,
                                          size_t row_room,
                                          char *(*write)(const struct answer_rows *rows, char *out),
                                          const void *data);

enum { DIALECT_ID_SIZE = 32 };

/* Makes an identifier that is unique among all processes: "cmpl-0123456789abcdef". */
void dialect_answer_id(const char *kind, char id[DIALECT_ID_SIZE]);

/* A text that needs no escaping, in quotes; NULL without memory. */
const char *dialect_answer_quote(const char *text, struct arena *a, struct error *e);

#endif
