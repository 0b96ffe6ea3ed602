/* evaluate: the value of an expression, and the variables that it names. */
#ifndef CONFIG_EVALUATE_H
#define CONFIG_EVALUATE_H

#include "config/template/call/arguments.h"
#include "config/template/call/format.h"
#include "config/template/syntax/node.h"
#include "config/template/value/buffer.h"

struct evaluate_variable {
  struct value name, value; /* value MISSING: it was removed */
  struct evaluate_variable *next;
};

/* The variables of a block; those of the blocks around it are visible, too. */
struct evaluate_scope {
  struct evaluate_scope *outer;
  struct evaluate_variable *first;
};

/* A template while it is rendered. */
struct evaluate {
  struct bounds b;
  const json_t *variables; /* the outermost ones */
  const struct format_time *now;
  struct evaluate_scope *scope;
  size_t kept;        /* how often a macro or a loop kept a scope */
  struct buffer *out; /* where statements write */
  /* Call a macro, and a recursive loop; set by execute.c. */
  struct value (*call_macro)(struct evaluate *r, struct value macro, const struct arguments *a);
  struct value (*call_loop)(struct evaluate *r, struct value loop, const struct arguments *a);
};

/* The value of an expression. VALUE_FAILED after a failure. */
struct value evaluate_expression(struct evaluate *r, const struct node *n);

/* Calls the value of an expression with its arguments; `caller`, if it is not MISSING, is one more,
 * of that name. */
struct value evaluate_call(struct evaluate *r, const struct node *call, struct value caller);

/* Applies filters to a value that no expression has: that of a block. NULL: none. */
struct value evaluate_filters(struct evaluate *r, const struct node *filters, struct value x);

/* Enters a new scope; leaving it is to set r->scope to its outer one. */
bool evaluate_enter(struct evaluate *r);

/* Removes all variables of the innermost scope, which nothing has kept. */
void evaluate_clear(struct evaluate *r);

/* Sets a variable of the innermost scope. */
bool evaluate_set(struct evaluate *r, struct value name, struct value value);

#endif
