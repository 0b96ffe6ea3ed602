/* print: values as Python's str(), repr() and json.dumps() write them. */
#ifndef CONFIG_PRINT_H
#define CONFIG_PRINT_H

#include "config/template/value/buffer.h"

/* Append the value. False after a failure: a value whose text Python makes of an address. */
bool print_value(struct bounds *b, struct buffer *to, struct value v);       /* str() */
bool print_represented(struct bounds *b, struct buffer *to, struct value v); /* repr() */

/* str() of a value, as a text value: itself if it is a text. */
struct value print_text(struct bounds *b, struct value v);

/* A real in the fewest digits that read back the same. */
bool print_real(struct bounds *b, struct buffer *to, double real);

struct print_json {
  const char *indent;                         /* of a level; NULL: everything is on one line */
  struct value item_separator, key_separator; /* texts; MISSING: the usual ones */
  bool ascii, sorted;
};

/* Appends json.dumps(). False after a failure: a value that JSON does not have. */
bool print_json(struct bounds *b, struct buffer *to, struct value v, const struct print_json *how);

#endif
