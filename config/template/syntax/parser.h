/* parser: where the reading of a template is, for both kinds of what is read. */
#ifndef CONFIG_PARSER_H
#define CONFIG_PARSER_H

#include "config/template/syntax/lexeme.h"
#include "config/template/syntax/node.h"

struct parser {
  struct bounds *b;
  const struct lexeme *next;     /* not yet read */
  size_t loops;                  /* around what is read, of the same macro */
  struct node_parameters *macro; /* the innermost macro, or NULL */
};

/* Fails at the next lexeme, or at another place. Return NULL. */
void *parser_fail(struct parser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void *parser_fail_at(struct parser *p, size_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A new node at a place. NULL after a failure. */
struct node *parser_node(struct parser *p, enum node_kind kind, size_t at);
bool parser_add(struct parser *p, struct node *to, struct node *item); /* false if item is NULL */

bool parser_is(const struct parser *p, enum lexeme_kind kind);
bool parser_is_name(const struct parser *p, const char *name);
bool parser_take(struct parser *p, enum lexeme_kind kind); /* if it is next */
bool parser_take_name(struct parser *p, const char *name);
bool parser_expect(struct parser *p, enum lexeme_kind kind, const char *what); /* or fails */
bool parser_expect_name(struct parser *p, struct value *name);                 /* any name */

#endif
