/* stack_request: a request to a whole model as it was meant: the core's runs, and what is asked of
 * the answer. */
#ifndef SERVER_STACK_REQUEST_H
#define SERVER_STACK_REQUEST_H

#include "config/build/whole.h"
#include "core/attention/trace.h"
#include "server/model/fields/stack_side.h"
#include "server/v2/body_v2.h"

/* The targets of one item. */
struct stack_scored {
  size_t count; /* at least 1 */
  size_t row;   /* of the run, which has the first one */
  size_t first; /* the targets of the items before it */
};

struct stack_request {
  struct stack_side source; /* what it attends to across, if anything: */
  struct stack_side main;   /* what encodes, scores or generates */
  bool unbatched;           /* one item, which is no batch: the answer loses its first dimension */
  bool base64;              /* arrays of floats as base64 */
  bool stream; /* of one that generates or measures heads: they come while they are computed */

  /* Of a request to score. */
  struct stack_scored *scored; /* [items]; NULL: it encodes */
  const int32_t *target_lens;  /* [items] the targets that each has */
  size_t targets;              /* of all items */
  size_t most_targets;         /* of an item as it came, before target_lens */
  bool targets_alike;          /* all items have `most_targets` */
  size_t top;                  /* the likeliest so many tokens are shown of each target */
  size_t logit_lens;           /* and so many of each hidden state in its place */

  /* Of a request to generate: `generates` says that it is one. Each text has `each` sequences, one
   * after the other, of which the first `returns` are shown. */
  bool generates;
  bool search; /* the answer has the steps of the search */
  size_t each, returns, texts;
  size_t text_tokens; /* of all texts, and of their sources */
  struct stack_generation generation;
  struct stack_detokenizer *detokenizer; /* that makes text of them; NULL: none is asked for */

  /* Of a request that measures heads: what each is worth to what would be scored or encoded. */
  bool weighs;
  struct stack_ablation ablation;

  const struct tokenize_texts *tokenized; /* what its texts have become; NULL: it has none */
  bool tells_tokens;                      /* the answer shows them */
  const struct trace *trace;              /* that a layer of a run makes; or NULL */
  const struct whole *classes_of; /* whose classes the outputs are of; NULL: they are of none */
  struct body_v2_asked v2;
};

/* Its sides, the source first; one may have no stack. */
static inline const struct stack_side *stack_request_side(const struct stack_request *r,
                                                          unsigned number) {
  return number == 0 ? &r->source : &r->main;
}

/* Prepares its runs, in the arena: see stack_prepare. */
enum status stack_request_prepare(struct stack_request *r, struct arena *a, struct error *e);

/* The run to be computed, behind which the other one comes if there are two. */
static inline struct run *stack_request_run(const struct stack_request *r) {
  return r->source.run ? &r->source.run->run : &r->main.run->run;
}

/* The rows of the source that a sequence or item attends to. */
static inline size_t stack_request_source_rows(const struct stack_request *r, size_t item) {
  const size_t text = r->generates ? item / r->each : item;
  return r->source.run ? r->source.run->geometry.item[text].q : 0;
}

/* Does the answer have a form as safetensors? */
static inline bool stack_request_has_binary(const struct stack_request *r) {
  return !r->trace && !r->generates && !r->weighs && !r->tells_tokens;
}

#endif
