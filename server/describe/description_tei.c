/* description_tei: the server as text-embeddings-inference describes itself, which has one model.
 */
#include <stdio.h>

#include "config/build/whole.h"
#include "core/base/size.h"
#include "server/describe/description.h"
#include "server/describe/description_parts.h"
#include "server/route/find_model.h"
#include "server/watch/version.h"

/* {"0": "negative", …} or {"negative": 0, …} */
static json_t *describe_labels(const struct whole *w, bool by_name) {
  json_t *labels = json_object();
  bool good = labels;
  for (size_t i = 0; good && i < w->classes; i++) {
    char number[24];
    snprintf(number, sizeof number, "%zu", i);
    json_t *value = by_name ? json_integer((json_int_t)i) : json_string(w->label[i]);
    good = json_object_set_new(labels, by_name ? w->label[i] : number, value) == 0;
  }
  if (good) return labels;
  json_decref(labels);
  return NULL;
}

/* It has a word of its own for one of our pools; what has no pool is pooled by the mean. */
static const char *pooling(enum stack_pool pool) {
  if (pool == STACK_POOL_LAST) return "lasttoken";
  return stack_pool_names[pool == STACK_POOL_NONE ? STACK_POOL_MEAN : pool];
}

static json_t *describe_type(const struct whole *w) {
  if (w->classes == 0) return json_pack("{s:{s:s}}", "embedding", "pooling", pooling(w->pool));
  return json_pack("{s:{s:o, s:o}}", w->classes == 1 ? "reranker" : "classifier", "id2label",
                   describe_labels(w, false), "label2id", describe_labels(w, true));
}

/* A number that is never exceeded where there is no limit, and that each client can read. */
static size_t longest(const struct whole *w) {
  const bool said = w->truncates && w->truncate != 0 && w->truncate != SIZE_MAX;
  size_t most = w->longest ? w->longest : w->positions;
  if (said && (!most || w->truncate < most)) most = w->truncate;
  return most ? most : (size_t)INT32_MAX;
}

static json_t *describe(const struct model *m, const struct config *c, size_t workers) {
  const struct whole *w = m->whole;
  const size_t length = longest(w);
  size_t tokens;
  if (!size_mul(length, c->max_items, &tokens) || tokens > INT64_MAX) tokens = INT64_MAX;
  return json_pack("{s:s, s:s, s:s, s:s, s:o, s:I, s:I, s:I, s:n, s:I, s:b, s:I, s:s, s:n, s:n}",
                   "model_id", m->name, "model_sha", m->digest, "model_dtype", "float32",
                   "served_model_name", m->name, "model_type", describe_type(w),
                   "max_concurrent_requests", (json_int_t)c->max_queue, "max_input_length",
                   (json_int_t)length, "max_batch_tokens", (json_int_t)tokens, "max_batch_requests",
                   "max_client_batch_size", (json_int_t)c->max_items, "auto_truncate",
                   !w->truncates || w->truncate != 0, "tokenization_workers", (json_int_t)workers,
                   "version", version_number(), "sha", "docker_label");
}

char *description_tei(const struct registry *r, const struct config *c, size_t workers,
                      size_t *length, bool *found) {
  const struct model *m = find_model_of_texts(r);
  *found = m;
  return m ? description_write(describe(m, c, workers), length) : NULL;
}
