/* encode_request: a request to encode as it was meant: the core's run, and what is asked of the
 * answer. */
#ifndef SERVER_ENCODE_REQUEST_H
#define SERVER_ENCODE_REQUEST_H

#include "core/attention/trace.h"
#include "core/stack/stack.h"
#include "server/body/body_v2.h"

struct encode_request {
  struct stack_run *run;
  const struct stack_form *form; /* of what it runs through */
  bool unbatched;      /* one item, which is no batch: the answer loses its first dimension */
  bool base64;         /* arrays of floats as base64 */
  bool rectangular;    /* all items have `widest` rows */
  size_t widest;       /* rows of the longest item as it came, before valid_lens: those of each item
                          in an answer that is a rectangle */
  const int32_t *lens; /* [items] the rows that each has */
  const struct trace *trace; /* that a layer of the run makes; or NULL */
  struct body_v2_asked v2;
};

/* Does the answer have a form as safetensors? */
static inline bool encode_request_has_binary(const struct encode_request *r) { return !r->trace; }

#endif
