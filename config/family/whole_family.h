/* whole_family: the families of whole models: the names of their tensors, the keys of their
 * config.json, and their defaults. Tables. */
#ifndef CONFIG_WHOLE_FAMILY_H
#define CONFIG_WHOLE_FAMILY_H

#include "config/family/whole_role.h"
#include "core/forward/stack_form.h"

/* The kind of a model, which determines its endpoints. */
enum model_kind {
  MODEL_ATTENTION, /* one layer of attention */
  MODEL_ENCODER,   /* this and the next are whole models */
  MODEL_DECODER,
  MODEL_SEQ2SEQ
};

/* The stacks that a model may have: one of them, or both. */
enum whole_side { WHOLE_ENCODER, WHOLE_DECODER, WHOLE_SIDES };

enum {
  WHOLE_NAMES_MOST = 5,
  WHOLE_TABLES_MOST = 3,
  WHOLE_MASKED_MOST = 2,
  WHOLE_PACKED_MOST = 2, /* packed tensors of a layer, */
  WHOLE_PARTS_MOST = 3   /* and the parts of one */
};

/* The keys of config.json for the sizes of one stack. */
struct whole_side_keys {
  const char *layers, *heads, *forward_size;
};

/* A name of an activation in config.json that means another one. */
struct whole_alias {
  const char *name, *is;
};

/* The keys of config.json; NULL: it has no such key. */
struct whole_keys {
  struct whole_side_keys own;     /* of the encoder, or of the only stack; */
  struct whole_side_keys decoder; /* of the decoder with an encoder: NULL is the same key, */
  bool follows;                   /* and by default it has the value of `own` */
  const char *width, *head_size, *vocabulary, *types, *positions;
  const char *kv_heads;
  /* The base of rotary positions; and that of layers with a window: NULL is the same. */
  const char *rope_base, *rope_local;
  /* The factor of a base that follows the length of an item, and the length from which on it does.
   */
  const char *rope_factor, *trained;
  /* The length from which on a base of the type "dynamic" follows that of an item; NULL: that of
   * `positions`, which the factor then multiplies. */
  const char *dynamic;
  bool ntk; /* rope_scaling is of the type "ntk", and of no other but "default" */
  /* The window, and a number n: of n layers in a row, one has no window. If the file has a list
   * layer_types, that says which layers have a window. */
  const char *window, *full_every;
  /* A list with 0 for each layer without rotary positions; if it is missing, a number n: each nth
   * layer has none. */
  const char *rotated, *unrotated_every;
  const char *score_scalar; /* scores are divided by the root of its value */
  const char *score_cap, *logit_cap;
  const char *epsilon, *activation;
  const char *buckets, *distance; /* of relative positions */
  const char *embedded;           /* the size of a row of the table of tokens */
  const char *groups, *inner;     /* of a family whose layers share parameters */
  const char *head_activation; /* after the first layer of a classifier, and in the transform of a
                                  masked language modeling head */
  const char *gated;           /* prefix of a gated activation */
  const struct whole_alias *alias; /* of activations, with that prefix; the last one has no name */
  bool activation_open;            /* whether null means the activation of the type */
};

/* The names of a masked language modeling head, each after the prefix or a part of it. */
struct whole_masked {
  const char *dense, *norm; /* of the transform; NULL: there is none */
  const char *matrix;       /* NULL: there is no such head */
  const char *bias;         /* of the logits, with its end; if it is missing, that of the matrix */
  bool gelu;                /* the activation of the transform; else that of the layers */
};

/* A tensor of each layer that holds the matrices of several roles: their rows one after another, or
 * their columns if matrices are [in, out]. All parts have the same size. Its bias, if there is one,
 * is cut in the same way. */
struct whole_packed {
  const char *stem; /* in the attention of the first role, with what precedes "weight" and "bias":
                       "c_attn.", "in_proj_"; NULL: there is no such tensor */
  size_t parts;
  enum whole_role role[WHOLE_PARTS_MOST]; /* [parts] in the order of the rows */
};

/* Which matrices and norms of a family have biases. */
enum whole_bias {
  WHOLE_BIAS_FREE, /* those for which the file has one */
  WHOLE_BIAS_NEVER,
  WHOLE_BIAS_ALWAYS /* all; those of the roles in `unbiased` are optional */
};

/* The names of the tensors of one stack, and its kind of computation. Names are prefix + stem, in a
 * layer prefix + `layer` + stem, in an attention prefix + `layer` + `self` or `cross` + stem,
 * followed by .weight and .bias; {i} is the layer's number. The stack does not have roles without a
 * stem. layout_family.h uses the same names for single attentions. */
struct whole_family {
  const char *name;
  const char *layer; /* NULL: there are no layers. "encoder.layer.{i}."; if shared, {i} is the group
                        and {j} the number of the layer in it */
  const char *self, *cross;      /* "attention."; NULL: nothing */
  const char *stem[WHOLE_ROLES]; /* except WHOLE_TOKEN */
  const char *gated_up; /* name of WHOLE_UP if there is a gate; NULL: the same as without */
  struct whole_packed packed[WHOLE_PACKED_MOST]; /* of roles without a stem */
  struct {
    const char *stem, *why;
  } obstacle; /* a tensor of layer 0 that is not supported, with its end, and the reason; or NULL */
  const char *table[WHOLE_TABLES_MOST]; /* of tokens: the first that exists; with `tied` the others
                                           are copies of it */
  const char *head;        /* name of the matrix of the logits, after the prefix or a part of it */
  const char *logits_bias; /* name of what is added to them; NULL: the bias of the matrix */
  struct whole_masked masked[WHOLE_MASKED_MOST]; /* heads that its encoders may have instead */
  const char *behind_pooler; /* name of WHOLE_CLASSES after a pooler; NULL: never after a pooler. As
                                the stems of classifiers, after the prefix or a part of it */
  const char *bare_classes;  /* name of WHOLE_CLASSES without a layer before it: the classifier of
                                tokens, and in a decoder that of sequences */
  const struct whole_family *decoder;    /* of an encoder: the decoder that may attend to its
                                            outputs; NULL: not supported */
  const char *scope[WHOLE_NAMES_MOST];   /* unknown tensors that begin so are rejected, */
  const char *ignored[WHOLE_NAMES_MOST]; /* except these, */
  const char *buffer[WHOLE_NAMES_MOST];  /* and in a layer except names that end so */
  const struct whole_keys *keys;         /* of config.json; NULL: it has the words of definitions */

  bool decodes;      /* it is a decoder: causal */
  bool across;       /* matrices of its layers are [in, out]; else [out, in] */
  bool gated;        /* its feed-forward always has a gate */
  bool rotary;       /* it has rotary positions */
  bool by_kind;      /* its names do not show that it decodes: only a definition's `kind` does */
  bool above_one;    /* a norm's factor is 1 plus the stored number */
  bool loose;        /* a table may have a name without the prefix */
  bool tied;         /* its tables of tokens are equal */
  bool lasting;      /* the last norm is required */
  bool aside;        /* the last hidden state is the input of the last norm */
  bool rows_only;    /* requests have the input of the first layer, not tokens */
  bool unscaled;     /* scores are not scaled */
  bool headed;       /* the matrix of the logits is required */
  bool shrunk;       /* the input of a tied matrix of the logits is scaled by 1 / sqrt(d) */
  bool shared;       /* layers of a group have the same parameters */
  bool relative;     /* positions are a table of distances; that of layer 0 is for all */
  bool alibi;        /* positions are ALiBi */
  bool looks_back;   /* an encoder whose rows attend only to earlier ones and themselves */
  bool ends;         /* its pooler is the row of the end token: see struct stack_pooling */
  bool bare_zero;    /* layer 0 has no norm before its attention */
  bool row_heads;    /* the layers of a classifier are also those of other heads, before each row */
  bool disentangled; /* config.json says which positions there are, disentangled ones among them */
  enum stack_vectors class_vectors; /* read by a classifier of texts; 0: the first row, or the last
                                       one of a decoder */
  const char *class_activation;     /* follows the first layer of a classifier, unless config.json
                                       has another; NULL: tanh */
  enum whole_bias bias;
  uint64_t unbiased; /* of ROLE_BIT */
  enum norm_kind norm;
  enum norm_place place;
  enum positions positions; /* without a stored table; POSITIONS_LEARNED: a table is required */
  size_t positions_beyond;  /* rows of a stored table in addition to those in config.json */
};

/* The packed tensor that holds a role; NULL: the role has a tensor of its own, or none. */
const struct whole_packed *whole_family_packed(const struct whole_family *f, enum whole_role role);

/* The path of a role's attention within its layer; "" for a role of none. */
const char *whole_family_within(const struct whole_family *f, enum whole_role role);

/* The families to look for in a file: of an encoder, or of a decoder without one. */
const struct whole_family *whole_family_find(const char *name); /* NULL: there is none */
size_t whole_family_count(void);
const struct whole_family *whole_family_at(size_t index);

#endif
