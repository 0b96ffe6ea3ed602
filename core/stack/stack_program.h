/* stack_program: the programs of a stack: of a forward pass, of a round of a generating run, and of
 * a run that measures heads. */
#ifndef CORE_STACK_PROGRAM_H
#define CORE_STACK_PROGRAM_H

#include "core/forward/forward.h"

/* Lists the steps of all programs, once all layers are made, and finds out how much scratch they
 * need. */
enum status stack_program_list(struct stack *s, struct error *e);

#endif
