/* method_text: the methods of texts. */
#ifndef CONFIG_METHOD_TEXT_H
#define CONFIG_METHOD_TEXT_H

#include "config/template/call/method.h"

const struct method_row *method_text_find(const char *name); /* NULL: there is none */

/* str.replace(), also of a filter: the first `most` occurrences, or all if it is negative. */
struct value method_text_replace(struct bounds *b, struct value text, struct value old,
                                 struct value new, int64_t most);

/* str.center(). */
struct value method_text_center(struct bounds *b, struct value text, int64_t width,
                                struct value with);

#endif
