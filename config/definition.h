/* definition: what the configuration says about one model, read strictly from its JSON.
 *
 * Only what can be said without the checkpoint is judged here: names, types, bounds, and keys that
 * contradict each other. Strings and `tensors` belong to the JSON, which must outlive the struct.
 */
#ifndef CONFIG_DEFINITION_H
#define CONFIG_DEFINITION_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/layer.h"

/* Roles as `tensors` and the plain layout call them: "query", "key", "value", "output",
 * "score.query", "score.key", "score.vector", "score.weight". */
const char *definition_role(enum role role);

enum toggle { TOGGLE_UNSAID, TOGGLE_OFF, TOGGLE_ON };

struct definition {
  const char *score, *weighting, *projection; /* static text */
  enum score compare;                         /* what `score` comes to in the core */
  bool scaled;                                /* `score` is "scaled_dot" */
  bool sigmoid;                               /* `weighting` is "sigmoid" */
  bool projected;                             /* `projection` is not "none" */
  bool grouped;                               /* it is "grouped" */
  bool output_projected;                      /* as said, else by the projection */
  size_t heads, kv_heads;
  size_t query_size, key_size, value_size, hidden, output_size, score_size; /* 0: not said */
  double scale;                                                             /* 0: not said */
  bool causal;
  enum toggle bias;

  const char *checkpoint; /* path as written, or NULL */
  const char *layout;     /* static text */
  const char *prefix;     /* NULL: not said */
  bool has_layer;
  size_t layer;
  const json_t *tensors; /* object: role -> name; or NULL */

  bool random; /* never together with a checkpoint */
  uint64_t seed;
};

/* Does the layer have a matrix in this role? */
bool definition_has(const struct definition *d, enum role role);

/* STATUS_CONFIG with a detail that begins with the key; the model is not named in it. */
enum status definition_read(struct definition *d, const json_t *json, struct error *e);

#endif
