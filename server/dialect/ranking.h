/* ranking: which of some documents fit a query best. A classifier of one class reads the query and
 * each document together; any other model makes vectors of them, and their cosine counts. */
#ifndef SERVER_RANKING_H
#define SERVER_RANKING_H

#include "config/tokenizer/tokenizer.h"
#include "server/answer/answer_section.h"
#include "server/dialect/dialect_fields.h"
#include "server/dialect/dialect_stack.h"

/* The small values of a body that asks for it. */
struct ranking_values {
  struct dialect_values common;
  struct contract_text query;
  size_t best;     /* so many documents are told, where there are more; 0: all */
  size_t truncate; /* as in stack_values */
  bool shows_texts, raw;
};

/* The longest query, in bytes of JSON. */
enum { RANKING_QUERY_LONGEST = 64 * 1024 };

/* A contract's plan_cost: as dialect_plan_cost, and what it takes to make tokens of the query, and
 * to put them before those of each document. */
uint64_t ranking_plan_cost(const struct contract_reading *r);

/* Asks the model about what was read. `documents` is the pointer of the field of texts. Fails with
 * invalid-request where there is no query or no document. */
enum status ranking_ask(struct dialect_stack *s, const struct contract_reading *read,
                        const char *documents, struct stack_request *out);

/* Sets the first of these prompts that the model has, else its default. NULL ends the names. */
void ranking_prompt(struct contract_text *prompt, const struct whole *w, const char *const *names);

/* --- the answer --- */

/* Something with its score. */
struct ranked {
  float score;
  unsigned index;
};

/* The dot product of two rows: of vectors of length 1 their cosine. */
float ranking_dot(const float *a, const float *b, size_t size);

/* The greatest score first, and of equal ones what stands first. */
void ranked_sort(struct ranked *all, size_t count);

/* The documents of an answer: a list that one worker sorts and writes. */
struct ranking {
  const struct ranking_values *asked;
  const struct texts *documents;
  const struct stack_request *request;
  struct ranked *place; /* [documents] */
  size_t shown;         /* of them */

  /* Writes an object: at most RANKING_OBJECT_ROOM bytes beside the text, whose bytes are NULL where
   * it is not told. */
  char *(*write)(const struct ranked *one, struct tokenizer_text text, char *out);
};

enum { RANKING_OBJECT_ROOM = 128 };

/* The list of this name, in the arena of what was read. Fails without memory, and with too-large
 * where the texts exceed the address space. */
enum status ranking_section(struct answer_section *section, const char *name,
                            const struct contract_reading *read, const struct stack_request *r,
                            char *(*write)(const struct ranked *one, struct tokenizer_text text,
                                           char *out));

#endif
