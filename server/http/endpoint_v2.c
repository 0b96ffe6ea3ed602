/* endpoint_v2: what the Open Inference Protocol says of the server and its models. */
#include "server/http/endpoint_v2.h"

#include <jansson.h>

#include "server/http/endpoint_json.h"
#include "server/watch/version.h"

char *endpoint_v2_server_text(size_t *length) {
  return endpoint_dump(json_pack("{s:s, s:s, s:[s]}", "name", "attend", "version", version_number(),
                                 "extensions", "binary_tensor_data"),
                       length);
}

static json_t *name_of(const struct model *m) { return json_string(m->name); }

char *endpoint_v2_models_text(const struct registry *r, size_t *length) {
  return endpoint_list(r, name_of, length);
}

/* One tensor of the model: its lengths are -1 where each request has its own. The protocol has no
 * word for what may be left out: that is a parameter, which clients may ignore. */
static json_t *tensor(const char *name, const char *datatype, json_t *shape, bool optional) {
  json_t *t = json_pack("{s:s, s:s, s:o}", "name", name, "datatype", datatype, "shape", shape);
  if (!optional || json_object_set_new(t, "parameters", json_pack("{s:b}", "optional", 1)) == 0)
    return t;
  json_decref(t);
  return NULL;
}

static json_t *rows(const char *name, size_t width, bool optional) {
  return tensor(name, "FP32", json_pack("[i, i, I]", -1, -1, (json_int_t)width), optional);
}

static json_t *inputs(const struct layer_shape *s) {
  return json_pack("[o, o, o, o, o]", rows("queries", s->query_size, false),
                   rows("keys", s->key_size, s->key_size == s->query_size),
                   rows("values", s->value_size, s->value_size == s->key_size),
                   tensor("valid_lens", "INT32", json_pack("[i]", -1), true),
                   tensor("mask", "BOOL", json_pack("[i, i, i]", -1, -1, -1), true));
}

static json_t *outputs(const struct layer_shape *s) {
  json_t *shape = json_pack("[i, I, i, i]", -1, (json_int_t)s->heads, -1, -1);
  return json_pack("[o, o]", rows("outputs", s->output_size, false),
                   tensor("attention_weights", "FP32", shape, true));
}

char *endpoint_v2_model_text(const struct model *m, size_t *length) {
  return endpoint_dump(json_pack("{s:s, s:[s], s:s, s:o, s:o}", "name", m->name, "versions", "1",
                                 "platform", "attend", "inputs", inputs(&m->shape), "outputs",
                                 outputs(&m->shape)),
                       length);
}

char *endpoint_v2_model_ready_text(const struct model *m, size_t *length) {
  return endpoint_dump(json_pack("{s:s, s:b}", "name", m->name, "ready", 1), length);
}
