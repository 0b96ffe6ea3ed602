/* tokenize_answer: the answer of a tokenizer alone. */
#ifndef SERVER_TOKENIZE_ANSWER_H
#define SERVER_TOKENIZE_ANSWER_H

#include "server/answer/answer.h"
#include "server/tokenize/tokenize_body.h"

/* Writes the texts as a value; NULL without memory, or where they exceed the address space. */
const char *tokenize_answer_texts(const struct tokenize_request *r, struct arena *a,
                                  struct error *e);

/* Plans the answer, from the model of this name, as JSON. Fails as answer_plan does. */
enum status tokenize_answer_plan(struct answer *a, const char *model,
                                 const struct tokenize_request *r, size_t max_bytes,
                                 struct arena *arena, struct error *e);

#endif
