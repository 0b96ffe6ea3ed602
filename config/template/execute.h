/* execute: runs the statements of a template, which write its text. */
#ifndef CONFIG_EXECUTE_H
#define CONFIG_EXECUTE_H

#include "config/template/evaluate.h"

/* Runs statements from the first one on, with the variables of r; sets what r calls. False after a
 * failure. */
bool execute_template(struct evaluate *r, const struct node *first);

#endif
