/* sort_model: a small Transformer that learns to sort numbers, forwards and backwards.
 *
 * It is an encoder of the plain family: learned positions, norm(x + f(x)), relu. Row i of the
 * outputs says which token comes i-th, by its greatest number; head 0 of the last layer looks at
 * the place where that token stands, the first one of equals first.
 *
 * Its bits are the same on every machine: each sum has one order, which no instruction set changes;
 * nothing but + - * / and the square root is used, which IEEE 754 rounds in one way; and the
 * compiler fuses no product with a sum (-ffp-contract=off). */
#ifndef TESTS_SORT_MODEL_H
#define TESTS_SORT_MODEL_H

#include <stddef.h>
#include <stdint.h>

enum {
  SORT_VOCABULARY = 32,
  SORT_WIDTH = 32, /* not below the vocabulary */
  SORT_HEADS = 4,
  SORT_HEAD = SORT_WIDTH / SORT_HEADS,
  SORT_LAYERS = 3,
  SORT_FORWARD = 128,
  SORT_LONGEST = 16, /* tokens of an item */
  SORT_ITEMS = 8,    /* of a batch */
  SORT_ROWS = SORT_ITEMS * SORT_LONGEST
};

/* Where the parameters lie in an array of all: matrices as [in, out], a norm's factor, then its
 * shift. */
enum {
  SORT_IN = 0, /* in a layer: queries, keys and values side by side */
  SORT_IN_BIAS = SORT_IN + SORT_WIDTH * 3 * SORT_WIDTH,
  SORT_OUT = SORT_IN_BIAS + 3 * SORT_WIDTH,
  SORT_OUT_BIAS = SORT_OUT + SORT_WIDTH * SORT_WIDTH,
  SORT_UP = SORT_OUT_BIAS + SORT_WIDTH,
  SORT_UP_BIAS = SORT_UP + SORT_WIDTH * SORT_FORWARD,
  SORT_DOWN = SORT_UP_BIAS + SORT_FORWARD,
  SORT_DOWN_BIAS = SORT_DOWN + SORT_FORWARD * SORT_WIDTH,
  SORT_NORM_SELF = SORT_DOWN_BIAS + SORT_WIDTH,
  SORT_NORM_FORWARD = SORT_NORM_SELF + 2 * SORT_WIDTH,
  SORT_LAYER_SIZE = SORT_NORM_FORWARD + 2 * SORT_WIDTH,

  SORT_TOKEN = 0, /* in the model */
  SORT_POSITION = SORT_TOKEN + SORT_VOCABULARY * SORT_WIDTH,
  SORT_LAYER = SORT_POSITION + SORT_LONGEST * SORT_WIDTH,
  SORT_SIZE = SORT_LAYER + SORT_LAYERS * SORT_LAYER_SIZE
};

/* Some sequences, end to end, and their answers. */
struct sort_batch {
  size_t items, rows;
  size_t at[SORT_ITEMS + 1]; /* the first row of an item; behind the last one, all rows */
  int token[SORT_ROWS];
  int sorted[SORT_ROWS]; /* the token that comes i-th in its item ... */
  int place[SORT_ROWS];  /* ... and where in the item it stands */
};

/* A norm on its way: its input without mean and spread, and one over that spread. */
struct sort_normed {
  float row[SORT_ROWS * SORT_WIDTH];
  float factor[SORT_ROWS];
};

/* What a layer keeps for the way back. */
struct sort_kept {
  struct sort_normed norm_self, norm_forward;
  float self[SORT_ROWS * SORT_WIDTH], forward[SORT_ROWS * SORT_WIDTH]; /* what enters a branch */
  float in[SORT_ROWS * 3 * SORT_WIDTH];
  float weight[SORT_ITEMS * SORT_HEADS * SORT_LONGEST * SORT_LONGEST];
  float context[SORT_ROWS * SORT_WIDTH];
  float up[SORT_ROWS * SORT_FORWARD];
};

/* A batch and all that is computed of it: by one thread at a time. */
struct sort_work {
  struct sort_batch batch;
  struct sort_kept kept[SORT_LAYERS];
  float rows[SORT_ROWS * SORT_WIDTH];   /* from layer to layer, at last the outputs; on the way
                                           back, their gradients */
  float branch[SORT_ROWS * SORT_WIDTH]; /* likewise of a branch */
  float wide[SORT_ROWS * 3 * SORT_WIDTH], wider[SORT_ROWS * SORT_FORWARD]; /* gradients */
  float turned[SORT_WIDTH * SORT_FORWARD]; /* a transposed matrix: no larger one is wanted */
  float gradient[SORT_SIZE];
};

/* The outputs and the weights of the batch: w->rows and w->kept. */
void sort_forward(const float model[SORT_SIZE], struct sort_work *w);

/* Behind sort_forward: the gradient of the batch's loss, a sum over its rows: the cross entropy of
 * the outputs with the tokens that are right, and of the last layer's head 0 with their places. */
void sort_backward(const float model[SORT_SIZE], struct sort_work *w);

/* e^x of an x that is not above 0. */
float sort_exp(float x);

#endif
