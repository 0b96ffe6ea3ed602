/* embeddings: OpenAI's POST /v1/embeddings: texts, or tokens, become a vector each. */
#ifndef SERVER_EMBEDDINGS_H
#define SERVER_EMBEDDINGS_H

#include "server/dialect/dialect.h"

extern const struct dialect embeddings;

/* --- embeddings_answer: the dialect's `answer` --- */

enum status embeddings_answer(struct answer *a, const struct contract_reading *read,
                              const char *model, const struct stack_request *r, size_t max_bytes);

#endif
