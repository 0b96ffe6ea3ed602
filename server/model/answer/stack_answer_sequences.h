/* stack_answer_sequences: the generated sequences of a response, and arrays next to them. For
 * stack_answer alone. */
#ifndef SERVER_STACK_ANSWER_SEQUENCES_H
#define SERVER_STACK_ANSWER_SEQUENCES_H

#include "server/model/answer/stack_listing.h"
#include "server/model/answer/stack_token_json.h"

/* Adds the most bytes of all sequences that are returned, and of the steps of their search, without
 * the brackets of their parts; SIZE_MAX: an overflow. The run need not be prepared. Fails without
 * memory. */
enum status stack_sequences_count(const struct stack_request *r, size_t *bytes, struct arena *a,
                                  struct error *e);

/* Adds the section of the sequences of a run that is prepared, and that of the search if the
 * request asks for it. */
enum status stack_answer_sequences(struct stack_listing *l, struct arena *a, struct error *e);

/* A size or place of each sequence. */
#define STACK_OF_SEQUENCES(request, member)                                         \
  (struct answer_sizes) {                                                           \
    &(request)->generation.sequence->member, sizeof *(request)->generation.sequence \
  }

/* Sets the sizes of a section with an item for each sequence: a row for each token; and columns for
 * each key, or for each row of the source. */
void stack_answer_tokens(const struct stack_request *r, struct answer_section *s);
void stack_answer_keys(const struct stack_request *r, struct answer_section *s);
enum status stack_answer_sources(const struct stack_request *r, struct answer_section *s,
                                 struct arena *a, struct error *e);

/* Reduces sections of all sequences, so many of them, to the sequences that are returned. */
enum status stack_answer_returned(const struct stack_request *r, struct answer_section *s,
                                  size_t sections, struct arena *a, struct error *e);

#endif
