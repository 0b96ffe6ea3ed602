/* stack_run: one run of a stack: the request, and the memory of its results.
 *
 * The caller fills the request, in memory that stays until the run is over; stack_prepare
 * (core/stack/stack.h) reserves the results in the request's arena. A run belongs to one thread
 * until it is given to the pool. */
#ifndef CORE_STACK_RUN_H
#define CORE_STACK_RUN_H

#include "core/attention/call.h"
#include "core/base/spare.h"
#include "core/run/run.h"

/* How the outputs [n, d] of an item become one vector. */
enum stack_pool {
  STACK_POOL_NONE, /* they stay rows */
  STACK_POOL_CLS,  /* row 0 */
  STACK_POOL_MEAN,
  STACK_POOL_MAX,
  STACK_POOL_LAST,          /* the last row */
  STACK_POOL_MEAN_SQRT_LEN, /* the sum, over the root of the number of rows */
  STACK_POOL_WEIGHTED_MEAN, /* row 0 counts once, row 1 twice, and so on */
  STACK_POOL_POOLER,        /* only of a form with a pooler */
  STACK_POOL_CLASSES        /* the scores of the form's classes: never cut or normalized */
};

/* The names of the poolings, without STACK_POOL_CLASSES; then NULL. */
extern const char *const stack_pool_names[];

/* Does the vector depend on all rows of an item, and not on one of them? */
static inline bool stack_pool_is_of_all(enum stack_pool pool) {
  return pool == STACK_POOL_MEAN || pool == STACK_POOL_MAX || pool == STACK_POOL_MEAN_SQRT_LEN ||
         pool == STACK_POOL_WEIGHTED_MEAN;
}

/* The function that is applied to the scores of an item's classes. */
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

/* The logit lens of one hidden state: the most likely tokens of each row that has a target, in the
 * order of the rows, if the last norm, the scale and the matrix of the output are applied to the
 * state. */
struct stack_lens {
  int32_t *token;         /* [targets, lens_count] the most likely first, of equals the lower */
  float *log_probability; /* [targets, lens_count] */
};

struct stack_run {
  struct run run; /* the first member */

  /* The request. Of the geometry: items, item with q = k = n and q_row = k_row, and q_rows =
   * k_rows. An item may have no rows, unless it is pooled. */
  struct geometry geometry;
  const int32_t *tokens;         /* [rows], within the vocabulary; or NULL: */
  const float *embeddings;       /* [rows, d] */
  const int32_t *types;          /* [rows], within the types; NULL: all 0, or there are none */
  bool embedded;                 /* show hidden state 0, which enters the first layer */
  const struct stack_wish *wish; /* [attentions]; NULL: nothing is requested of any of them */
  enum stack_pool pool;
  const size_t *left_out;       /* [items] how many first rows of an item its mean or maximum
                                   ignores; other rows follow. NULL: none */
  enum stack_function function; /* of classes */
  size_t dimensions;            /* of a pooled item: how many first numbers are kept; 0: all */
  bool normalize;               /* a pooled item then gets length 1, unless all its numbers are 0 */
  const int32_t *targets; /* [rows] of a stack with an output: the token whose log probability is
                             requested, or -1; NULL: of no row */
  size_t top;             /* how many of the most likely tokens each row with a target lists */
  size_t logit_lens;      /* how many each hidden state lists of these rows; 0: not requested */
  bool want_logits;       /* of all rows of a stack with an output; then without targets */
  bool dense_left;        /* pooled items do not go through the form's dense layers */
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
  float *outputs;               /* [rows, d], or pooled [items, output_size] */
  size_t output_size;           /* d; pooled, the size of the dense layers' vector, cut to
                                   `dimensions`; or the number of classes */
  float *rows;                  /* [rows, d] the outputs before pooling; unpooled, `outputs` */
  float *embedding;             /* hidden state 0, [rows, d]; NULL: not requested */
  float *log_probabilities;     /* [rows], 0 where there is no target; NULL: there are none */
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

#endif
