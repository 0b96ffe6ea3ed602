/* arithmetic: the operators of numbers, texts and lists, with Python's results. */
#ifndef CONFIG_ARITHMETIC_H
#define CONFIG_ARITHMETIC_H

#include "config/template/value/value.h"

enum arithmetic_operator {
  ARITHMETIC_ADD,
  ARITHMETIC_SUBTRACT,
  ARITHMETIC_MULTIPLY,
  ARITHMETIC_DIVIDE,
  ARITHMETIC_FLOOR_DIVIDE,
  ARITHMETIC_REMAINDER,
  ARITHMETIC_POWER
};

/* Evaluates x OPERATOR y, except for the % of a text. VALUE_FAILED after a failure: values without
 * this operator, a division by zero, an integer of more than 64 bits. */
struct value arithmetic_values(struct bounds *b, enum arithmetic_operator is, struct value x,
                               struct value y);
struct value arithmetic_negate(struct bounds *b, struct value x);
struct value arithmetic_plus(struct bounds *b, struct value x); /* +x */

/* A whole real as an integer. VALUE_FAILED after a failure: it is too large, or not finite. */
struct value arithmetic_integer(struct bounds *b, double real);

/* round() to some decimals, half to even. */
struct value arithmetic_round(struct bounds *b, struct value x, int64_t decimals);

#endif
