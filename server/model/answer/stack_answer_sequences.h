/* stack_answer_sequences: what an answer to a request to generate has: its sequences. For
 * stack_answer and stack_limits alone. */
#ifndef SERVER_STACK_ANSWER_SEQUENCES_H
#define SERVER_STACK_ANSWER_SEQUENCES_H

#include "server/model/answer/stack_answer_scores.h"

/* Bytes of one of `most` tokens, with so many of the likeliest in the place of each; SIZE_MAX: too
 * many to count. */
size_t stack_sequence_room(const struct stack_request *r, size_t most, size_t top);

/* Appends the section of the sequences, for a run that is prepared; and behind it that of the
 * search that led to them, where it is asked for. */
enum status stack_answer_sequences(struct stack_listing *l, struct arena *a, struct error *e);

/* A size or place of each sequence. */
#define STACK_OF_SEQUENCES(request, member)                                         \
  (struct answer_sizes) {                                                           \
    &(request)->generation.sequence->member, sizeof *(request)->generation.sequence \
  }

/* Makes a section one of all sequences: a row for each of their tokens; and a number for each of
 * their keys, or across for each of their sources'. */
void stack_answer_tokens(const struct stack_request *r, struct answer_section *s);
void stack_answer_keys(const struct stack_request *r, struct answer_section *s);
enum status stack_answer_sources(const struct stack_request *r, struct answer_section *s,
                                 struct arena *a, struct error *e);

/* Makes so many sections of all sequences ones of those that are returned. */
enum status stack_answer_returned(const struct stack_request *r, struct answer_section *s,
                                  size_t sections, struct arena *a, struct error *e);

#endif
