/* description: the JSON in which the server describes itself and its models. */
#include "server/describe/description.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "config/build/whole.h"
#include "core/base/size.h"
#include "server/describe/description_parts.h"
#include "server/describe/description_whole.h"
#include "server/describe/write_json.h"
#include "server/model/fields/stack_fields.h"
#include "server/route/find_model.h"
#include "server/text/real.h"
#include "server/watch/version.h"

/* --- /v1/models --- */

static json_t *describe_layer(const struct model *m) {
  const struct layer_shape *s = &m->shape;
  json_t *d =
      json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:I, s:s, s:s, "
                "s:s, s:s, s:s}",
                "name", m->name, "score", m->score, "weighting", m->weighting, "projection",
                m->projection, "heads", (json_int_t)s->heads, "kv_heads", (json_int_t)s->kv_heads,
                "query_size", (json_int_t)s->query_size, "key_size", (json_int_t)s->key_size,
                "value_size", (json_int_t)s->value_size, "hidden",
                (json_int_t)(s->heads * s->head_size), "output_size", (json_int_t)s->output_size,
                "bias", m->bias, "causal", m->causal, "parameters", (json_int_t)m->parameters,
                "source", m->source, "layout", m->layout, m->digest_name, m->digest, "compute",
                compute_names[m->compute], "engine", layer_engine(m->layer));
  bool good = d;
  if (m->place) good = good && add_member(d, "place", json_string(m->place));
  if (s->score == SCORE_DOT)
    good = good && add_member(d, "scale", json_real(real_of_float(s->scale)));
  if (s->score == SCORE_ADDITIVE)
    good = good && add_member(d, "score_size", json_integer((json_int_t)s->score_size));
  good = good && add_rope(d, s->rope_base);
  if (s->relative_buckets > 0)
    good =
        good && add_member(d, "relative_bias",
                           json_pack("{s:I, s:I, s:b}", "buckets", (json_int_t)s->relative_buckets,
                                     "max_distance", (json_int_t)s->relative_distance,
                                     "bidirectional", s->relative_both));
  return complete(d, good);
}

/* Adds the members of OpenAI's description of a model. */
static json_t *with_openai(json_t *d, const struct model *m) {
  return complete(d, d && add_member(d, "id", json_string(m->name)) &&
                         add_member(d, "object", json_string("model")) &&
                         add_member(d, "created", json_integer((json_int_t)m->loaded)) &&
                         add_member(d, "owned_by", json_string("attend")) &&
                         (!m->alias || add_member(d, "root", json_string(m->root->name))));
}

static json_t *describe_model(const struct model *m) {
  return m->whole ? description_whole(m) : describe_layer(m);
}

/* The list of models has no pieces: a large model has many. */
char *description_model(const struct model *m, size_t *length) {
  json_t *d = with_openai(describe_model(m), m);
  const struct whole *w = m->whole;
  if (w) d = complete(d, d && add_member(d, "pieces", description_pieces(w)));
  return write_json(d, length);
}

static json_t *listed_model(const void *registry, size_t i) {
  return describe_model(registry_at(registry, i));
}

static json_t *listed_openai(const void *registry, size_t i) {
  return with_openai(json_object(), registry_at(registry, i));
}

char *description_models(const struct registry *r, size_t *length) {
  const size_t count = registry_count(r);
  return write_json(json_pack("{s:o, s:s, s:o}", "models", make_list(count, listed_model, r),
                              "object", "list", "data", make_list(count, listed_openai, r)),
                    length);
}

/* --- /v2, the Open Inference Protocol --- */

char *description_v2_server(size_t *length) {
  return write_json(json_pack("{s:s, s:s, s:[s]}", "name", "attend", "version", version_number(),
                              "extensions", "binary_tensor_data"),
                    length);
}

static json_t *listed_name(const void *registry, size_t i) {
  return json_string(registry_at(registry, i)->name);
}

char *description_v2_models(const struct registry *r, size_t *length) {
  json_t *names = make_list(registry_count(r), listed_name, r);
  return write_json(json_pack("{s:o}", "models", names), length);
}

/* Describes a tensor. A length that each request chooses is -1. The protocol has no word for an
 * optional input: that is a parameter, which clients may ignore. */
static json_t *describe_tensor(const char *name, const char *datatype, json_t *shape,
                               bool optional) {
  json_t *t = json_pack("{s:s, s:s, s:o}", "name", name, "datatype", datatype, "shape", shape);
  return complete(t, !optional || add_member(t, "parameters", json_pack("{s:b}", "optional", 1)));
}

static json_t *describe_rows(const char *name, size_t width, bool optional) {
  return describe_tensor(name, "FP32", json_pack("[i, i, I]", -1, -1, (json_int_t)width), optional);
}

static json_t *describe_ids(const char *name, bool optional) {
  return describe_tensor(name, "INT64", json_pack("[i, i]", -1, -1), optional);
}

static bool append_tensor(json_t *list, json_t *tensor) {
  return json_array_append_new(list, tensor) == 0;
}

/* The input of a model without tokens is rows. */
static json_t *describe_whole_inputs(const struct whole *w) {
  const bool ids = w->vocabulary > 0;
  const size_t width = stack_form_embedded(stack_form(whole_reader(w)));
  json_t *list = json_array();
  bool good = !ids || append_tensor(list, describe_ids("input_ids", false));
  good = good && append_tensor(list, describe_ids("attention_mask", true)) &&
         (!w->types || append_tensor(list, describe_ids("token_type_ids", true))) &&
         append_tensor(list, describe_rows("inputs_embeds", width, ids));
  if (whole_is_pair(w))
    good = good && append_tensor(list, describe_ids("decoder_input_ids", true)) &&
           append_tensor(list, describe_ids("decoder_attention_mask", true));
  return complete(list, good);
}

static json_t *describe_whole_outputs(const struct whole *w) {
  const struct stack *reader = whole_reader(w), *last = whole_is_pair(w) ? w->decoder : reader;
  const size_t width = stack_form(reader)->width;
  json_t *list = json_array();
  bool good = append_tensor(list, describe_rows("last_hidden_state", width, false));
  if (stack_has_pooler(reader))
    good = good &&
           append_tensor(list, describe_tensor("pooler_output", "FP32",
                                               json_pack("[i, I]", -1, (json_int_t)width), true));
  if (stack_has_output(last))
    good = good &&
           append_tensor(list, describe_rows("logits", stack_form(last)->embedding.tokens, true));
  else if (whole_classes(w, WHOLE_HEAD_TOKENS) > 0)
    good = good && append_tensor(list, describe_rows("logits", w->classes, true));
  else if (whole_classes(w, WHOLE_HEAD_CLASSES) > 0)
    good =
        good &&
        append_tensor(list, describe_tensor("logits", "FP32",
                                            json_pack("[i, I]", -1, (json_int_t)w->classes), true));
  if (whole_is_pair(w))
    good = good && append_tensor(list, describe_rows("encoder_last_hidden_state", width, true));
  return complete(list, good);
}

char *description_v2_model(const struct model *m, size_t *length) {
  const struct layer_shape *s = &m->shape;
  json_t *inputs = NULL, *outputs = NULL;
  if (m->whole) {
    inputs = describe_whole_inputs(m->whole);
    outputs = describe_whole_outputs(m->whole);
  } else {
    inputs = json_pack("[o, o, o, o, o]", describe_rows("queries", s->query_size, false),
                       describe_rows("keys", s->key_size, s->key_size == s->query_size),
                       describe_rows("values", s->value_size, s->value_size == s->key_size),
                       describe_tensor("valid_lens", "INT32", json_pack("[i]", -1), true),
                       describe_tensor("mask", "BOOL", json_pack("[i, i, i]", -1, -1, -1), true));
    json_t *weights = json_pack("[i, I, i, i]", -1, (json_int_t)s->heads, -1, -1);
    outputs = json_pack("[o, o]", describe_rows("outputs", s->output_size, false),
                        describe_tensor("attention_weights", "FP32", weights, true));
  }
  return write_json(json_pack("{s:s, s:[s], s:s, s:o, s:o}", "name", m->name, "versions", "1",
                              "platform", "attend", "inputs", inputs, "outputs", outputs),
                    length);
}

char *description_v2_ready(const struct model *m, size_t *length) {
  return write_json(json_pack("{s:s, s:b}", "name", m->name, "ready", 1), length);
}

/* --- /info of text-embeddings-inference, which has one model --- */

/* {"0": "negative", …} or {"negative": 0, …} */
static json_t *describe_labels(const struct whole *w, bool by_name) {
  json_t *labels = json_object();
  bool good = true;
  for (size_t i = 0; good && i < w->classes; i++) {
    char number[24];
    snprintf(number, sizeof number, "%zu", i);
    json_t *value = by_name ? json_integer((json_int_t)i) : json_string(w->label[i]);
    good = add_member(labels, by_name ? w->label[i] : number, value);
  }
  return complete(labels, good);
}

char *description_tei(const struct registry *r, const struct config *c, size_t workers,
                      size_t *length, bool *found) {
  const struct model *m = find_model_of_texts(r);
  *found = m;
  if (!m) return NULL;
  const struct whole *w = m->whole;
  /* Its word for a pool that has another name there; without a pool its embeddings are means. */
  const char *pool = w->pool == STACK_POOL_LAST     ? "lasttoken"
                     : w->pool == STACK_POOL_SPARSE ? "splade"
                     : w->pool == STACK_POOL_NONE   ? stack_pool_names[STACK_POOL_MEAN]
                                                    : stack_pool_names[w->pool];
  json_t *type =
      whole_classes(w, WHOLE_HEAD_CLASSES) == 0
          ? json_pack("{s:{s:s}}", "embedding", "pooling", pool)
          : json_pack("{s:{s:o, s:o}}", w->classes == 1 ? "reranker" : "classifier", "id2label",
                      describe_labels(w, false), "label2id", describe_labels(w, true));
  /* A number that is never exceeded if there is no limit, and that each client can read. */
  const bool truncates = w->truncates && w->truncate != 0 && w->truncate != SIZE_MAX;
  size_t longest = w->longest ? w->longest : w->positions, tokens;
  if (truncates && (!longest || w->truncate < longest)) longest = w->truncate;
  if (!longest) longest = (size_t)INT32_MAX;
  if (!size_mul(longest, c->max_items, &tokens) || tokens > INT64_MAX) tokens = INT64_MAX;
  return write_json(
      json_pack("{s:s, s:s, s:s, s:s, s:o, s:I, s:I, s:I, s:n, s:I, s:b, s:I, s:s, s:n, s:n}",
                "model_id", m->name, "model_sha", m->digest, "model_dtype", "float32",
                "served_model_name", m->name, "model_type", type, "max_concurrent_requests",
                (json_int_t)c->max_queue, "max_input_length", (json_int_t)longest,
                "max_batch_tokens", (json_int_t)tokens, "max_batch_requests",
                "max_client_batch_size", (json_int_t)c->max_items, "auto_truncate",
                !w->truncates || w->truncate != 0, "tokenization_workers", (json_int_t)workers,
                "version", version_number(), "sha", "docker_label"),
      length);
}
