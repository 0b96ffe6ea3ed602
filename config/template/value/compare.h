/* compare: equality and order of values, and what depends on them: membership, and keys of dicts.
 */
#ifndef CONFIG_COMPARE_H
#define CONFIG_COMPARE_H

#include "config/template/value/value.h"

enum compare_operator {
  COMPARE_EQUAL,
  COMPARE_UNEQUAL,
  COMPARE_LESS,
  COMPARE_LESS_EQUAL,
  COMPARE_GREATER,
  COMPARE_GREATER_EQUAL,
  COMPARE_IN,
  COMPARE_NOT_IN
};

/* Are two values equal? False after a failure, too: nested too deeply, or too many steps. */
bool compare_equal(struct bounds *b, struct value x, struct value y);

/* Evaluates an operator but for IN and NOT_IN. False after a failure: values without an order. */
bool compare_values(struct bounds *b, enum compare_operator is, struct value x, struct value y,
                    bool *holds);

/* Puts a value into a dict or namespace of the template's, or replaces the value of its key. False
 * after a failure: a key that cannot be one, for example. */
bool compare_put(struct bounds *b, struct value dict, struct value key, struct value value);

/* The value of a key of a dict or namespace. MISSING: there is none, or after a failure. */
struct value compare_find(struct bounds *b, struct value dict, struct value key);

#endif
