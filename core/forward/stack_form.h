/* stack_form: a whole model in the core's own terms, before it is made: an embedding, and layers of
 * attention and feed-forward with norms between them. Sizes, kinds and parameters, from a file or
 * drawn.
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
  NORM_POST, /* of the sum: norm(x + f(x)) */
  NORM_PRE   /* of what enters a branch: x + f(norm(x)) */
};

/* What is added to an embedding for position p, of d numbers. Rotary and relative positions are the
 * attention's. */
enum positions {
  POSITIONS_NONE,
  POSITIONS_LEARNED,     /* row p of a table */
  POSITIONS_INTERLEAVED, /* numbers 2i, 2i + 1: sine and cosine of p / 10000^(2i / d) */
  POSITIONS_HALVES,      /* numbers i, d / 2 + i: the same */
  POSITIONS_HALVES_WIDE  /* likewise of p 10000^(-i / (d / 2 - 1)) */
};

struct stack_norm {
  const float *factor; /* [d]; NULL: there is no such norm */
  const float *shift;  /* [d] or NULL */
};

/* down (act(up x)), or gated: down (act(gate x) times up x). */
struct stack_forward {
  struct layer_matrix gate, up, down; /* [f, d], [f, d], [d, f]; gate.weight NULL: not gated */
};

struct stack_layer {
  struct layer_matrix self[ROLE_COUNT];
  struct layer_matrix cross[ROLE_COUNT]; /* of a form with cross attention */
  struct stack_norm norm_self, norm_cross, norm_forward;
  struct stack_forward forward;
};

struct stack_embedding {
  const float *token;         /* [V, d]; NULL: a request brings rows instead of tokens */
  const struct stack *lender; /* its table of tokens is this one's, too, and `token` is not looked
                                 at: it lives as long as this stack; or NULL */
  const float *type;          /* [types, d], or NULL */
  const float *position;      /* [position_rows, d] of POSITIONS_LEARNED */
  size_t tokens, types;       /* V; rows of `type` */
  size_t position_rows;
  enum positions positions;
  size_t first_position;  /* of row 0 of an item */
  float scale;            /* multiplies the token's row */
  struct stack_norm norm; /* of the sum of all three */
};

/* A dense layer behind the vector x of an item: y = W x + b, or the tanh of that. If it is
 * residual, x is added to y: as it is, or, where y is of another size, through a matrix of its own.
 */
struct stack_dense {
  size_t size;                /* of y; 0: there is no such layer, and none behind it */
  struct layer_matrix matrix; /* [size, that of x] */
  struct layer_matrix skip;   /* likewise, or none */
  bool tanh, residual;
};

enum { STACK_DENSE_MOST = 2 };

/* A pooling makes one vector of an item. */
struct stack_pooling {
  struct layer_matrix
      pooler; /* [d, d], or none: the tanh of its product with the first row of the outputs */
  struct stack_dense dense[STACK_DENSE_MOST]; /* behind whatever makes the vector */
};

/* What makes the scores of classes of an item: its first row goes through a dense layer, whose
 * curve bends each number, and then through one that has a row for each class. */
struct stack_classifier {
  bool pooler;                 /* the first of both is the pooler, with its tanh; else it is */
  struct layer_matrix first;   /* [d, d], with the tanh */
  bool relu;                   /* or with max(z, 0) */
  struct layer_matrix classes; /* [count, d] */
  size_t count;                /* 0: there are none */
};

/* What makes the logits of the next token of a row: its product with a matrix. */
struct stack_output {
  struct layer_matrix matrix; /* [V, d] or no weight */
  bool tied;   /* the matrix is the embedding's table of tokens; `matrix.bias` may still be there */
  float scale; /* of the row before the product; 1 for most, 0 is read as 1 */
};

struct stack_form {
  bool whole;                         /* numbers stay float32, even where 16 bits have them */
  const char *name;                   /* "encoder" or "decoder", before the numbers of its parts */
  size_t width, forward_size, layers; /* d, f, L */
  struct layer_shape self;            /* of every layer's attention */
  struct layer_shape cross; /* behind it stands one to the rows of another stack, whose width are
                               its key and value sizes; 0 heads: there is none */
  bool causal;
  size_t window; /* rows that one sees, itself the last of them; 0: all that it may see otherwise */
  enum norm_kind norm;
  enum norm_place place;
  float epsilon;
  enum activation activation;
  struct stack_embedding embedding;
  const struct stack_layer *layer; /* [L] */
  struct stack_norm last;          /* behind the last layer */
  bool last_aside; /* the last hidden state is what enters that norm; else what leaves it. The
                      outputs are what leaves it in any case */
  struct stack_pooling pooling;
  struct stack_classifier classifier;
  struct stack_output output;
};

/* The size of an item's vector behind the dense layers. */
static inline size_t stack_form_pooled(const struct stack_form *f) {
  size_t size = f->width;
  for (size_t i = 0; i < STACK_DENSE_MOST && f->pooling.dense[i].size; i++)
    size = f->pooling.dense[i].size;
  return size;
}

/* Attentions of a stack: those of its layers to themselves, then those across. */
static inline size_t stack_form_attentions(const struct stack_form *f) {
  return f->layers * (f->cross.heads ? 2 : 1);
}

#endif
