/* whole_tied: the copies of a table that should be one. */
#ifndef CONFIG_WHOLE_TIED_H
#define CONFIG_WHOLE_TIED_H

#include "config/build/whole_plan.h"

/* Compares the copies of the table of tokens in the file, the matrix of logits where that is one,
 * too, number by number. STATUS_CONFIG naming
 * one that differs; the errors of reading. */
enum status whole_tied_check(const struct whole_plan *p, struct error *e);

#endif
