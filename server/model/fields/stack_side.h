/* stack_side: one of the stacks that a request goes through: what it returns of the stack's parts,
 * its run, and the shape of its items.
 *
 * Most requests have one side. An encoder-decoder model has two if it scores or generates, or if
 * its decoder is fed by /v2: the encoder is the source of the decoder. */
#ifndef SERVER_STACK_SIDE_H
#define SERVER_STACK_SIDE_H

#include "core/stack/stack.h"

struct stack_side {
  const struct stack *stack; /* NULL: the request does not use this side */
  const struct stack_form *form;
  bool embedded;           /* whether hidden state 0 is returned */
  struct stack_wish *wish; /* [attentions] */

  /* From the check of the request on. */
  struct stack_run *run; /* it has the wishes if there are any */
  bool rectangular;      /* whether all items have `widest` rows */
  size_t widest;       /* rows of the longest item before valid_lens cuts it: the rows of each item
                          in a response with rectangular arrays */
  const int32_t *lens; /* [items] valid rows of each */
};

enum { STACK_SIDES = 2 };

/* Attentions have numbers: the self-attention of each layer, then the cross-attention of each. */
static inline bool stack_side_is_across(const struct stack_side *s, size_t attention) {
  return attention >= s->form->layers;
}

static inline size_t stack_side_layer(const struct stack_side *s, size_t attention) {
  return attention % s->form->layers;
}

static inline const struct layer_shape *stack_side_shape(const struct stack_side *s,
                                                         size_t attention) {
  return stack_side_is_across(s, attention) ? &s->form->cross : &s->form->kind->self;
}

/* The attention at a place of the order that responses have: layer by layer. */
static inline size_t stack_side_in_order(const struct stack_side *s, size_t place) {
  const size_t sorts = s->form->cross.heads ? 2 : 1;
  return place % sorts * s->form->layers + place / sorts;
}

/* The end of an attention's name, after "decoder.3". */
static inline const char *stack_side_ending(const struct stack_side *s, size_t attention) {
  return stack_side_is_across(s, attention) ? ".cross" : ".self";
}

#endif
