/* definition: the members of a layer's definition, and the values that they allow. The first
 * mistake is kept in `e`, and the reading continues: a definition with a mistake is not used. */
#include "config/describe/definition.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "config/document/nearest.h"
#include "config/document/text.h"
#include "config/settings/option.h"

enum { SIZE_LIMIT = 1 << 20, BUCKETS_MAX = 4096 };

static const double rope_base_max = 1e12;

static const char *const scores[] = {"scaled_dot", "dot", "additive", "bilinear", NULL};
static const char *const weightings[] = {"softmax", "sigmoid", NULL};
static const char *const projections[] = {"linear", "none", "grouped", NULL};

static const char *const members[] = {"heads",
                                      "kv_heads",
                                      "score",
                                      "scale",
                                      "weighting",
                                      "projection",
                                      "output_projection",
                                      "query_size",
                                      "key_size",
                                      "hidden",
                                      "output_size",
                                      "value_size",
                                      "score_size",
                                      "causal",
                                      "bias",
                                      "checkpoint",
                                      "layout",
                                      "prefix",
                                      "layer",
                                      "layers",
                                      "tensors",
                                      "rope",
                                      "relative_bias",
                                      "compute",
                                      "random",
                                      "transformer",
                                      NULL};

const char *definition_role_name(enum role role) {
  static const char *const names[DEFINITION_ROLES] = {[ROLE_QUERY] = "query",
                                                      [ROLE_KEY] = "key",
                                                      [ROLE_VALUE] = "value",
                                                      [ROLE_OUTPUT] = "output",
                                                      [ROLE_SCORE_QUERY] = "score.query",
                                                      [ROLE_SCORE_KEY] = "score.key",
                                                      [ROLE_SCORE_VECTOR] = "score.vector",
                                                      [ROLE_SCORE_WEIGHT] = "score.weight",
                                                      [ROLE_RELATIVE] = "relative_bias"};
  return names[role];
}

bool definition_has(const struct definition *d, enum role role) {
  if (role >= DEFINITION_ROLES) return false;
  if (role < ROLE_OUTPUT) return d->projected;
  if (role == ROLE_OUTPUT) return d->output_projected;
  if (role == ROLE_RELATIVE) return d->relative == TOGGLE_ON;
  return d->compare == (role == ROLE_SCORE_WEIGHT ? SCORE_BILINEAR : SCORE_ADDITIVE);
}

/* Reads an object, or false, which overrides a layout's default. True if it is an object. */
static bool read_object_or_false(const json_t *json, const char *key, const char *const *known,
                                 enum toggle *out, struct error *e) {
  const json_t *value = json_object_get(json, key);
  struct error inside = {0};
  if (!value) return false;
  *out = json_is_false(value) ? TOGGLE_OFF : TOGGLE_ON;
  if (json_is_false(value)) return false;
  if (!json_is_object(value)) definition_value_refuse(key, "an object or false", value, e);
  definition_value_names(value, known, &inside);
  if (inside.status) error_set(e, inside.status, "%s: %.400s", key, inside.detail);
  return json_is_object(value);
}

static void read_rope(const json_t *json, struct definition *d, struct error *e) {
  static const char *const known[] = {"base", NULL};
  if (!read_object_or_false(json, "rope", known, &d->rope, e)) return;
  const json_t *value = json_object_get(json_object_get(json, "rope"), "base");
  if (!value) return;
  d->rope_base = json_number_value(value);
  if (!json_is_number(value) || !(d->rope_base > 1 && d->rope_base <= rope_base_max))
    error_set(e, STATUS_CONFIG, "rope: base needs a number above 1, at most %g", rope_base_max);
}

static void read_relative(const json_t *json, struct definition *d, struct error *e) {
  static const char *const known[] = {"max_distance", "bidirectional", "buckets", NULL};
  struct error inside = {0};
  if (!read_object_or_false(json, "relative_bias", known, &d->relative, e)) return;
  const json_t *value = json_object_get(json, "relative_bias");
  definition_value_count(value, "max_distance", 1, SIZE_LIMIT, &d->relative_distance, &inside);
  definition_value_count(value, "buckets", 2, BUCKETS_MAX, &d->relative_buckets, &inside);
  definition_value_toggle(value, "bidirectional", &d->relative_both, &inside);
  if (inside.status) error_set(e, inside.status, "relative_bias: %.400s", inside.detail);
}

static void read_layer(const json_t *json, struct definition *d, struct error *e) {
  const json_t *one = json_object_get(json, "layer"), *all = json_object_get(json, "layers");
  const char *word = json_string_value(all);
  d->has_layer = one != NULL;
  d->all_layers = all != NULL;
  if (json_is_string(one)) {
    error_set(e, STATUS_CONFIG,
              "layer: needs an integer, not a string; \"layers\": \"all\" makes a model of each");
  } else if (all && !(word && strcmp(word, "all") == 0)) {
    error_set(e, STATUS_CONFIG,
              "layers: needs \"all\", which makes a model of each; \"layer\" is the number of one");
  } else if (one && all) {
    error_set(e, STATUS_CONFIG, "layers: cannot be combined with layer");
  }
  definition_value_count(json, "layer", 0, DEFINITION_LAYER_MAX, &d->layer, e);
}

static void read_tensors(const json_t *json, struct definition *d, struct error *e) {
  json_t *value = json_object_get(json, "tensors");
  const char *role;
  json_t *name;
  if (!value) return;
  if (!json_is_object(value)) definition_value_refuse("tensors", "an object", value, e);
  json_object_foreach(value, role, name) {
    char hint[NEAREST_HINT];
    struct nearest near;
    nearest_init(&near, role);
    for (enum role r = 0; r < DEFINITION_ROLES; r++) nearest_offer(&near, definition_role_name(r));
    if (!near.name || strcmp(near.name, role) != 0) {
      error_set(e, STATUS_CONFIG, "tensors: unknown role \"%.60s\"%s", role,
                nearest_hint(&near, hint));
    } else if (!json_is_string(name) || !json_string_length(name)) {
      error_set(e, STATUS_CONFIG, "tensors: %s needs the name of a tensor", role);
    }
  }
  d->tensors = value;
}

/* --- contradictions --- */

/* Rejects a tensor that is named but not used. */
static void check_tensors(const struct definition *d, struct error *e) {
  for (enum role role = 0; role < DEFINITION_ROLES; role++) {
    const char *name = definition_role_name(role);
    if (!json_object_get(d->tensors, name) || definition_has(d, role)) continue;
    if (role == ROLE_RELATIVE) {
      error_set(e, STATUS_CONFIG, "tensors: relative_bias does not apply with relative_bias false");
    } else if (role == ROLE_OUTPUT) {
      error_set(e, STATUS_CONFIG, "tensors: output does not apply without an output projection");
    } else {
      const bool of_score = role >= ROLE_PROJECTIONS;
      error_set(e, STATUS_CONFIG, "tensors: %s does not apply with %s %s", name,
                of_score ? "score" : "projection", of_score ? d->score : d->projection);
    }
  }
}

static void check_source(const json_t *json, const struct definition *d, struct error *e) {
  static const char *const of_checkpoints[] = {"layout", "prefix", "layer", "layers", "tensors"};
  if (d->checkpoint && d->random)
    error_set(e, STATUS_CONFIG, "random: cannot be combined with a checkpoint");
  if (d->checkpoint && !*d->checkpoint) error_set(e, STATUS_CONFIG, "checkpoint: needs a path");
  for (size_t i = 0; !d->checkpoint && i < sizeof of_checkpoints / sizeof *of_checkpoints; i++)
    if (json_object_get(json, of_checkpoints[i]))
      error_set(e, STATUS_CONFIG, "%s: does not apply without a checkpoint", of_checkpoints[i]);
  if (!d->checkpoint && !d->random) {
    if (d->projected || d->output_projected)
      error_set(e, STATUS_CONFIG, "needs a checkpoint, or random, for its projections");
    if (d->compare != SCORE_DOT)
      error_set(e, STATUS_CONFIG, "needs a checkpoint, or random, for the parameters of score %s",
                d->score);
    if (d->relative == TOGGLE_ON)
      error_set(e, STATUS_CONFIG, "relative_bias: needs a checkpoint, or random, for its table");
  }
  if (d->checkpoint && d->relative_buckets)
    error_set(e, STATUS_CONFIG,
              "relative_bias: buckets: cannot be combined with a checkpoint, which contains them");
  if (d->tensors && (strcmp(d->layout, "auto") != 0 || d->has_layer || d->all_layers))
    error_set(e, STATUS_CONFIG, "tensors: cannot be combined with a layout or a layer");
  check_tensors(d, e);
}

/* --- all of it --- */

enum status definition_read(struct definition *d, const json_t *json, struct error *e) {
  enum toggle output = TOGGLE_UNSAID;
  const char *layouts[LAYOUT_FAMILIES_MOST + 2] = {"auto"};
  layout_family_list(layouts + 1);
  *d = (struct definition){.compare = SCORE_DOT};
  if (!json_is_object(json))
    return error_set(e, STATUS_CONFIG, "needs an object, not %s", option_json_kind(json));
  definition_value_names(json, members, e);
  definition_value_count(json, "heads", 1, DEFINITION_HEADS_MAX, &d->heads, e);
  definition_value_count(json, "kv_heads", 1, DEFINITION_HEADS_MAX, &d->kv_heads, e);
  definition_value_choice(json, "score", scores, &d->score, e);
  definition_value_choice(json, "weighting", weightings, &d->weighting, e);
  definition_value_choice(json, "projection", projections, &d->projection, e);
  definition_value_choice(json, "layout", layouts, &d->layout, e);
  definition_value_count(json, "query_size", 1, SIZE_LIMIT, &d->query_size, e);
  definition_value_count(json, "key_size", 1, SIZE_LIMIT, &d->key_size, e);
  definition_value_count(json, "value_size", 1, SIZE_LIMIT, &d->value_size, e);
  definition_value_count(json, "hidden", 1, SIZE_LIMIT, &d->hidden, e);
  definition_value_count(json, "output_size", 1, SIZE_LIMIT, &d->output_size, e);
  definition_value_count(json, "score_size", 1, SIZE_LIMIT, &d->score_size, e);
  const json_t *scale = json_object_get(json, "scale");
  d->scale = json_number_value(scale);
  if (scale && !json_is_number(scale))
    definition_value_refuse("scale", "a number", scale, e);
  else if (scale && !(d->scale >= (double)FLT_MIN && d->scale <= (double)FLT_MAX))
    error_set(e, STATUS_CONFIG, "scale: %g is not a positive float32", d->scale);
  definition_value_toggle(json, "causal", &d->causal, e);
  definition_value_toggle(json, "bias", &d->bias, e);
  definition_value_toggle(json, "output_projection", &output, e);
  read_rope(json, d, e);
  read_relative(json, d, e);
  d->has_compute = definition_value_compute(json, &d->compute, e);
  definition_value_string(json, "checkpoint", &d->checkpoint, e);
  definition_value_string(json, "prefix", &d->prefix, e);
  read_layer(json, d, e);
  read_tensors(json, d, e);
  definition_value_seed(json, &d->random, &d->seed, e);

  if (strcmp(d->score, "additive") == 0) d->compare = SCORE_ADDITIVE;
  if (strcmp(d->score, "bilinear") == 0) d->compare = SCORE_BILINEAR;
  d->scaled = strcmp(d->score, "scaled_dot") == 0;
  d->sigmoid = strcmp(d->weighting, "sigmoid") == 0;
  d->grouped = strcmp(d->projection, "grouped") == 0;
  d->projected = strcmp(d->projection, "none") != 0;
  d->output_projected = output == TOGGLE_UNSAID ? d->projected : output == TOGGLE_ON;
  if (d->relative == TOGGLE_UNSAID &&
      json_object_get(d->tensors, definition_role_name(ROLE_RELATIVE)))
    d->relative = TOGGLE_ON; /* a table that `tensors` names is used */
  if (d->scale > 0 && !d->scaled)
    error_set(e, STATUS_CONFIG, "scale: does not apply with score %s", d->score);
  if (d->score_size && d->compare != SCORE_ADDITIVE)
    error_set(e, STATUS_CONFIG, "score_size: does not apply with score %s", d->score);
  check_source(json, d, e);
  return e->status;
}

static enum toggle toggle_or_custom(enum toggle said, bool custom) {
  if (said != TOGGLE_UNSAID) return said;
  return custom ? TOGGLE_ON : TOGGLE_OFF;
}

enum status definition_complete(struct definition *d, const struct definition_customs *customs,
                                struct error *e) {
  d->causal = toggle_or_custom(d->causal, customs->causal);
  d->rope = toggle_or_custom(d->rope, customs->rope);
  d->relative = toggle_or_custom(d->relative, customs->relative);
  /* A table in a family without tables looks both ways, as in an encoder. */
  d->relative_both =
      toggle_or_custom(d->relative_both, !customs->relative || customs->relative_both);
  if (!(d->scale > 0) && d->scaled && customs->unscaled) d->scale = 1;
  if (!(d->rope_base > 0)) d->rope_base = DEFINITION_ROPE_BASE;
  if (!d->relative_distance) d->relative_distance = DEFINITION_RELATIVE_DISTANCE;
  if (!d->relative_buckets) d->relative_buckets = DEFINITION_RELATIVE_BUCKETS;
  if (d->rope == TOGGLE_ON && d->compare != SCORE_DOT)
    error_set(e, STATUS_CONFIG, "rope: does not apply with score %s", d->score);
  return e->status;
}

enum status definition_complete_heads(struct definition *d, size_t heads, size_t kv_heads,
                                      struct error *e) {
  if (!d->heads) d->heads = heads;
  if (!d->heads && d->projected) { /* required to cut the matrices into heads */
    const char *pooling =
        d->compare == SCORE_DOT ? "" : "; plain attention pooling has projection none";
    if (!d->checkpoint)
      error_set(e, STATUS_CONFIG, "heads: required with projection %s%s", d->projection, pooling);
    else
      error_set(e, STATUS_CONFIG,
                "heads: required with projection %s, and no config.json beside the checkpoint "
                "contains it%s; look for num_heads or num_attention_heads where the checkpoint is "
                "from (attend inspect %.100s --models --heads N writes it)",
                d->projection, pooling, text_tail(d->checkpoint));
  }
  if (!d->heads) d->heads = 1;
  if (heads && d->heads != heads)
    error_set(e, STATUS_CONFIG, "heads: %zu, but the table of relative positions is for %zu",
              d->heads, heads);
  if (!d->kv_heads) d->kv_heads = kv_heads ? kv_heads : d->heads;
  if (d->heads % d->kv_heads != 0)
    error_set(e, STATUS_CONFIG, "kv_heads: %zu does not divide %zu heads", d->kv_heads, d->heads);
  return e->status;
}
