/* tiny_model: a small Transformer that learns, forwards and backwards.
 *
 * It is an encoder or a decoder of the plain family: learned positions, norm(x + f(x)), relu. The
 * loss of a row is the cross entropy of its scores with the right class. Heads of the last layer
 * can be taught where to look, and numbers of its head 0 what to mean.
 *
 * Its bits are the same on every machine: each sum has one order, which no instruction set changes;
 * nothing but + - * / and the square root is used, which IEEE 754 rounds in one way; and the
 * compiler fuses no product with a sum (-ffp-contract=off). */
#ifndef TESTS_TINY_MODEL_H
#define TESTS_TINY_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tiny_form {
  size_t vocabulary, width, heads, layers, forward; /* width, head size, forward: multiples of 8 */
  size_t longest;                                   /* tokens of an item: the learned positions */
  size_t items;                                     /* of a batch, at most */
  bool causal;    /* a row attends to itself and those before it */
  bool tied;      /* a row's scores are its products with the embeddings of all tokens ... */
  size_t classes; /* ... otherwise its first numbers, this many */
  size_t taught;  /* heads 0, 1, ... of the last layer have targets: this many */
  /* The first numbers of the queries and keys of head 0 of the last layer have a meaning each: this
   * many. Number i of a key shall be `key_size` where the row offers i, number i of a query
   * `query_size` where it asks for i, all others 0. */
  size_t named;
  float key_size, query_size, naming; /* naming: how much the squares of the errors count */
};

/* Where the parameters lie in an array of all: matrices as [in, out], a norm's factor, then its
 * shift. */
struct tiny_places {
  size_t token, position, layer, size; /* in the model; `layer` is the first one */
  /* in a layer; `in` has queries, keys and values side by side */
  size_t in, in_bias, out, out_bias, up, up_bias, down, down_bias, norm_self, norm_forward;
  size_t layer_size;
};

struct tiny_places tiny_places(const struct tiny_form *form);

/* Some sequences, end to end, and what is right. */
struct tiny_batch {
  size_t items, rows;
  size_t *at;         /* [items + 1] the first row of an item; after the last one, all rows */
  int *token, *right; /* [rows] right: the class of the row */
  int *offers, *asks; /* [rows] a named number, or -1 */
  float *want; /* [taught, rows of all items, stride] the weights that the heads shall have */
};

/* A norm on its way: its input without mean and spread, and one over that spread. */
struct tiny_normed {
  float *row, *factor;
};

/* The values that a layer keeps for the way back, a row each but for the weights. */
struct tiny_kept {
  struct tiny_normed norm_self, norm_forward;
  float *self, *forward; /* what enters a branch */
  float *in, *context, *up;
  float *weight; /* [items, heads, longest, stride] */
};

/* A batch and all that is computed of it: by one thread at a time. */
struct tiny_work {
  struct tiny_form form;
  struct tiny_places places;
  size_t most;   /* rows of a batch */
  size_t stride; /* from a row of weights to the next: `longest`, rounded up to a multiple of 8 */
  struct tiny_batch batch;
  struct tiny_kept *kept;       /* [layers] */
  float *rows;                  /* from layer to layer, at last the outputs; on the way back, their
                                   gradients */
  float *scores;                /* of a tied model, `score_stride` apart */
  size_t score_stride;          /* the vocabulary, rounded up to a multiple of 8 */
  float *branch, *wide, *wider; /* gradients: of a branch, of what it has inside */
  float *turned, *slope;        /* scratch: a transposed matrix, the slopes of a head's scores */
  float *gradient;              /* of all parameters */
  void *memory;
};

/* Ends the program if there is no memory. */
struct tiny_work *tiny_work_new(const struct tiny_form *form);
void tiny_work_free(struct tiny_work *w);

/* Appends an item of n rows to the batch and returns its first row. */
size_t tiny_append(struct tiny_work *w, size_t n);

/* A row of the weights that head `head` shall have, all 0 after tiny_append. */
float *tiny_want(const struct tiny_work *w, size_t head, size_t row);

/* A row of the weights of a head, and the scores of a row, after tiny_forward. */
const float *tiny_weights(const struct tiny_work *w, size_t layer, size_t head, size_t item,
                          size_t row_of_item);
const float *tiny_scores(const struct tiny_work *w, size_t row);

/* The outputs, scores and weights of the batch. */
void tiny_forward(const float *model, struct tiny_work *w);

/* After tiny_forward: the gradient of the batch's loss, a sum over its rows: the cross entropy of
 * the scores with the right classes and of the taught heads' weights with those that they shall
 * have, and the squares of the errors of named numbers. */
void tiny_backward(const float *model, struct tiny_work *w);

/* e^x of an x that is not above 0. */
float tiny_exp(float x);

#endif
