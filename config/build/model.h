/* model: a definition and its checkpoint made into an attention layer, or into a whole model.
 *
 * A model is immutable after model_load and shared by all threads. */
#ifndef CONFIG_MODEL_H
#define CONFIG_MODEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/describe/notes.h"
#include "config/document/digest_tree.h"
#include "config/family/whole_family.h"
#include "core/attention/layer.h"

enum {
  MODEL_DIGEST_SIZE = DIGEST_TREE_TEXT_SIZE,
  /* Bytes of numbers. Up to this size the digest is their SHA-256 in hexadecimal; above it a tree
   * (digest_tree.h), which several threads compute. */
  MODEL_SMALL = 16 * 1024 * 1024
};

/* "attention", "encoder", ... */
const char *model_kind_name(enum model_kind kind);

struct model {
  char *name;
  enum model_kind kind;
  struct whole *whole; /* of a whole model (whole.h), or NULL. Members about one layer are then
                          empty, and `layout` is the family */
  struct layer *layer;
  struct layer_shape shape;
  const char *score, *weighting, *projection; /* as in the definition; static text */
  const char *layout;   /* "plain", "bert", ..., "tensors" (the map) or "none"; static text */
  char *place;          /* the beginning of its tensors' names; NULL if no layout found it */
  bool bias;            /* does any role have one? */
  enum compute compute; /* how its matrices are multiplied */
  bool causal;          /* default of requests */
  size_t window; /* default of requests: a query attends to keys that are nearer than this, and if
                    `causal` only to earlier ones and its own; 0: no window */
  bool cross;    /* whether it is the cross-attention of a whole model */
  bool hinted;   /* whether config.json has heads and kv_heads */
  uint64_t parameters;            /* numbers in weights and biases */
  char *source;                   /* file name of the checkpoint, "random" or "none" */
  const char *digest_name;        /* "sha256", or "digest" of a large model; static text */
  char digest[MODEL_DIGEST_SIZE]; /* of the tensors used */
  struct notes notes;             /* reasons why it may not be the intended model */
  int64_t loaded;                 /* time of loading: seconds since 1970, in UTC */
  const struct model *root;       /* the model whose numbers these are; NULL: its own */
  bool alias; /* whether its name is among the `aliases` of the root's definition */
};

/* Another name for a model, which outlives it. NULL with STATUS_OUT_OF_MEMORY. */
struct model *model_share(const struct model *root, const char *name, struct error *e);

/* Makes the model `name` from its definition and tries it: a layer whose output for zeros is not
 * finite, because of its biases, is rejected, and so is a whole model whose output for a few tokens
 * is not. The engine is for layers that compute in float32, `compute` for models that do not set it
 * themselves. Relative paths start at `directory`. NULL with STATUS_CONFIG or STATUS_OUT_OF_MEMORY;
 * the detail names the model, the key or tensor and why. */
struct model *model_load(const char *name, const json_t *definition, const char *directory,
                         enum gemm_engine engine, enum compute compute, struct error *e);
void model_free(struct model *m);

/* Checks everything except the numbers, and returns the bytes these take as float32, without the
 * biases of a layer. The same failures. */
enum status model_measure(const char *name, const json_t *definition, const char *directory,
                          uint64_t *bytes, struct error *e);

/* Does the model have a source of weights, and use none of its numbers? */
bool model_uses_nothing(const struct model *m);

#endif
