/* model: a definition and its checkpoint made into a layer that can serve, or into a whole model.
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
  /* Bytes of numbers. The digest of a model that has no more is their SHA-256 in hexadecimal; of a
   * larger one it is a tree (digest_tree.h), which several threads compute. */
  MODEL_SMALL = 16 * 1024 * 1024
};

/* "attention", "encoder", ... */
const char *model_kind_name(enum model_kind kind);

struct model {
  char *name;
  enum model_kind kind;
  struct whole *whole; /* of a whole model (whole.h): then what is one layer's is empty, and the
                          layout is the family; or NULL */
  struct layer *layer;
  struct layer_shape shape;
  const char *score, *weighting, *projection; /* as in the definition; static text */
  const char *layout;      /* "plain", "bert", ..., "tensors" (the map) or "none"; static text */
  char *place;             /* what precedes its tensors' names; NULL if no layout found it */
  bool bias;               /* does any role have one? */
  bool causal;             /* where a request does not say otherwise */
  size_t window;           /* likewise: keys up to a query's own that it sees; 0: all */
  bool cross;              /* of a whole model, its decoder's attention to the encoder's outputs:
                              queries are no keys */
  bool hinted;             /* heads and kv_heads are those of the config.json beside the file */
  uint64_t parameters;     /* numbers in weights and biases */
  char *source;            /* file name of the checkpoint, "random" or "none" */
  const char *digest_name; /* "sha256", or "digest" of a large model; static text */
  char digest[MODEL_DIGEST_SIZE]; /* over the tensors used */
  struct notes notes;             /* why it may not be what was meant */
  int64_t loaded;                 /* when: seconds since 1970, in UTC */
  const struct model *root;       /* whose numbers these are, under another name; NULL: its own */
  bool alias;                     /* its name is among the `aliases` of that one's definition */
};

/* Another name for a model, which outlives it. NULL with STATUS_OUT_OF_MEMORY. */
struct model *model_share(const struct model *root, const char *name, struct error *e);

/* Makes the model `name` from its definition and tries it: a layer whose answer to zeros is not
 * finite, because of its biases, is refused, and a whole model whose answer to a few tokens is not.
 * The engine counts for layers. Relative paths start at `directory`. On failure (STATUS_CONFIG, or
 * STATUS_OUT_OF_MEMORY) the detail names the model, the key or tensor and why. */
struct model *model_load(const char *name, const json_t *definition, const char *directory,
                         enum gemm_engine engine, struct error *e);
void model_free(struct model *m);

/* Checks all but the numbers, and says how many bytes these take as float32, the biases of a layer
 * aside. The same failures. */
enum status model_measure(const char *name, const json_t *definition, const char *directory,
                          uint64_t *bytes, struct error *e);

/* Does the model name a source of weights but use none of its numbers? */
bool model_uses_nothing(const struct model *m);

#endif
