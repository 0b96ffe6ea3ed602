/* hints_compare: compares a layer with config.json, key by key. */
#include "config/describe/hints_compare.h"

#include <math.h>
#include <string.h>

#include "config/checkpoint/checkpoint.h"
#include "config/describe/definition.h"
#include "config/describe/definition_value.h"

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
  const enum toggle causal = hints_causal(h, &c->at);
  if (!h->config) return;
  if (hints_ambiguous(h, &c->at))
    notes_add(n,
              "config.json describes several models, and it is unknown which one has this layer");
  compare_count("heads", "heads", hints_heads(h, &c->at), s->heads, n);
  if (!c->said->kv_heads)
    compare_count("heads of keys", "kv_heads", hints_kv_heads(h, &c->at), s->kv_heads, n);
  if (s->relative_buckets && !c->said->relative_distance)
    compare_count("as relative_attention_max_distance", "relative_bias", hints_distance(h, &c->at),
                  s->relative_distance, n);
  if (causal != TOGGLE_UNSAID && c->said->causal == TOGGLE_UNSAID &&
      (causal == TOGGLE_ON) != c->causal)
    notes_add(
        n,
        "config.json says that the model is %s, but this definition is %s (set causal to confirm)",
        causal == TOGGLE_ON ? "causal" : "not causal", causal == TOGGLE_ON ? "not" : "causal");
  const double rope = hints_rope_base(h, &c->at), base = s->rope_base;
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

static bool is_absent_or_off(const json_t *value) {
  return !value || json_is_null(value) || json_is_false(value) ||
         (json_is_number(value) && !differ(json_number_value(value) + 1, 1));
}

static bool is_number_or_absent(const json_t *value, double number) {
  return !value || json_is_null(value) ||
         (json_is_number(value) && !differ(json_number_value(value), number));
}

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
  return is_word_or_absent(json_object_get(parameters, "rope_type"), "default") &&
         is_word_or_absent(json_object_get(parameters, "type"), "default") &&
         is_number_or_absent(json_object_get(parameters, "partial_rotary_factor"), 1);
}

/* This layer's entry of a list, or NULL. */
static const json_t *layer_entry(const struct hints *h, const struct hints_served *c,
                                 const char *key) {
  return c->at.numbered ? json_array_get(hints_value(h, &c->at, key), c->at.layer) : NULL;
}

static void note_unserved(const char *key, struct notes *n) {
  notes_add(n, "config.json has %s, which is not applied: outputs may differ from the model's",
            key);
}

static void compare_scale(const struct hints *h, const struct hints_served *c, struct notes *n) {
  const double size = (double)c->shape->head_size;
  if (c->said->scale > 0) return;
  if (!is_number_or_absent(hints_value(h, &c->at, "query_pre_attn_scalar"), size))
    note_unserved("query_pre_attn_scalar", n);
  if (!is_number_or_absent(hints_value(h, &c->at, "attention_multiplier"), 1 / sqrt(size)))
    note_unserved("attention_multiplier", n);
  if (json_is_false(hints_value(h, &c->at, "scale_attn_weights")))
    note_unserved("scale_attn_weights", n);
  if (!is_absent_or_off(hints_value(h, &c->at, "scale_attn_by_inverse_layer_idx")) &&
      !(c->at.numbered && c->at.layer == 0))
    note_unserved("scale_attn_by_inverse_layer_idx", n);
}

static void compare_turns(const struct hints *h, const struct hints_served *c, struct notes *n) {
  static const char *const kinds[] = {"rope_scaling", "rope_parameters"};
  static const char *const parts[] = {"partial_rotary_factor", "rotary_pct"};
  const json_t *layers = hints_value(h, &c->at, "no_rope_layers");
  if (!(c->shape->rope_base > 0)) return;
  for (size_t i = 0; i < 2; i++) {
    const json_t *kind = hints_value(h, &c->at, kinds[i]);
    if (kind && !json_is_null(kind) && !is_plain_rope(kind)) note_unserved(kinds[i], n);
    if (!is_number_or_absent(hints_value(h, &c->at, parts[i]), 1)) note_unserved(parts[i], n);
  }
  /* 1 means that this layer has rope. */
  if (json_array_size(layers) > 0 && !is_number_or_absent(layer_entry(h, c, "no_rope_layers"), 1))
    note_unserved("no_rope_layers", n);
}

static void compare_reach(const struct hints *h, const struct hints_served *c, struct notes *n) {
  const json_t *kind = layer_entry(h, c, "layer_types");
  if (kind && is_word_or_absent(kind, "full_attention")) return;
  if (!is_absent_or_off(hints_value(h, &c->at, "sliding_window")) &&
      !json_is_false(hints_value(h, &c->at, "use_sliding_window")))
    note_unserved("sliding_window", n);
  if (kind && !is_word_or_absent(kind, "sliding_attention")) note_unserved("layer_types", n);
  if (!is_absent_or_off(hints_value(h, &c->at, "attention_chunk_size")))
    note_unserved("attention_chunk_size", n);
  if (!is_word_or_absent(hints_value(h, &c->at, "attention_type"), "original_full"))
    note_unserved("attention_type", n);
}

void hints_compare_unserved(const struct hints *h, const struct hints_served *c, struct notes *n) {
  static const char *const none[] = {"attn_logit_softcapping",
                                     "clip_qkv",
                                     "alibi",
                                     "use_alibi",
                                     "use_qk_norm",
                                     "qk_norm",
                                     "qk_layernorm"};
  if (!h->config || hints_ambiguous(h, &c->at)) return;
  const char *type = hints_type(h, &c->at);
  const char *const *fitting = type && c->at.family ? c->at.family->models : NULL;
  while (fitting && *fitting && strcmp(*fitting, type) != 0) fitting++;
  if (fitting && !*fitting)
    notes_add(n,
              "layout %s is not known to fit config.json's model_type %.40s: outputs may differ "
              "from the model's",
              c->at.family->layout, type);
  compare_scale(h, c, n);
  if (!c->at.family || !c->at.family->cross) {
    compare_turns(h, c, n);
    compare_reach(h, c, n);
    const json_t *kind = hints_value(h, &c->at, "position_embedding_type");
    if (!is_word_or_absent(kind, "absolute") &&
        !(is_word_or_absent(kind, "rotary") && c->said->rope != TOGGLE_UNSAID))
      note_unserved("position_embedding_type", n);
  }
  for (size_t i = 0; i < sizeof none / sizeof *none; i++)
    if (!is_absent_or_off(hints_value(h, &c->at, none[i]))) note_unserved(none[i], n);
}
