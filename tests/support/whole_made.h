/* whole_made: a small whole model of random weights, made without a file. */
#ifndef TESTS_WHOLE_MADE_H
#define TESTS_WHOLE_MADE_H

#include "config/build/whole.h"

enum {
  WHOLE_MADE_LAYERS = 3,
  WHOLE_MADE_WIDTH = 8,
  WHOLE_MADE_HEADS = 2,
  WHOLE_MADE_TOKENS = 50,
  WHOLE_MADE_TYPES = 2,
  WHOLE_MADE_POSITIONS = 12,

  /* Of a decoder that attends to an encoder, as far as it is another thing. */
  WHOLE_MADE_TARGET_LAYERS = 2,
  WHOLE_MADE_CROSS_HEADS = 4,
  WHOLE_MADE_TARGET_TOKENS = 40,
  WHOLE_MADE_TARGET_POSITIONS = 9,
  WHOLE_MADE_BEGIN = 3 /* the token that begins */
};

/* What it has, but for its layers. */
struct whole_made_how {
  bool bare;         /* neither tokens nor types nor positions: it takes embeddings */
  bool pooler;       /* 8 to 8 */
  size_t dense_size; /* 0: no dense layer */
  size_t classes;    /* 0: no classifier; else with labels, "c0", "c\"1", "ç2", ... */
  bool last_aside;
  bool decoder;         /* causal, with the table of tokens as its output, unless it is */
  bool mute;            /* without an output */
  bool pair;            /* an encoder, and a decoder that attends to it */
  size_t layers;        /* 0: WHOLE_MADE_LAYERS */
  enum stack_pool pool; /* its defaults */
  bool normalize;
};

enum { WHOLE_MADE_CLASSES_MOST = 3 };

struct whole_made {
  struct whole whole;
  char *label[WHOLE_MADE_CLASSES_MOST]; /* static text */
  struct model model; /* of the kind encoder, decoder or seq2seq, with the name "made" */
};

void whole_made_init(struct whole_made *m, const struct whole_made_how *how);
void whole_made_free(struct whole_made *m);

#endif
