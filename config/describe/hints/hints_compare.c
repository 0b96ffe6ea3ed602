/* hints_compare: compares a layer with config.json, key by key. */
#include "config/describe/hints/hints_compare.h"

#include <math.h>
#include <string.h>

#include "config/checkpoint/checkpoint.h"
#include "config/describe/definition.h"
#include "config/describe/definition_value.h"
#include "config/describe/guard_value.h"

static bool differ(double a, double b) { return fabs(a - b) > 1e-6 * fabs(b); }

/* --- values that a definition can have --- */

static void compare_count(const char *what, const char *key, size_t wanted, size_t is,
                          struct notes *n) {
  if (wanted && wanted != is)
    notes_add(n, "config.json says %zu %s, but here are %zu (set %s to confirm)", wanted, what, is,
              key);
}

void hints_compare_unsaid(const struct hints *h, const struct hints_served *c, struct notes *n) {
  const struct layer_shape *s = c->shape;
  if (!h->config) return;
  const struct hints_said said = hints_of(h, &c->at);
  const enum toggle causal = said.causal;
  if (said.ambiguous)
    notes_add(n,
              "config.json describes several models, and it is unknown which one has this layer");
  compare_count("heads", "heads", said.heads, s->heads, n);
  if (!c->said->kv_heads) compare_count("heads of keys", "kv_heads", said.kv_heads, s->kv_heads, n);
  if (s->relative_buckets && !c->said->relative_distance)
    compare_count("as relative_attention_max_distance", "relative_bias", said.distance,
                  s->relative_distance, n);
  if (causal != TOGGLE_UNSAID && c->said->causal == TOGGLE_UNSAID &&
      (causal == TOGGLE_ON) != c->causal)
    notes_add(
        n,
        "config.json says that the model is %s, but this definition is %s (set causal to confirm)",
        causal == TOGGLE_ON ? "causal" : "not causal", causal == TOGGLE_ON ? "not" : "causal");
  const double rope = said.rope_base, base = s->rope_base;
  if (!(rope > 0) || c->said->rope_base > 0 || (c->at.family && c->at.family->cross)) return;
  if (base > 0 && differ(rope, base))
    notes_add(n,
              "config.json says rope_theta %.15g, but the base here is %.15g (set rope to confirm)",
              rope, base);
  if (!(base > 0) && c->said->rope == TOGGLE_UNSAID)
    notes_add(n, "config.json has rope_theta, but queries and keys are not rotated here (set rope "
                 "to confirm)");
}

/* --- values that no definition can have --- */

static bool is_word_or_absent(const json_t *value, const char *word) {
  const char *text = json_string_value(value);
  return !value || json_is_null(value) || (text && strcmp(text, word) == 0);
}

/* Are these the usual rotary positions: unscaled, the same in all layers, over all columns of a
 * head? */
static bool is_plain_rope(const json_t *parameters) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)parameters, key, value) {
    if (json_is_object(value)) return false;
  }
  const json_t *part = json_object_get(parameters, "partial_rotary_factor");
  return is_word_or_absent(json_object_get(parameters, "rope_type"), "default") &&
         is_word_or_absent(json_object_get(parameters, "type"), "default") &&
         (!part || json_is_null(part) || guard_value_is_number(part, 1));
}

/* This layer's entry of a list, or NULL. */
static const json_t *layer_entry(const json_t *config, const struct hints_served *c,
                                 const char *key) {
  return c->at.numbered ? json_array_get(json_object_get(config, key), c->at.layer) : NULL;
}

/* Has the key of the guard a value that is not applied to this layer, and might change it? */
static bool is_unserved(const json_t *config, const struct hints_served *c, const struct guard *g) {
  const bool cross = c->at.family && c->at.family->cross;
  const json_t *value =
      g->value == GUARD_EACH ? layer_entry(config, c, g->key) : json_object_get(config, g->key);
  if (g->layers == GUARD_NO_LAYER || (cross && g->layers >= GUARD_ROTARY)) return false;
  if (g->moot && json_is_false(json_object_get(config, g->moot))) return false;
  switch (g->layers) {
  case GUARD_UNSCALED:
  case GUARD_DIVIDED:
    if (c->said->scale > 0) return false;
    if (g->layers == GUARD_DIVIDED && c->at.numbered && c->at.layer == 0) return false;
    break;
  case GUARD_ROTARY:
    if (!(c->shape->rope_base > 0)) return false;
    break;
  case GUARD_TURNS:
    return c->shape->rope_base > 0 && value && !is_plain_rope(value);
  case GUARD_REACH:
  case GUARD_KIND: {
    const json_t *kind = layer_entry(config, c, "layer_types");
    if (kind && is_word_or_absent(kind, "full_attention")) return false;
    if (g->layers == GUARD_KIND && is_word_or_absent(kind, "sliding_attention")) return false;
    break;
  }
  case GUARD_POSITIONS:
    if (c->said->rope != TOGGLE_UNSAID && is_word_or_absent(value, "rotary")) return false;
    break;
  default:
    break;
  }
  /* A layer also reads false values of other keys as off whose supported value is null or false. */
  const bool open = strcmp(g->only, "null") == 0 || strcmp(g->only, "false") == 0;
  return !guard_value_is(g, value, c->shape->head_size) && !(open && guard_value_is_off(value));
}

void hints_compare_unserved(const struct hints *h, const struct hints_served *c, struct notes *n) {
  const struct hints_said said = hints_of(h, &c->at);
  if (!said.config) return;
  if (said.type && c->at.family && !layout_family_fits(c->at.family, said.type))
    notes_add(n,
              "layout %s is not known to fit config.json's model_type %.40s: outputs may differ "
              "from the model's",
              c->at.family->layout, said.type);
  for (size_t i = 0; i < guard_count(); i++)
    if (is_unserved(said.config, c, guard_at(i)))
      notes_add(n, "config.json has %s, which is not applied: outputs may differ from the model's",
                guard_at(i)->key);
}
