/* stack_side: one of the stacks that a request goes through: what is asked of its parts, its run,
 * and how its rows lie.
 *
 * Most requests have one side. Where a model of an encoder and a decoder scores or generates, or
 * its decoder is fed by /v2, its encoder is the source of the other one. */
#ifndef SERVER_STACK_SIDE_H
#define SERVER_STACK_SIDE_H

#include "core/stack/stack.h"

struct stack_side {
  const struct stack *stack;     /* NULL: the request does not go through such a one */
  const struct stack_form *form; /* of the stack */
  bool embedded;                 /* hidden state 0 is asked for */
  struct stack_wish *wish;       /* [attentions] */

  /* Once the request is checked. */
  struct stack_run *run; /* knows of the wishes where there are any */
  bool rectangular;      /* all items have `widest` rows */
  size_t widest;         /* rows of the longest item as it came, before lengths: those of each item
                            in an answer that is a rectangle */
  const int32_t *lens;   /* [items] the rows that each has */
};

enum { STACK_SIDES = 2 };

/* Is an attention, by its number, one across to the source? */
static inline bool stack_side_is_across(const struct stack_side *s, size_t attention) {
  return attention >= s->form->layers;
}

static inline size_t stack_side_layer(const struct stack_side *s, size_t attention) {
  return attention % s->form->layers;
}

static inline const struct layer_shape *stack_side_shape(const struct stack_side *s,
                                                         size_t attention) {
  return stack_side_is_across(s, attention) ? &s->form->cross : &s->form->self;
}

/* The attentions in the order in which answers have them: layer by layer. */
static inline size_t stack_side_in_order(const struct stack_side *s, size_t place) {
  const size_t sorts = s->form->cross.heads ? 2 : 1;
  return place % sorts * s->form->layers + place / sorts;
}

/* How a name ends: "decoder.3" and this. */
static inline const char *stack_side_ending(const struct stack_side *s, size_t attention) {
  return stack_side_is_across(s, attention) ? ".cross" : ".self";
}

#endif
