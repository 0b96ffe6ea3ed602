/* whole_words: what config.json and a definition say of a model, in the words of definitions. It
 * remembers which file and key a word comes from, so that errors and notes can name them. */
#ifndef CONFIG_WHOLE_WORDS_H
#define CONFIG_WHOLE_WORDS_H

#include <jansson.h>

#include "config/describe/notes.h"
#include "config/family/whole_family.h"
#include "config/family/whole_type.h"

/* A word of a definition, "heads". `side` is the name of a stack if the word is about that stack
 * alone; else NULL. */
struct whole_word {
  const char *side, *word;
};

/* The document and key that a word comes from. */
struct whole_by {
  const char *document, *key; /* "config.json", "hidden_size"; NULL: no document says it */
};

/* Values that may differ between layers. 0: not given. */
struct whole_layer_kind {
  size_t window; /* as in struct stack_kind */
  double rope_base;
  struct layer_stretch rope_stretch;
  bool unrotated; /* no rotary positions, although the family has them */
};

/* Disentangled positions, as in struct layer_shape. */
struct whole_disentangled {
  size_t span, reach; /* 0: none */
  bool keys, queries;
  bool own;    /* they have projections of their own */
  bool normed; /* the table has a norm */
};

struct whole_words {
  const struct whole_type *type; /* NULL: there is no config.json */
  json_t *words;                 /* an object; includes the defaults of missing keys */
  json_t *from; /* by word: the origin, "config.json: hidden_size"; absent for words of the
                   definition, and for defaults */
  /* Values that definitions do not have. 0: not given. */
  size_t positions; /* as config.json counts them */
  size_t buckets, distance;
  double score_scalar;         /* scores are divided by its root */
  double score_cap, logit_cap; /* 0: none */
  struct whole_disentangled disentangled;
  struct stack_convolution convolution; /* without its numbers */
  bool unplaced;                        /* no learned positions, although the family has them */
  struct whole_layer_kind kind[STACK_KINDS]; /* of all layers, if there is only one */
  bool *local;              /* [DEFINITION_LAYER_MAX + 1] layers of kind[1]; NULL: there are none */
  bool has_head_activation; /* that of the heads is not the one of the layers */
  enum activation head_activation;
  bool both_ways; /* a family of decoders attends to later rows, too: it is an encoder */
  bool has_types; /* of tokens */
  size_t types;
  size_t embedded; /* the size of a row of the table of tokens */
  /* Layers that share parameters, in a family of such: layer i of config.json stands for `inner`
   * layers, those of one of the `groups`. */
  size_t outer, groups, inner;
  bool apart;               /* encoder and decoder have a table of tokens each: */
  size_t target_vocabulary; /* tokens of the decoder's */
};

/* Makes an empty one. STATUS_OUT_OF_MEMORY. */
enum status whole_words_init(struct whole_words *w, struct error *e);
void whole_words_free(struct whole_words *w);

/* Sets a word, whose value's reference is taken, or records STATUS_OUT_OF_MEMORY. */
void whole_words_put(struct whole_words *w, const struct whole_word *at, json_t *value,
                     const struct whole_by *by, struct error *e);

/* Sets all words of a config.json that is written as a definition is. STATUS_CONFIG naming the key,
 * or STATUS_OUT_OF_MEMORY. */
enum status whole_words_copy(struct whole_words *w, const json_t *config, struct error *e);

/* Sets the words of the definition, and notes where they differ. A word about the model also
 * overrides what a file says of one stack alone. STATUS_OUT_OF_MEMORY. */
enum status whole_words_override(struct whole_words *w, const json_t *definition, struct notes *n,
                                 struct error *e);

/* The group of a layer of config.json, in a family whose layers share parameters. */
size_t whole_words_group(const struct whole_words *w, size_t layer);

/* Is it an entry of layer_types of this name? */
bool whole_words_is_kind(const json_t *entry, const char *name);

/* The kind of a layer. */
unsigned whole_words_kind(const struct whole_words *w, size_t layer);

/* Replaces the word with which an error begins by the file and key it comes from. The name of a
 * stack before the word is removed if there is only one stack: unless `both`. Returns e->status. */
enum status whole_words_blame(const struct whole_words *w, bool both, struct error *e);

#endif
