/* lexeme: a template cut into data, tags, names, literals and operators.
 *
 * Blanks around tags are gone afterwards, as Jinja has it with trim_blocks, lstrip_blocks and
 * without keep_trailing_newline. */
#ifndef CONFIG_LEXEME_H
#define CONFIG_LEXEME_H

#include "config/template/value/value.h"

enum lexeme_kind {
  LEXEME_END, /* of the template */
  LEXEME_DATA,
  LEXEME_VARIABLE_BEGIN,
  LEXEME_VARIABLE_END,
  LEXEME_BLOCK_BEGIN,
  LEXEME_BLOCK_END,
  LEXEME_NAME,
  LEXEME_TEXT,
  LEXEME_NUMBER,
  LEXEME_ADD, /* the operators, in the order of their table in lexeme.c */
  LEXEME_SUBTRACT,
  LEXEME_FLOOR_DIVIDE,
  LEXEME_DIVIDE,
  LEXEME_POWER,
  LEXEME_MULTIPLY,
  LEXEME_REMAINDER,
  LEXEME_CONCATENATE,
  LEXEME_EQUAL,
  LEXEME_UNEQUAL,
  LEXEME_LESS_EQUAL,
  LEXEME_LESS,
  LEXEME_GREATER_EQUAL,
  LEXEME_GREATER,
  LEXEME_ASSIGN,
  LEXEME_PARENTHESIS,
  LEXEME_PARENTHESIS_END,
  LEXEME_BRACKET,
  LEXEME_BRACKET_END,
  LEXEME_BRACE,
  LEXEME_BRACE_END,
  LEXEME_DOT,
  LEXEME_COLON,
  LEXEME_PIPE,
  LEXEME_COMMA,
  LEXEME_SEMICOLON
};

struct lexeme {
  enum lexeme_kind kind;
  size_t at;          /* byte of the source */
  struct value value; /* of data, names and literals; a name occurs in one place of memory */
};

/* Cuts b->source, whose lines end with \n alone, into lexemes, the last of which is the end. NULL
 * after a failure. */
struct lexeme *lexeme_all(struct bounds *b);

/* Names that the program sets itself; a template's names of this text are at the same place. */
enum lexeme_word { LEXEME_LOOP, LEXEME_VARARGS, LEXEME_KWARGS, LEXEME_CALLER };
struct value lexeme_word(enum lexeme_word word);

/* How a message calls a lexeme. */
const char *lexeme_name(const struct lexeme *l);

#endif
