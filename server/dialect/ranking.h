/* ranking: the documents that fit a query best. A classifier of one class reads the query and each
 * document together, and its score counts; any other model embeds them, and their cosine counts; of
 * sparse embeddings, the dot product; of multi-vector ones, MaxSim. */
#ifndef SERVER_RANKING_H
#define SERVER_RANKING_H

#include "config/tokenizer/tokenizer.h"
#include "server/answer/answer_section.h"
#include "server/dialect/dialect_fields.h"
#include "server/dialect/dialect_stack.h"

/* The row of the query, with the most bytes of its JSON. */
#define RANKING_QUERY \
  { DIALECT_VALUE("query", contract_read_text, query), .longest = 64 * 1024 }

/* A contract's plan_cost: dialect_plan_cost, and the nanoseconds to tokenize the query and to copy
 * its tokens to each document. */
uint64_t ranking_plan_cost(const struct contract_reading *r);

/* Makes the request of what was read. `documents` is the pointer of the field of texts. Fails with
 * invalid-request if there is no query or no document. */
enum status ranking_ask(struct dialect_stack *s, const struct contract_reading *read,
                        const char *documents, struct stack_request *out);

/* --- the response --- */

struct ranked {
  float score;
  unsigned index; /* of the document or class */
};

/* The dot product of two rows, [size]: the cosine of vectors of length 1. */
float ranking_dot(const float *a, const float *b, size_t size);

/* Sorts by score, the greatest first, and equal scores by index. */
void ranked_sort(struct ranked *all, size_t count);

enum { RANKING_OBJECT_ROOM = 128 };

/* Makes the list of documents of this name. `write` writes the object of a document, at most
 * RANKING_OBJECT_ROOM bytes except its text, whose bytes are NULL if it is not returned. Fails
 * without memory, and with too-large if the texts exceed the address space. */
enum status ranking_section(struct answer_section *section, const char *name,
                            const struct contract_reading *read, const struct stack_request *r,
                            char *(*write)(const struct ranked *one, struct tokenizer_text text,
                                           char *out));

#endif
