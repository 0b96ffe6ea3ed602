/* stack_answer_scores: what an answer to a request to score has of its targets: how likely each is,
 * the likeliest tokens in its place, and what
 * each hidden state says of it. For stack_answer and stack_limits alone. */
#ifndef SERVER_STACK_ANSWER_SCORES_H
#define SERVER_STACK_ANSWER_SCORES_H

#include "server/answer/answer.h"
#include "server/model/answer/stack_words.h"
#include "server/model/fields/stack_request.h"

enum { STACK_PART_NAME_SIZE = 48 };

/* An answer that is being listed. */
struct stack_listing {
  const struct stack_request *r;
  struct answer_content *content;
  char (*part)[STACK_PART_NAME_SIZE]; /* [of the sections] names of parts of the model */
  const size_t *side[STACK_SIDES];    /* the rows of thumbnails, [items] of the source and of main;
                                         NULL: there are none yet */
};

/* Appends a section, of one list; there is room for it. */
struct answer_section *stack_answer_add(struct stack_listing *l, const char *group,
                                        const char *name);

/* Names the section that was added last: "decoder.3.cross.input" is number 3 of main, ".cross" and
 * ".input". */
void stack_answer_name(struct stack_listing *l, const struct stack_side *side, size_t number,
                       const char *ending, const char *behind);

/* Appends the sections of the targets. */
void stack_answer_scores(struct stack_listing *l, enum answer_form form);

#endif
