/* endpoint_models: GET /v1/models and GET /v1/models/{model}. */
#include "server/http/endpoint_models.h"

#include <jansson.h>

#include "server/http/endpoint_json.h"

/* What only some models have. Takes the values; one that could not be made is no memory. */
static bool add(json_t *description, const char *key, json_t *value) {
  return json_object_set_new(description, key, value) == 0;
}

static bool add_rest(json_t *description, const struct model *m) {
  const struct layer_shape *s = &m->shape;
  if (m->place && !add(description, "place", json_string(m->place))) return false;
  if (s->score == SCORE_DOT && !add(description, "scale", json_real((double)s->scale)))
    return false;
  if (s->score == SCORE_ADDITIVE &&
      !add(description, "score_size", json_integer((json_int_t)s->score_size)))
    return false;
  if (s->rope_base > 0 && !add(description, "rope", json_pack("{s:f}", "base", s->rope_base)))
    return false;
  return s->relative_buckets == 0 ||
         add(description, "relative_bias",
             json_pack("{s:I, s:I, s:b}", "buckets", (json_int_t)s->relative_buckets,
                       "max_distance", (json_int_t)s->relative_distance, "bidirectional",
                       s->relative_both));
}

static json_t *describe(const struct model *m) {
  const struct layer_shape *s = &m->shape;
  json_t *description = json_pack(
      "{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:I, s:s, s:s, s:s, s:s}",
      "name", m->name, "score", m->score, "weighting", m->weighting, "projection", m->projection,
      "heads", (json_int_t)s->heads, "kv_heads", (json_int_t)s->kv_heads, "query_size",
      (json_int_t)s->query_size, "key_size", (json_int_t)s->key_size, "value_size",
      (json_int_t)s->value_size, "hidden", (json_int_t)(s->heads * s->head_size), "output_size",
      (json_int_t)s->output_size, "bias", m->bias, "causal", m->causal, "parameters",
      (json_int_t)m->parameters, "source", m->source, "layout", m->layout, "sha256", m->sha256,
      "engine", layer_engine(m->layer));
  if (description && add_rest(description, m)) return description;
  json_decref(description);
  return NULL;
}

char *endpoint_model_text(const struct model *m, size_t *length) {
  return endpoint_dump(describe(m), length);
}

char *endpoint_models_text(const struct registry *r, size_t *length) {
  return endpoint_list(r, describe, length);
}
