/* statement: reads a whole template, statements and data. */
#ifndef CONFIG_STATEMENT_H
#define CONFIG_STATEMENT_H

#include "config/template/syntax/parser.h"

/* Reads all lexemes of the parser. *first is NULL for an empty template. False after a failure. */
bool statement_all(struct parser *p, struct node **first);

#endif
