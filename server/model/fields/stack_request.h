/* stack_request: a checked request to a model: the core's runs, and what the response contains. It
 * lives in the request's arena. */
#ifndef SERVER_STACK_REQUEST_H
#define SERVER_STACK_REQUEST_H

#include "config/build/whole.h"
#include "core/attention/trace.h"
#include "server/model/fields/stack_side.h"
#include "server/v2/body_v2.h"

/* How the tokens of a text become entities: the aggregation strategies of Hugging Face
 * transformers.
 */
enum stack_group {
  STACK_GROUP_NONE,    /* each token is one, with its class */
  STACK_GROUP_SIMPLE,  /* neighbors of one class are one: "B-" begins another */
  STACK_GROUP_FIRST,   /* the same of words, which have the class of their first token, */
  STACK_GROUP_AVERAGE, /* or of the means of their tokens' scores, */
  STACK_GROUP_MAX      /* or of their token with the greatest score */
};

enum { STACK_ANSWER_MAX = 512 }; /* most tokens of an answer that a request may allow */

/* A part of a context, which is an item of the run: after the question, and before the special
 * tokens at the end. */
struct stack_window {
  size_t item;       /* the question of the request */
  size_t begin, end; /* its tokens among those of the request, */
  size_t at;         /* and the first one's place in the context */
};

/* The windows of all contexts, those of a question one after the other. */
struct stack_windows {
  struct stack_window *window; /* [count] */
  size_t count;
  size_t top;        /* most answers to each question */
  size_t max_answer; /* most tokens of an answer */
  bool alone;        /* one question, not in a list */
};

/* The targets of one item. */
struct stack_scored {
  size_t count; /* at least 1 */
  size_t row;   /* the row of the run that has the first target; unused by a request to fill */
  size_t first; /* targets of all items before it */
};

struct stack_request {
  struct stack_side source; /* what main attends to across; it may have no stack */
  struct stack_side main;   /* what encodes, scores or generates */
  bool unbatched; /* whether it is one item without a batch: arrays of the response have no
                     first dimension */
  bool base64;    /* whether arrays of floats are base64 */
  bool stream;    /* whether results are sent while they are computed */

  /* Multi-vector embeddings. */
  struct stack_kept *kept; /* [items]; NULL: there are none */
  int32_t *vector_lens;    /* [items] vectors of each */
  int32_t *positions;      /* [vectors] the row of each in its item */
  size_t most_kept;        /* vectors of an item */

  /* A request to score. */
  struct stack_scored *scored; /* [items]; NULL: the request does not score */
  const int32_t *target_lens;  /* [items] valid targets of each */
  size_t targets;              /* of all items */
  size_t most_targets;         /* of the longest item before target_lens cuts it */
  bool targets_alike;          /* whether all items have `most_targets` */
  size_t top;                  /* how many of the most likely tokens each target shows */
  size_t logit_lens;           /* the same for each hidden state in its place */

  /* A request to fill has targets, too: any token in the places of the ones to be filled. */
  const struct whole *fills_of; /* the model; NULL: the request does not fill */
  const int32_t *filled;        /* [targets] the position of each target in its item */

  /* A request to generate. Each text has `each` sequences, one after the other; the first `returns`
   * of them are returned. */
  bool generates;
  bool search; /* whether the steps of the beam search are returned */
  size_t each, returns, texts;
  size_t text_tokens; /* of all texts and their sources */
  struct stack_generation generation;
  struct stack_detokenizer *detokenizer; /* makes text of the tokens; NULL: no text is needed */

  /* An ablation of heads: how much the scores or outputs lose without each. */
  bool weighs;
  struct stack_ablation ablation;

  const struct tokenizer *main_tokenizer; /* of the model; NULL: it has none */
  const struct tokenize_texts *tokenized; /* the tokens of its texts; NULL: it has no texts */
  bool tells_tokens;                      /* whether they are returned */
  const struct trace *trace;              /* the trace that a layer of a run writes; or NULL */
  const struct whole *classes_of; /* the model whose classes the outputs are; NULL: no classes */
  bool grouped;                   /* whether the response has entities instead of outputs */
  enum stack_group group;
  const struct stack_windows *windows; /* of a request for answers; NULL: it is none */
  struct body_v2_asked v2;
};

/* Its sides by number: 0 is the source. Either may have no stack. */
static inline const struct stack_side *stack_request_side(const struct stack_request *r,
                                                          unsigned number) {
  return number == 0 ? &r->source : &r->main;
}

/* Prepares its runs, in the arena. Fails as stack_prepare does. */
static inline enum status stack_request_prepare(struct stack_request *r, struct arena *a,
                                                struct error *e) {
  if (r->weighs &&
      stack_ablation_init(&r->ablation, r->main.stack, r->main.run, r->source.stack, a, e))
    return e->status;
  if (r->source.run && stack_prepare(r->source.stack, r->source.run, a, e)) return e->status;
  return stack_prepare(r->main.stack, r->main.run, a, e);
}

/* The run to submit. With two runs it is the source's, which main's follows. */
static inline struct run *stack_request_run(const struct stack_request *r) {
  return r->source.run ? &r->source.run->run : &r->main.run->run;
}

/* The rows of the source that a sequence or an item attends to. */
static inline size_t stack_request_source_rows(const struct stack_request *r, size_t item) {
  const size_t text = r->generates ? item / r->each : item;
  return r->source.run ? r->source.run->geometry.item[text].q : 0;
}

/* Whether its outputs are scores of the first and the last token of an answer. */
static inline bool stack_request_has_spans(const struct stack_request *r) {
  return r->classes_of && whole_classes(r->classes_of, WHOLE_HEAD_SPANS) > 0;
}

/* Whether the response has a form as safetensors. */
static inline bool stack_request_has_binary(const struct stack_request *r) {
  return !r->trace && !r->generates && !r->weighs && !r->tells_tokens && !r->fills_of &&
         !r->main.run->want_sparse && !r->grouped && !stack_request_has_spans(r);
}

#endif
