/* stack: a whole model that can be computed: tokens in; rows, one vector of an item, and everything
 * between them out.
 *
 * A stack is immutable once all its layers are set, and shared by all threads. It holds the program
 * of its runs: such a run, once prepared, is computed by run_compute or by the pool; run_fault
 * describes its fault, by layer, part, item and row. Its matrices are always packed: a row's bits
 * depend on its item alone, whatever is computed beside it. */
#ifndef CORE_STACK_H
#define CORE_STACK_H

#include "core/stack/stack_ablation.h"
#include "core/stack/stack_form.h"
#include "core/stack/stack_generation.h"

/* Sizes and kinds come from the form, and the parameters of the embedding, the last norm, the
 * pooling and the classifier, which are copied. The sizes must agree, and all numbers are finite:
 * the caller has checked that. `form->layer` is not looked at: stack_set_layer sets the layers, in
 * their order, so that not all of them have to be in memory twice. NULL with an error if memory
 * runs out. */
struct stack *stack_new(const struct stack_form *form, struct error *e);

/* Copies (packs) the parameters of the next layer. */
enum status stack_set_layer(struct stack *s, const struct stack_layer *layer, struct error *e);
void stack_free(struct stack *s); /* NULL and half-built ones are fine */

/* Sizes and kinds as they came; the pointers to parameters mean nothing any more. */
const struct stack_form *stack_form(const struct stack *s);

bool stack_has_output(const struct stack *s); /* tokens to come can be asked for */

/* Can its runs generate? It is causal and has an output. */
bool stack_can_generate(const struct stack *s);
bool stack_has_pooler(const struct stack *s);

/* One of its attentions, for calls to it alone: of layer l number l, and its attention across
 * number L + l. It lives as long as the stack. */
const struct layer *stack_attention(const struct stack *s, size_t number);

size_t stack_scratch_bytes(const struct stack *s); /* that one thread needs */

/* The bytes of weights, tables and vectors at rest. */
size_t stack_bytes(const struct stack *s);

/* How its matrices are kept: "float32", "bfloat16", "float16" or "mixed". */
const char *stack_weights(const struct stack *s);

/* How fast one thread computes: operations in a second, and in the time in which it reads a byte of
 * weights from memory. */
struct stack_pace {
  double second_work, byte_work;
};

/* Measures it with the stack's own matrices, some ten milliseconds. If they are so small that
 * caches hold them, `pace` stays as it is. */
void stack_measure_pace(const struct stack *s, struct stack_pace *pace);

/* --- runs --- */

/* How the outputs [n, d] of an item become one vector. */
enum stack_pool {
  STACK_POOL_NONE, /* they do not */
  STACK_POOL_CLS,  /* row 0 */
  STACK_POOL_MEAN,
  STACK_POOL_MAX,
  STACK_POOL_LAST,          /* the last row */
  STACK_POOL_MEAN_SQRT_LEN, /* the sum, over the root of the number of rows */
  STACK_POOL_WEIGHTED_MEAN, /* row 0 counts once, row 1 twice, and so on */
  STACK_POOL_POOLER,        /* only where the form has one */
  STACK_POOL_CLASSES /* the numbers of its classes, where it has such: not cut or normalized */
};

/* The words for them, but for the classes; then NULL. */
extern const char *const stack_pool_names[];

/* Is it of all rows of an item, and not of one of them? */
static inline bool stack_pool_is_of_all(enum stack_pool pool) {
  return pool == STACK_POOL_MEAN || pool == STACK_POOL_MAX || pool == STACK_POOL_MEAN_SQRT_LEN ||
         pool == STACK_POOL_WEIGHTED_MEAN;
}

/* What the scores of an item's classes become. */
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

/* What is asked of one attention, and of the layer that it is the self-attention of. */
struct stack_wish {
  enum stack_weights weights;
  size_t thumbnail;       /* rows and columns of one, at most; above 0 */
  const float *head_mask; /* [H] or NULL */
  bool hidden;            /* what the layer gives: hidden state l + 1 of layer l; not across */
  struct trace *trace;    /* of one query, or NULL (core/attention/trace.h) */
  bool input;             /* the rows that it reads, behind its norm; across its queries */
  bool ablation;          /* how much each of its heads contributes, of a run that measures that */
};

/* What one attention shows, and its layer. Each is NULL where it was not asked for. The keys k of
 * an item are its own rows, or across those of its source. Of a run that generates its rows are
 * those of the sequences' tokens: the weights are [H, most, keys] or [most, keys], the thumbnails
 * [H, min(thumbnail, tokens), min(thumbnail, keys of the last row)]; and behind what was generated,
 * and where a row could not see, are zeros. */
struct stack_shown {
  const float *weights;        /* per item at weights_at: [H, n, k], or [n, k] the average */
  const size_t *weights_at;    /* [items] */
  const uint8_t *thumbnails;   /* per item at thumbnails_at: [H, r, c], r = min(thumbnail, n), c =
                                  min(thumbnail, k) */
  const size_t *thumbnails_at; /* [items] */
  const float *hidden;         /* [rows, d] */
  const float *input;          /* [rows, d] */
};

/* What a logit lens shows of one hidden state: the likeliest tokens of each row that has a target,
 * in their order, had the state been the last one: behind the last norm, the scale and the matrix
 * of the output. */
struct stack_lens {
  int32_t *token;         /* [targets, lens_count] the likeliest first, of equals the lower */
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
  const struct stack_wish *wish; /* [attentions]; NULL: nothing is asked of any of them */
  enum stack_pool pool;
  const size_t *left_out;       /* [items] the first so many rows of an item are not in its mean or
                                   greatest; others there are. NULL: all are in it */
  enum stack_function function; /* of classes */
  size_t dimensions;            /* of a pooled item: the first so many numbers are kept; 0: all */
  bool normalize;               /* a pooled item then gets length 1, unless all its numbers are 0 */
  const int32_t *targets; /* [rows] of a stack with an output: the token whose log probability is
                             wanted, or -1; NULL: of no row */
  size_t top;             /* the likeliest so many tokens of each row that has a target */
  size_t logit_lens;      /* as many of what each hidden state says in these rows; 0: not asked */
  bool want_logits;       /* of all rows of a stack with an output; then without targets */
  bool dense_left;        /* pooled items do not go through the form's dense layer */
  struct stack_ablation
      *ablation; /* what heads are worth is measured, of a run that does not generate,
              and shows nothing else: see stack_ablation_init. NULL: it is not */
  struct stack_generation *generation; /* tokens are chosen, of a causal stack with an output. No
                                          item is empty, there are tokens; nothing is pooled, scored
                                          or traced. NULL: none are */
  /* Of a stack with cross attention: the run of another one, whose outputs its layers attend to. It
   * is prepared before this one, shows rows, and becomes the run that is to be computed: this one
   * follows it (run.then). Its items are this run's; or, of one that generates, its texts. */
  struct stack_run *source;

  /* The answer, allocated when the run is prepared. */
  const float *outputs;           /* [rows, d], or pooled [items, output_size] */
  size_t output_size;             /* d; pooled, what the dense layer or `dimensions` leave of it, or
                                     the count of classes */
  const float *rows;              /* [rows, d] the outputs before pooling; unpooled, `outputs` */
  const float *embedding;         /* hidden state 0, [rows, d]; NULL: not asked for */
  const float *log_probabilities; /* [rows], 0 where there is no target; NULL: there are none */
  const float *logits;            /* [rows, V]; NULL: not asked for */
  const int32_t *top_tokens;      /* [rows, top_count] the likeliest first, of equals the lower */
  const float *top_log_probabilities; /* [rows, top_count] */
  size_t top_count;                   /* `top`, or as many as there are tokens */
  const struct stack_lens *lens;      /* [L + 1] of hidden state l; NULL: not asked for */
  size_t lens_count;                  /* `logit_lens`, or as many as there are tokens */
  struct stack_shown *shown;          /* [attentions]; NULL where there are no wishes */
  struct spare left; /* memory that is not read any more once the run is computed */

  /* The stack's own. */
  struct stack_space *space;
  struct geometry across; /* of the calls across: its keys are the rows of the source */
  struct call call[];     /* [attentions] */
};

/* An empty run of this stack, in the arena: all 0, but for the window and `causal`, which are the
 * form's. NULL with an error. */
struct stack_run *stack_run_new(const struct stack *s, struct arena *a, struct error *e);

/* Prepares a run whose request is right: nothing is checked here. Reserves in the arena all memory
 * that computing will need, and does nothing else that grows with the request. Sets `run`, the rest
 * of the geometry and the answer part. After this nothing can fail but the arithmetic: the run's
 * fault is STATUS_NOT_FINITE. A run that generates gives memory back while it is computed: until
 * then nobody else may use the arena. */
enum status stack_prepare(const struct stack *s, struct stack_run *r, struct arena *a,
                          struct error *e);

#endif
