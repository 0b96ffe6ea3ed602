/* expression: reads an expression of a template. */
#ifndef CONFIG_EXPRESSION_H
#define CONFIG_EXPRESSION_H

#include "config/template/syntax/parser.h"

/* All return NULL after a failure. */
struct node *expression_one(struct parser *p);

/* Expressions between commas are a tuple. `conditions`: "x if y" is an expression. `end`: a name
 * that ends the tuple after a comma, or NULL. */
struct node *expression_tuple(struct parser *p, bool conditions, const char *end);

/* A target of an assignment: names, between commas or in parentheses, or NAME.ATTRIBUTE. */
struct node *expression_target(struct parser *p, bool attributes, const char *end);

/* Filters after "|"; `started`: the first name is next. `x` is what they filter, or NULL. */
struct node *expression_filters(struct parser *p, struct node *x, bool started);

#endif
