/* whole_heads: the tensors of the layers after a model's stacks: the logits of a decoder, the head
 * for masked tokens, dense layers and the weights of tokens, of which some have their own files. */
#ifndef CONFIG_WHOLE_HEADS_H
#define CONFIG_WHOLE_HEADS_H

#include "config/build/plan/whole_plan.h"

/* Finds them, once the parts of the stacks are known. Sizes are not compared yet. STATUS_CONFIG. */
enum status whole_heads_find(struct whole_plan *p, struct error *e);

#endif
