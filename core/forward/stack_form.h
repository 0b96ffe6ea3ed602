/* stack_form: a stack before it is made: sizes, kinds and parameters of an embedding, and of layers
 * of attention and feed-forward with norms between them. The parameters come from a file or are
 * randomly initialized; they belong to the maker of the form.
 *
 * Letters: n tokens of an item, d the model's width, f the width between the two matrices of a
 * feed-forward layer, V the vocabulary, L layers. */
#ifndef CORE_STACK_FORM_H
#define CORE_STACK_FORM_H

#include "core/attention/layer.h"
#include "core/kernel/kernel_activation.h"

enum norm_kind {
  NORM_LAYER, /* (x - mean) / sqrt(variance + epsilon) */
  NORM_RMS    /* x / sqrt(mean square + epsilon) */
};

enum norm_place {
  NORM_POST, /* norm(x + f(x)) */
  NORM_PRE   /* x + f(norm(x)) */
};

/* The d numbers that an embedding adds for position p. Rotary and relative positions are the
 * attention's. */
enum positions {
  POSITIONS_NONE,
  POSITIONS_LEARNED,     /* row p of a table */
  POSITIONS_INTERLEAVED, /* numbers 2i, 2i + 1: sine and cosine of p / 10000^(2i / d) */
  POSITIONS_HALVES,      /* numbers i, d / 2 + i: the same */
  POSITIONS_HALVES_WIDE  /* the same of p 10000^(-i / (d / 2 - 1)) */
};

struct stack_norm {
  const float *factor; /* [d]; NULL: there is no such norm */
  const float *shift;  /* [d] or NULL */
};

/* down (act(up x)), or gated: down (act(gate x) times up x). */
struct stack_forward {
  struct layer_matrix gate, up, down; /* [f, d], [f, d], [d, f]; gate.weight NULL: not gated */
};

/* The properties in which layers differ. The shapes of all kinds have the same sizes. */
struct stack_kind {
  struct layer_shape self; /* of the self-attention; rotary positions may differ */
  size_t window; /* a row attends to rows that are nearer than this, of a causal stack only to
                    earlier ones and itself; 0: no window */
  enum activation activation; /* of the feed-forward */
};

enum { STACK_KINDS = 2 };

struct stack_layer {
  unsigned kind; /* an index into the form's kinds */
  bool repeats;  /* its parameters are those of an earlier layer, number `of`, which does not repeat
                    another one; the members below are not read */
  size_t of;
  struct layer_matrix self[ROLE_COUNT];
  struct stack_norm norm_positions;      /* of the rows of self[ROLE_POSITION] */
  struct layer_matrix cross[ROLE_COUNT]; /* of a form with cross attention */
  struct stack_norm norm_self, norm_cross, norm_forward;
  struct stack_norm after_self, after_forward; /* of what a branch gives, before it is added */
  struct stack_forward forward;
};

/* The rows of an embedding have d numbers, unless a matrix makes these of others. */
struct stack_embedding {
  size_t width;                /* of its rows; 0: d. All sizes d below are this one */
  struct layer_matrix project; /* [d of the form, width], after the norm; or none */
  const float *token;          /* [V, d]; NULL: a request brings rows instead of tokens */
  bool given;                  /* stack_new keeps or frees `token`, which may be very large */
  const struct stack *lender;  /* its table of tokens is this one's, too, and `token` is ignored; it
                                  lives as long as this stack; or NULL */
  const float *type;           /* [types, d], or NULL */
  const float *position;       /* [position_rows, d] of POSITIONS_LEARNED */
  size_t tokens, types;        /* V; rows of `type` */
  size_t position_rows;
  enum positions positions;
  size_t first_position;  /* of row 0 of an item */
  float scale;            /* multiplies the token's row */
  struct stack_norm norm; /* of the sum of all three */
};

/* A convolution behind layer 0: with x the rows that enter the layer and y those that leave it,
 * these become norm(y + act(conv x)). */
struct stack_convolution {
  size_t taps;                /* rows around a position that it reads, an odd number; 0: there is
                                 none. A stack with one is post-norm, and not causal */
  struct layer_matrix matrix; /* [d, d, taps] */
  bool tanh;                  /* the activation is the tanh; else: */
  enum activation activation;
  struct stack_norm norm;
};

/* A dense layer of the vector x of an item: y = W x + b, or the tanh of that. If it is residual, x
 * is added to y: as it is, or, where y has another size, through a matrix of its own. */
struct stack_dense {
  size_t size;                /* of y; 0: there is no such layer, and none after it */
  struct layer_matrix matrix; /* [size, size of x] */
  struct layer_matrix skip;   /* the same, or none */
  bool tanh, residual;
};

enum { STACK_DENSE_MOST = 2 };

/* The vectors that are made of the outputs [n, d] of an item. */
enum stack_vectors {
  STACK_VECTORS_EACH,  /* each row is one */
  STACK_VECTORS_FIRST, /* row 0 */
  STACK_VECTORS_MEAN,
  STACK_VECTORS_MAX,
  STACK_VECTORS_LAST,          /* the last row */
  STACK_VECTORS_MEAN_SQRT_LEN, /* the sum, over the root of the number of rows */
  STACK_VECTORS_WEIGHTED_MEAN, /* row 0 counts once, row 1 twice, and so on */
  STACK_VECTORS_LATE           /* the mean of the scores that a classifier gives each row */
};

/* Does the vector depend on all rows of an item, and not on one of them? */
static inline bool stack_vectors_are_of_all(enum stack_vectors of) {
  return of == STACK_VECTORS_MEAN || of == STACK_VECTORS_MAX || of == STACK_VECTORS_MEAN_SQRT_LEN ||
         of == STACK_VECTORS_WEIGHTED_MEAN;
}

/* The layers that a vector of an item can go through. */
struct stack_pooling {
  struct layer_matrix pooler; /* [d, d], or none: the tanh of its product with a vector */
  /* The pooler of a form without that matrix may be the first row whose token is `end`, or row 0 if
   * there is none. If `end` is negative, it is the first row of the greatest token. */
  bool ends;
  int32_t end;
  struct stack_dense dense[STACK_DENSE_MOST];
  bool each; /* the dense layers are for vectors of rows: no vector of an item goes through them */
};

/* The classifier: a vector goes through a first layer with an activation and a norm, all of which
 * may be missing, and then through a matrix that has a row for each class. */
struct stack_classifier {
  enum stack_vectors vectors;
  bool pooler;               /* the first layer is the pooler, with its tanh; else: */
  struct layer_matrix first; /* [d, d], or none */
  bool tanh;                 /* the activation after it is the tanh; else: */
  enum activation activation;
  struct stack_norm norm;      /* after the activation */
  struct layer_matrix classes; /* [count, d] */
  size_t count;                /* 0: there are none */
};

/* The LM head: the logits of the next token, or of a masked one, are the product of a row with a
 * matrix. The head of an encoder transforms the row before that: norm(act(dense x)). */
struct stack_output {
  size_t width;               /* e, of the rows that `matrix` reads; 0: d */
  struct layer_matrix dense;  /* [e, d] of the transform, or none: there is no transform */
  enum activation activation; /* of the transform */
  struct stack_norm norm;     /* of the transform */
  struct layer_matrix matrix; /* [V, e] or no weight */
  bool tied;   /* the matrix is the embedding's table of tokens; `matrix.bias` may still be there */
  float scale; /* multiplies the row before the product; 0 is read as 1 */
  float cap;   /* above 0: a logit x becomes cap tanh(x / cap) */
};

/* How an item's rows become a weight for each token. With `row`, each row weighs its own token, by
 * max(w x + b, 0), and a token has the greatest weight of its rows. Else the logits of all rows are
 * pooled: a(max(logit, 0)), where a is log(1 + z). */
struct stack_sparse {
  struct layer_matrix row; /* [1, d] or none */
  bool sum;                /* over the rows; else the maximum */
  bool twice;              /* a is log(1 + log(1 + z)) */
};

struct stack_form {
  bool whole;                          /* numbers stay float32, even where 16 bits have them */
  enum compute compute;                /* of all matrices */
  const char *name;                    /* "encoder" or "decoder", before the numbers of its parts */
  size_t width, forward_size, layers;  /* d, f, L */
  struct stack_kind kind[STACK_KINDS]; /* of layers; those that no layer names are not used */
  struct layer_shape cross; /* follows the self-attention; its key and value sizes are the width of
                               another stack; 0 heads: there is none */
  bool causal;
  enum norm_kind norm;
  enum norm_place place;
  float epsilon;
  struct stack_embedding embedding;
  const struct stack_layer *layer; /* [L] */
  struct stack_convolution convolution;
  struct stack_norm last; /* after the last layer */
  bool last_aside; /* the last hidden state is the input of that norm; else its output, which is
                      the stack's output in any case */
  struct stack_pooling pooling;
  struct stack_classifier classifier;
  struct stack_output output;
  struct stack_sparse sparse; /* of a form with an output, or with its `row` */
};

/* The size of a row of the embedding, before any projection. */
static inline size_t stack_form_embedded(const struct stack_form *f) {
  return f->embedding.width ? f->embedding.width : f->width;
}

/* The size of a row that the matrix of the logits reads. */
static inline size_t stack_form_output(const struct stack_form *f) {
  return f->output.width ? f->output.width : f->width;
}

/* The layer that has the parameters of layer l. */
static inline const struct stack_layer *stack_form_layer(const struct stack_form *f, size_t l) {
  return &f->layer[f->layer[l].repeats ? f->layer[l].of : l];
}

/* The size of a vector after the dense layers. */
static inline size_t stack_form_dense(const struct stack_form *f) {
  size_t size = f->width;
  for (size_t i = 0; i < STACK_DENSE_MOST && f->pooling.dense[i].size; i++)
    size = f->pooling.dense[i].size;
  return size;
}

/* The size of an item's vector. */
static inline size_t stack_form_pooled(const struct stack_form *f) {
  return f->pooling.each ? f->width : stack_form_dense(f);
}

/* How many attentions a stack has: the self-attentions of its layers, then the cross-attentions. */
static inline size_t stack_form_attentions(const struct stack_form *f) {
  return f->layers * (f->cross.heads ? 2 : 1);
}

#endif
