/* whole_family: what each family of whole models calls the tensors of its stacks and the values of
 * its config.json, and what is usual in it. A table, no more. */
#ifndef CONFIG_WHOLE_FAMILY_H
#define CONFIG_WHOLE_FAMILY_H

#include "core/forward/stack_form.h"

/* What a model is, and with it which paths it has. */
enum model_kind {
  MODEL_ATTENTION, /* one layer of attention */
  MODEL_ENCODER,   /* the others are whole models */
  MODEL_DECODER,
  MODEL_SEQ2SEQ
};

/* The stacks that a model may have: one of them, or both. */
enum whole_side { WHOLE_ENCODER, WHOLE_DECODER, WHOLE_SIDES };

/* Everything of which a stack has parameters: of each layer, ... */
enum whole_role {
  WHOLE_QUERY, /* as ROLE_QUERY */
  WHOLE_KEY,
  WHOLE_VALUE,
  WHOLE_OUTPUT,
  WHOLE_UP,
  WHOLE_GATE,
  WHOLE_DOWN,
  WHOLE_NORM_SELF,
  WHOLE_NORM_FORWARD,
  WHOLE_NORM_QUERY, /* of each head */
  WHOLE_NORM_KEY,
  WHOLE_NORM_CROSS,
  WHOLE_CROSS_QUERY, /* of the attention to the encoder's outputs, as ROLE_QUERY */
  WHOLE_CROSS_KEY,
  WHOLE_CROSS_VALUE,
  WHOLE_CROSS_OUTPUT,
  WHOLE_LAYER_ROLES,
  /* ... and of the stack. */
  WHOLE_TOKEN = WHOLE_LAYER_ROLES,
  WHOLE_TYPE,
  WHOLE_POSITION,
  WHOLE_NORM_EMBEDDED,
  WHOLE_NORM_LAST,
  WHOLE_POOLER,
  WHOLE_RELATIVE,
  WHOLE_DENSE,      /* of sentence-transformers: in a file of its own; */
  WHOLE_DENSE_SKIP, /* and through which what comes in is added; then the same of the next */
  WHOLE_DENSE_END = WHOLE_DENSE + 2 * STACK_DENSE_MOST - 1,
  WHOLE_HEAD,        /* makes the logits of tokens */
  WHOLE_LOGITS_BIAS, /* is added to them: a vector, which may be a matrix of one row */
  WHOLE_CLASS_FIRST, /* of a classifier, unless its first layer is the pooler */
  WHOLE_CLASSES,     /* makes the scores of classes */
  WHOLE_ROLES
};

static inline bool whole_role_is_norm(enum whole_role role) {
  return (role >= WHOLE_NORM_SELF && role <= WHOLE_NORM_CROSS) || role == WHOLE_NORM_EMBEDDED ||
         role == WHOLE_NORM_LAST;
}

enum { WHOLE_NAMES_MOST = 5, WHOLE_TABLES_MOST = 3 };

/* What config.json calls the sizes that a stack has of its own. */
struct whole_side_keys {
  const char *layers, *heads, *forward_size;
};

/* What config.json calls a value; NULL: it does not say it. */
struct whole_keys {
  struct whole_side_keys own;     /* of the encoder, or of the only stack; */
  struct whole_side_keys decoder; /* of a decoder beside it: NULL is the same key, */
  bool follows;                   /* where it is absent, the value of `own` is the default */
  const char *width, *head_size, *vocabulary, *types, *positions;
  const char *kv_heads, *rope_base;
  const char *epsilon, *activation;
  const char *buckets, *distance; /* of relative positions */
  const char *gated; /* what says before an activation that it is gated; "gelu" is gelu_new then */
  bool activation_open; /* null is no activation, but that of the type */
};

/* Whether a family's matrices and norms have biases. */
enum whole_bias {
  WHOLE_BIAS_FREE, /* where the file has one */
  WHOLE_BIAS_NEVER,
  WHOLE_BIAS_ALWAYS /* but for the roles in `unbiased`, which are free */
};

/* What a family calls the tensors of one stack, and how it computes. Names are prefix + stem, of a
 * layer's tensors prefix + `layer` + stem, with .weight and .bias behind it; {i} is the layer's
 * number. A role without a stem is one that the stack does not have. */
struct whole_family {
  const char *name;
  const char *layer;             /* "encoder.layer.{i}." */
  const char *stem[WHOLE_ROLES]; /* but WHOLE_TOKEN */
  const char *gated_up; /* what WHOLE_UP is called where there is a gate; NULL: no other name */
  const char *joint;    /* queries, keys and values below one another in joint + "weight", "bias" */
  const char *cross_joint;              /* likewise of the attention to the encoder's outputs */
  const char *table[WHOLE_TABLES_MOST]; /* of tokens: the first that is there; the others are copies
                                           of it, where `tied` */
  const char *head; /* what the matrix of the logits is called, behind the prefix or before it */
  const char *logits_bias;   /* and what is added to them; NULL: the matrix' bias is */
  const char *behind_pooler; /* what WHOLE_CLASSES is called where the pooler stands before it,
                                behind the prefix or before it, as the stems of both layers of a
                                classifier; NULL: it never does */
  const struct whole_family *decoder;    /* of an encoder: the stack that may be beside it, which
                                            attends to its outputs; NULL: it is not served */
  const char *scope[WHOLE_NAMES_MOST];   /* behind these a tensor that is not known is refused, */
  const char *ignored[WHOLE_NAMES_MOST]; /* but these */
  const char *buffer[WHOLE_NAMES_MOST];  /* and in a layer those that end so: none has parameters */
  const struct whole_keys *keys;         /* of config.json; NULL: it speaks as definitions do */

  bool decodes;   /* a row sees those before it alone: the stack is a decoder's */
  bool across;    /* the matrices of its layers are [in, out]; else [out, in] */
  bool gated;     /* its feed-forward always is */
  bool rotary;    /* positions turn queries and keys */
  bool by_kind;   /* its names do not tell that it decodes: where a definition says so */
  bool above_one; /* what is added to 1 is what a norm stores of a factor */
  bool loose;     /* a table may lie without the prefix */
  bool tied;      /* its tables of tokens are one */
  bool lasting;   /* the last norm must be there */
  bool aside;     /* the last hidden state is what enters the last norm */
  bool rows_only; /* a request brings what enters the first layer */
  bool unscaled;  /* the scores */
  bool headed;    /* the matrix of the logits must be there */
  bool shrunk;    /* what enters that matrix, where it is the table of tokens: by 1 / sqrt(d) */
  bool relative;  /* positions are a table of distances, that of layer 0 for all */
  bool rectified; /* behind the first layer of a classifier stands relu; else tanh */
  enum whole_bias bias;
  unsigned unbiased; /* a bit 1U << role each */
  enum norm_kind norm;
  enum norm_place place;
  enum positions positions; /* where no table is stored; POSITIONS_LEARNED: one must be */
  size_t positions_beyond;  /* rows of a stored table beyond what config.json says */
};

/* The families by the stack that is looked for in a file: an encoder, or a decoder alone. */
size_t whole_family_count(void);
const struct whole_family *whole_family_at(size_t index);

#endif
