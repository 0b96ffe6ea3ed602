/* arguments: what a filter, test, method, function or macro is called with. */
#ifndef CONFIG_ARGUMENTS_H
#define CONFIG_ARGUMENTS_H

#include "config/template/value/value.h"

struct arguments {
  const struct value *position;
  size_t positions;
  const struct value *name, *named; /* [names] */
  size_t names;
};

enum { ARGUMENTS_MOST = 6 };

/* The parameters of what is called. A name that no argument can have, "-", is one by position. */
struct arguments_wanted {
  const char *name[ARGUMENTS_MOST];
  size_t least; /* how many are required */
};

/* Puts each argument at its parameter's place; MISSING: it is absent. False after a failure; `what`
 * is what is called, for the message. */
bool arguments_bind(struct bounds *b, const char *what, const struct arguments *given,
                    const struct arguments_wanted *wanted, struct value out[ARGUMENTS_MOST]);

/* An argument that must be of a kind. `otherwise` if it is absent. Fail with a message. */
bool arguments_integer(struct bounds *b, struct value v, int64_t otherwise, int64_t *out);
bool arguments_text(struct bounds *b, struct value v, struct value otherwise, struct value *out);

static inline bool arguments_truth(struct value v, bool otherwise) {
  return v.kind ? value_truth(v) : otherwise;
}

#endif
