/* rfc8259: the grammar of JSON, rule by rule, to judge those who read it.
 *
 * It knows nothing of what it judges. Beyond RFC 8259 it is strict where attend says it is: text is
 * UTF-8, and an escaped surrogate stands in a pair. */
#ifndef TESTS_RFC8259_H
#define TESTS_RFC8259_H

#include <stdbool.h>
#include <stddef.h>

struct rfc8259 {
  bool json;
  size_t offset; /* else: of the first byte that no JSON text can have there, or the text's end;
                    half a surrogate pair is seen when its four digits are there */
  size_t depth;  /* the most brackets open at once before that */
};

/* One value with blanks around it. The C stack bounds how deep it may be nested: some 20 000. */
struct rfc8259 rfc8259_check(const char *text, size_t size);

#endif
