/* stack_request: a request to a whole model as it was meant: the core's run, and what is asked of
 * the answer. */
#ifndef SERVER_STACK_REQUEST_H
#define SERVER_STACK_REQUEST_H

#include "core/attention/trace.h"
#include "core/stack/stack.h"
#include "server/body/body_v2.h"

/* The targets of one item. */
struct stack_scored {
  size_t count; /* at least 1 */
  size_t row;   /* of the run, which has the first one */
};

struct stack_request {
  struct stack_run *run;
  const struct stack_form *form; /* of what it runs through */
  bool unbatched;      /* one item, which is no batch: the answer loses its first dimension */
  bool base64;         /* arrays of floats as base64 */
  bool rectangular;    /* all items have `widest` rows */
  size_t widest;       /* rows of the longest item as it came, before valid_lens: those of each item
                          in an answer that is a rectangle */
  const int32_t *lens; /* [items] the rows that each has */

  /* Of a request to score. */
  struct stack_scored *scored; /* [items]; NULL: it encodes */
  const int32_t *target_lens;  /* [items] the targets that each has */
  size_t targets;              /* of all items */
  size_t most_targets;         /* of an item as it came, before target_lens */
  bool targets_alike;          /* all items have `most_targets` */
  size_t top;                  /* the likeliest so many tokens are shown of each target */

  /* Of a request to generate: `generates` says that it is one. Each text has `returns` sequences,
   * one after the other. */
  bool generates, stream;
  size_t returns, texts;
  size_t text_tokens; /* of all texts */
  struct stack_generation generation;

  const struct trace *trace; /* that a layer of the run makes; or NULL */
  struct body_v2_asked v2;
};

/* Does the answer have a form as safetensors? */
static inline bool stack_request_has_binary(const struct stack_request *r) {
  return !r->trace && !r->generates;
}

#endif
