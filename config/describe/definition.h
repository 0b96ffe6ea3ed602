/* definition: what the configuration says about one model, read strictly from its JSON.
 *
 * definition_read checks what can be checked without the checkpoint: names, types, bounds, and
 * members that contradict each other. What is not said is settled once the family of the checkpoint
 * is known. Strings and `tensors` belong to the JSON, which must outlive the struct. */
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

/* Those that a definition may name; the others are a whole model's. */
#define DEFINITION_ROLES ((enum role)(ROLE_RELATIVE + 1))

enum { DEFINITION_HEADS_MAX = 4096, DEFINITION_LAYER_MAX = 9999 };

/* The values of keys that neither the definition nor a file has. */
enum {
  DEFINITION_ROPE_BASE = 10000,
  DEFINITION_RELATIVE_DISTANCE = 128, /* as in T5 */
  DEFINITION_RELATIVE_BUCKETS = 32    /* as in T5 */
};

struct hints; /* hints.h */

struct definition {
  const char *score, *weighting, *projection; /* static text */
  enum score compare;                         /* what `score` means in the core */
  bool scaled;                                /* `score` is "scaled_dot" */
  bool sigmoid;                               /* `weighting` is "sigmoid" */
  bool projected;                             /* `projection` is not "none" */
  bool grouped;                               /* `projection` is "grouped" */
  bool output_projected;                      /* as said; else as `projected` */
  size_t heads, kv_heads;                     /* 0: not said */
  size_t query_size, key_size, value_size, hidden, output_size, score_size; /* 0: not said */
  double scale;                                                             /* 0: not said */
  enum toggle causal, bias;

  enum toggle rope;
  double rope_base;                           /* 0: not said */
  enum toggle relative, relative_both;        /* is there a table, and does it look both ways? */
  size_t relative_distance, relative_buckets; /* 0: not said */

  const char *checkpoint; /* path as written, or NULL */
  const char *layout;     /* static text */
  const char *prefix;     /* NULL: not said */
  bool has_layer;
  size_t layer;
  bool all_layers;       /* it stands for many definitions (layers_all.h) */
  const json_t *tensors; /* object: role -> name; or NULL */

  bool random; /* never together with a checkpoint */
  uint64_t seed;

  /* What config.json says of the heads, where they are not said. definition_read leaves it NULL,
   * which is: nothing. */
  const struct hints *hints;
};

/* Does the layer have a matrix in this role? For ROLE_RELATIVE only once the definition is
 * settled. */
bool definition_has(const struct definition *d, enum role role);

/* STATUS_CONFIG with a detail that begins with the key and does not name the model. */
enum status definition_read(struct definition *d, const json_t *json, struct error *e);

/* Settles what was not said, except heads and kv_heads: of the toggles only `bias` may stay unsaid.
 * STATUS_CONFIG where members contradict each other. */
enum status definition_settle(struct definition *d, const struct definition_customs *customs,
                              struct error *e);

/* Settles heads and kv_heads; the arguments are what the checkpoint tells, or 0. */
enum status definition_settle_heads(struct definition *d, size_t heads, size_t kv_heads,
                                    struct error *e);

#endif
