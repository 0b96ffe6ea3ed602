/* definition: the configuration of one attention layer, read strictly from its JSON.
 *
 * definition_read checks everything that needs no checkpoint: names, types, bounds, and members
 * that contradict each other. Members that are not given get their values once the family of the
 * checkpoint is known. Strings and `tensors` belong to the JSON, which must outlive the struct. */
#ifndef CONFIG_DEFINITION_H
#define CONFIG_DEFINITION_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/describe/definition_value.h"
#include "config/family/layout_family.h"
#include "core/attention/layer.h"

/* The name of a role in `tensors` and in the plain layout: "query", "key", "value", "output",
 * "score.query", "score.key", "score.vector", "score.weight", "relative_bias". */
const char *definition_role_name(enum role role);

/* The roles that a definition may name; later ones occur only in whole models. */
#define DEFINITION_ROLES ((enum role)(ROLE_RELATIVE + 1))

enum { DEFINITION_HEADS_MAX = 4096, DEFINITION_LAYER_MAX = 9999 };

/* Defaults of keys that neither the definition nor a file has. */
enum {
  DEFINITION_ROPE_BASE = 10000,
  DEFINITION_RELATIVE_DISTANCE = 128, /* as in T5 */
  DEFINITION_RELATIVE_BUCKETS = 32    /* as in T5 */
};

struct hints; /* hints.h */

struct definition {
  const char *score, *weighting, *projection; /* static text */
  enum score compare;                         /* the meaning of `score` in the core */
  bool scaled;                                /* whether `score` is "scaled_dot" */
  bool sigmoid;                               /* whether `weighting` is "sigmoid" */
  bool projected;                             /* whether `projection` is not "none" */
  bool grouped;                               /* whether `projection` is "grouped" */
  bool output_projected;                      /* `output_projection`, by default as `projected` */
  size_t heads, kv_heads;                     /* 0: not given */
  size_t query_size, key_size, value_size, hidden, output_size, score_size; /* 0: not given */
  double scale;                                                             /* 0: not given */
  enum toggle causal, bias;

  enum toggle rope;
  double rope_base;                           /* 0: not given */
  enum toggle relative, relative_both;        /* is there a table, and does it look both ways? */
  size_t relative_distance, relative_buckets; /* 0: not given */

  bool has_compute;
  enum compute compute; /* how its matrices are multiplied */

  const char *checkpoint; /* path as written, or NULL */
  const char *layout;     /* static text */
  const char *prefix;     /* NULL: not given */
  bool has_layer;
  size_t layer;
  bool all_layers;       /* whether it means one model for each layer (layers_all.h) */
  const json_t *tensors; /* object: role -> name; or NULL */

  bool random; /* excludes a checkpoint */
  uint64_t seed;

  /* The config.json of the checkpoint, for numbers of heads that are not given. NULL, as
   * definition_read leaves it: none. */
  const struct hints *hints;
};

/* Does the layer have a matrix in this role? Valid for ROLE_RELATIVE after definition_complete. */
bool definition_has(const struct definition *d, enum role role);

/* STATUS_CONFIG with a detail that begins with the key and does not name the model. */
enum status definition_read(struct definition *d, const json_t *json, struct error *e);

/* Sets everything that was not given, except heads, kv_heads and `bias`. STATUS_CONFIG if members
 * contradict each other. */
enum status definition_complete(struct definition *d, const struct definition_customs *customs,
                                struct error *e);

/* Sets heads and kv_heads if they were not given; the arguments are those of the checkpoint, or 0.
 * STATUS_CONFIG if both contradict each other, or if `heads` is required and unknown. */
enum status definition_complete_heads(struct definition *d, size_t heads, size_t kv_heads,
                                      struct error *e);

#endif
