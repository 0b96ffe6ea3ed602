/* stack_answer_parts: what is shown of the passes that chose a sequence's tokens, part by part, as
 * the text of an answer. For stack_answer_sequences and stack_limits alone. */
#ifndef SERVER_STACK_ANSWER_PARTS_H
#define SERVER_STACK_ANSWER_PARTS_H

#include "server/model/answer/stack_answer_scores.h"

enum stack_part_kind {
  STACK_PART_EMBEDDING,
  STACK_PART_INPUT,
  STACK_PART_HIDDEN,
  STACK_PART_WEIGHTS,
  STACK_PART_THUMBNAILS
};

struct stack_part {
  enum stack_part_kind kind;
  size_t attention;  /* or the layer whose self-attention that is */
  const char *group; /* the object that it is a member of, with its neighbours of the same */
  char name[STACK_PART_NAME_SIZE];
};

/* Lists the parts that each sequence shows by itself, those of a group together. Arrays of floats
 * as base64 are not among them: these stand beside the sequences. Returns how many there are, at
 * most stack_parts_most. */
size_t stack_parts_list(const struct stack_request *r, struct stack_part *part);
size_t stack_parts_most(const struct stack_request *r);

/* The numbers that a part of a sequence has at most, and bytes of text beside them. */
size_t stack_part_numbers(const struct stack_request *r, const struct stack_part *p, size_t item);
size_t stack_part_room(const struct stack_request *r, const struct stack_part *p, size_t item);

/* Writes a part of a sequence, once all is computed: its value. */
char *stack_part_write(const struct stack_request *r, const struct stack_part *p, size_t item,
                       char *out);

#endif
