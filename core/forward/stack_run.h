/* stack_run: one run of a stack: the request, and the memory of its results.
 *
 * The caller fills the request, in memory that stays until the run is over; stack_prepare
 * (core/stack/stack.h) reserves the results in the request's arena. A run belongs to one thread
 * until it is given to the pool. */
#ifndef CORE_STACK_RUN_H
#define CORE_STACK_RUN_H

#include "core/attention/call.h"
#include "core/base/spare.h"
#include "core/forward/stack_form.h"
#include "core/run/run.h"

/* The layers that each vector goes through, in this order: a set of these. */
enum stack_after {
  STACK_AFTER_POOLER = 1 << 0, /* only of a form with a pooler, which may require tokens */
  STACK_AFTER_DENSE = 1 << 1,  /* the form's dense layers, if it has any */
  STACK_AFTER_CLASSES = 1 << 2 /* the form's classifier: its scores are not cut or normalized */
};

/* The vectors, and what they go through, by the names that requests have for them. */
enum stack_pool {
  STACK_POOL_NONE, /* each row, and nothing follows */
  STACK_POOL_CLS,  /* the first row; the dense layers follow this one and all others */
  STACK_POOL_MEAN,
  STACK_POOL_MAX,
  STACK_POOL_LAST,
  STACK_POOL_MEAN_SQRT_LEN,
  STACK_POOL_WEIGHTED_MEAN,
  STACK_POOL_POOLER, /* the first row, which goes through the pooler; or the pooler's own row */
  /* The embeddings of those from here on are not one dense vector. */
  STACK_POOL_SPARSE, /* each row, and weights of tokens besides: only of a form with an output */
  STACK_POOL_MULTI_VECTOR, /* each row, which goes through dense layers for rows */
  STACK_POOLS
};

extern const char *const stack_pool_names[]; /* then NULL */

/* The function that is applied to the scores of classes. */
enum stack_function {
  STACK_FUNCTION_NONE,
  STACK_FUNCTION_SOFTMAX, /* e^x over the sum of that over all classes */
  STACK_FUNCTION_SIGMOID  /* 1 / (1 + e^-x) */
};

enum stack_weights {
  STACK_WEIGHTS_NONE,
  STACK_WEIGHTS_PER_HEAD,
  STACK_WEIGHTS_AVERAGE,
  STACK_WEIGHTS_THUMBNAILS
};

/* The request to one attention, and to the layer whose self-attention it is. */
struct stack_wish {
  enum stack_weights weights;
  size_t thumbnail;       /* rows and columns of a thumbnail, at most; above 0 */
  const float *head_mask; /* [H] or NULL */
  bool hidden;            /* the layer's outputs: hidden state l + 1 of layer l; not across */
  struct trace *trace;    /* of one query, or NULL (core/attention/trace.h) */
  bool input;             /* the rows that it reads, after its norm; across its queries */
  bool ablation;          /* the importance of each head, of a run that measures it */
};

/* The results that one attention shows, and its layer. Each is NULL where it was not requested. The
 * keys k of an item are its own rows; across, the rows of its source. Of a run that generates, the
 * rows are those of the generated tokens: the weights are [H, most, keys] or [most, keys], the
 * thumbnails [H, min(thumbnail, tokens), min(thumbnail, keys of the last row)]; zeros follow the
 * last generated row, and the last key that a row attends to. */
struct stack_shown {
  float *weights;              /* per item at weights_at: [H, n, k], or [n, k] the average */
  const size_t *weights_at;    /* [items] */
  uint8_t *thumbnails;         /* per item at thumbnails_at: [H, r, c], r = min(thumbnail, n), c =
                                  min(thumbnail, k) */
  const size_t *thumbnails_at; /* [items] */
  float *hidden;               /* [rows, d] */
  float *input;                /* [rows, d] */
};

/* Weights of tokens, of each item those above 0 by ascending tokens. */
struct stack_weights_of_tokens {
  int32_t *token;
  float *weight;
  size_t *at;    /* [items] where an item's begin */
  size_t *count; /* [items] how many an item has */
};

/* The logit lens of one hidden state: the most likely tokens of each row that has a target, in the
 * order of the rows, if the last norm, the scale and the matrix of the output are applied to the
 * state. */
struct stack_lens {
  int32_t *token;         /* [targets, lens_count] the most likely first, of equals the lower */
  float *log_probability; /* [targets, lens_count] */
};

/* The vectors of one item, if rows are vectors. */
struct stack_kept {
  size_t count; /* at least 1 */
  size_t first; /* vectors of all items before it */
};

/* The similarity of each item to one of them, the query: MaxSim. */
struct stack_match {
  size_t query;
  const struct stack_kept *of; /* [items] */
};

struct stack_run {
  struct run run; /* the first member */

  /* The request. Of the geometry: items, item with q = k = n and q_row = k_row, q_rows = k_rows,
   * and lens, unless it generates. An item may have no rows, unless it is pooled. */
  struct geometry geometry;
  const int32_t *tokens;         /* [rows], within the vocabulary; or NULL: */
  const float *embeddings;       /* [rows, d] */
  const int32_t *types;          /* [rows], within the types; NULL: all 0, or there are none */
  bool embedded;                 /* show hidden state 0, which enters the first layer */
  const struct stack_wish *wish; /* [attentions]; NULL: nothing is requested of any of them */
  enum stack_vectors vectors;
  unsigned after;     /* a set of enum stack_after */
  const size_t *kept; /* [keeps] the rows of the run whose vectors are made, rising, if
                         each row is one; NULL: all rows */
  size_t keeps;
  const struct stack_match *match; /* NULL: similarities are not requested */
  const size_t *left_out;          /* [items] how many first rows of an item its mean or maximum
                                      ignores; other rows follow. NULL: none */
  enum stack_function function;    /* of classes */
  size_t dimensions;               /* of a vector: how many first numbers are kept; 0: all */
  bool normalize;                  /* a vector then gets length 1, unless all its numbers are 0 */
  const int32_t *targets; /* [rows] of a stack with an output: the token whose log probability is
                             requested, or -1; NULL: of no row */
  size_t top;             /* how many of the most likely tokens each row with a target lists */
  size_t logit_lens;      /* how many each hidden state lists of these rows; 0: not requested */
  bool want_sparse;       /* weights of tokens, of a stack that has them; no item is empty. If rows
                             weigh their own tokens, there are tokens */
  const int32_t *special; /* [specials] tokens that have no weight then */
  size_t specials;
  bool want_logits;                /* of all rows of a stack with an output; then without targets */
  struct stack_ablation *ablation; /* the importance of heads is measured, of a run that does not
                                      generate, and nothing else is shown (core/inspect/ablation.h);
                                      or NULL */
  struct stack_generation *generation; /* tokens are generated (core/generate/generation.h), of a
                                          causal stack with an output. No item is empty, there are
                                          tokens; nothing is pooled, scored or traced. Or NULL */
  /* The run of another stack, whose outputs are attended to by cross-attentions. It is prepared
   * before this one, shows rows, and becomes the run that is to be computed: this one follows it
   * (run.then). Its items are this run's; or, of a run that generates, its prompts. */
  struct stack_run *source;

  /* The response, allocated when the run is prepared, and written by the run alone. */
  float *outputs;           /* [stack_vectors, output_size] */
  size_t output_size;       /* d; after the dense layers that of their vector, cut to
                               `dimensions`; or the number of classes */
  float *rows;              /* [rows, d] of the last layer: the vectors are made of them. They
                               are `outputs` if each is a vector as it is */
  float *embedding;         /* hidden state 0, [rows, d]; NULL: not requested */
  float *log_probabilities; /* [rows], 0 where there is no target; NULL: there are none */
  float *similarity;        /* [items], of the query itself not set; NULL: there are none */
  struct stack_weights_of_tokens sparse;
  float *logits;                /* [rows, V]; NULL: not requested */
  int32_t *top_tokens;          /* [rows, top_count] the most likely first, of equals the lower */
  float *top_log_probabilities; /* [rows, top_count] */
  size_t top_count;             /* `top`, or as many as there are tokens */
  struct stack_lens *lens;      /* [L + 1] of hidden state l; NULL: not requested */
  size_t lens_count;            /* `logit_lens`, or as many as there are tokens */
  struct stack_shown *shown;    /* [attentions]; NULL where there are no wishes */
  struct spare left;            /* memory that is not read any more once the run is computed */

  /* The stack's own. */
  struct stack_space *space;
  size_t each;              /* items of the run for one item of the request: above 1 where several
                               sequences of a prompt are generated */
  struct geometry *further; /* [kinds - 1] `geometry` for layers of further kinds, with windows of
                               their own */
  struct geometry across;   /* of the calls across: its keys are the rows of the source */
  struct call call[];       /* [attentions] */
};

enum stack_vectors stack_pool_vectors(enum stack_pool pool);

/* Are the embeddings of this pool one dense vector for each item, or each row? */
static inline bool stack_pool_is_dense(enum stack_pool pool) { return pool < STACK_POOL_SPARSE; }

/* Sets the vectors of a run, and what they go through. */
void stack_set_pool(struct stack_run *r, enum stack_pool pool);

/* Is each row of an item a vector, and not the item one? */
static inline bool stack_has_rows(const struct stack_run *r) {
  return r->vectors == STACK_VECTORS_EACH;
}

/* The row of a vector, if rows are vectors. */
static inline size_t stack_row_of(const struct stack_run *r, size_t vector) {
  return r->kept ? r->kept[vector] : vector;
}

/* Is anything made of the rows, or are they the vectors as they are? */
static inline bool stack_makes_vectors(const struct stack_run *r) {
  return !stack_has_rows(r) || r->kept || r->after || r->normalize;
}

/* How many vectors a run makes. */
static inline size_t stack_vectors(const struct stack_run *r) {
  if (!stack_has_rows(r)) return r->geometry.items;
  return r->kept ? r->keeps : r->geometry.q_rows;
}

#endif
