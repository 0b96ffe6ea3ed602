/* whole_modules: reads modules.json, and the folders that it names. */
#include "config/describe/whole_modules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/describe/definition_value.h"
#include "config/document/file.h"
#include "config/document/text.h"

/* The modules in their only possible order; only a model is before a score. */
enum module {
  MODULE_TRANSFORMER,
  MODULE_POOLING,
  MODULE_DENSE,
  MODULE_MASK, /* of vectors of rows, as the ones around it: then there is no pooling */
  MODULE_NORMALIZE,
  MODULE_SCORE,
  MODULE_NONE
};

/* A module as modules.json names it. */
struct whole_module {
  const char *folder; /* of all modules */
  const char *path;   /* relative to it; "" is the folder itself */
  const char *type;
  const char *name; /* its last word: "Pooling" of "sentence_transformers.models.Pooling" */
  enum module is;
  bool pylate; /* whether it is of PyLate */
};

/* A new string; NULL: no memory. */
static char *path_of(const struct whole_module *m, const char *name, struct error *e) {
  char *folder = *m->path ? file_path(m->folder, m->path) : strdup(m->folder);
  char *path = folder ? file_path(folder, name) : NULL;
  free(folder);
  if (!path) error_no_memory(e);
  return path;
}

enum { SIZE_MOST = 1 << 20 };

static size_t size_of(const json_t *config, const char *key, struct error *e) {
  const json_int_t size = json_integer_value(json_object_get(config, key));
  if (size < 1 || size > SIZE_MOST)
    error_set(e, STATUS_CONFIG, "%s: needs a size, an integer from 1 to %d", key, SIZE_MOST);
  return (size_t)size;
}

static bool flag_of(const json_t *config, const char *key, bool missing, struct error *e) {
  const json_t *value = json_object_get(config, key);
  if (value && !json_is_boolean(value)) error_set(e, STATUS_CONFIG, "%s: needs true or false", key);
  return value ? json_is_true(value) : missing;
}

/* --- pooling --- */

/* The mode that a key of the configuration chooses: newer files have one word, older ones a flag
 * for each mode. STACK_POOL_NONE: not supported. */
static enum stack_pool mode_of(const char *key, const json_t *value) {
  static const struct {
    const char *flag, *word;
    enum stack_pool is;
  } modes[] = {{"pooling_mode_cls_token", "cls", STACK_POOL_CLS},
               {"pooling_mode_mean_tokens", "mean", STACK_POOL_MEAN},
               {"pooling_mode_max_tokens", "max", STACK_POOL_MAX},
               {"pooling_mode_lasttoken", "lasttoken", STACK_POOL_LAST},
               {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens",
                STACK_POOL_MEAN_SQRT_LEN},
               {"pooling_mode_weightedmean_tokens", "weightedmean", STACK_POOL_WEIGHTED_MEAN}};
  const char *word = json_string_value(value);
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    const bool is = word ? strcmp(key, "pooling_mode") == 0 && strcmp(word, modes[i].word) == 0
                         : json_is_true(value) && strcmp(key, modes[i].flag) == 0;
    if (is) return modes[i].is;
  }
  return STACK_POOL_NONE;
}

static enum status read_pooling(struct whole_source *s, const json_t *config, struct error *e) {
  const char *key;
  json_t *value;
  if (json_object_get(config, "word_embedding_dimension"))
    s->pool_width = size_of(config, "word_embedding_dimension", e);
  json_object_foreach((json_t *)config, key, value) {
    if (strncmp(key, "pooling_mode", 12) != 0 || json_is_false(value)) continue;
    const enum stack_pool mode = mode_of(key, value);
    if (mode == STACK_POOL_NONE) return error_set(e, STATUS_CONFIG, "%.60s is not supported", key);
    if (s->pool != STACK_POOL_NONE)
      return error_set(e, STATUS_CONFIG, "%.60s: several modes together are not supported", key);
    s->pool = mode;
  }
  if (s->pool == STACK_POOL_NONE) error_set(e, STATUS_CONFIG, "contains no mode");
  s->prompt_left_out = !flag_of(config, "include_prompt", true, e);
  return e->status;
}

/* The word of a key that is one of two; absent: the first. Returns whether it is the second. */
static bool second_of(const json_t *config, const char *key, const char *first, const char *second,
                      struct error *e) {
  const json_t *value = json_object_get(config, key);
  const char *word = json_string_value(value);
  if (!value || (word && strcmp(word, first) == 0)) return false;
  if (!word || strcmp(word, second) != 0)
    error_set(e, STATUS_CONFIG, "%s: \"%.60s\" is not supported; supported: %s, %s", key,
              word ? word : "", first, second);
  return true;
}

/* SpladePooling. Its word log1p_relu means the logarithm of the logarithm: one is always applied.
 */
static enum status read_sparse(struct whole_source *s, const json_t *config, struct error *e) {
  s->pool = STACK_POOL_SPARSE;
  s->sparse.sum = second_of(config, "pooling_strategy", "max", "sum", e);
  s->sparse.twice = second_of(config, "activation_function", "relu", "log1p_relu", e);
  return e->status;
}

/* --- a dense layer --- */

/* Rejects a module whose input or output is not `only`. */
static void check_name(const json_t *config, const char *key, const char *only, struct error *e) {
  const json_t *value = json_object_get(config, key);
  const char *name = json_string_value(value);
  if (value && !json_is_null(value) && !(name && strcmp(name, only) == 0))
    error_set(e, STATUS_CONFIG, "%s: \"%.80s\" is not supported; supported: %s", key,
              name ? name : "", only);
}

/* The same of a module after the pooling, or of one that has vectors of rows; `to`: its output, if
 * that is another one. */
static void check_names(const struct whole_source *s, const json_t *config, const char *to,
                        struct error *e) {
  const char *only = s->each ? "token_embeddings" : "sentence_embedding";
  check_name(config, "module_input_name", only, e);
  check_name(config, "module_output_name", to ? to : only, e);
}

static bool makes_scores(const json_t *config) {
  const char *name = json_string_value(json_object_get(config, "module_output_name"));
  return name && strcmp(name, "scores") == 0;
}

/* Checks a layer that makes the scores of a cross-encoder; it is a classifier of the pool. */
static enum status check_scores(struct whole_source *s, const struct whole_dense *d,
                                struct error *e) {
  if (s->fixed || s->each || s->dense->file)
    error_set(e, STATUS_CONFIG,
              "module_output_name: scores are only supported directly after Transformer and "
              "Pooling");
  if (d->tanh) error_set(e, STATUS_CONFIG, "activation_function: of scores must be Identity");
  if (d->residual) error_set(e, STATUS_CONFIG, "use_residual: not supported for scores");
  if (s->prompt_left_out)
    error_set(e, STATUS_CONFIG, "include_prompt: false is not supported for scores");
  s->scored = s->pool;
  s->pool = STACK_POOL_NONE;
  return e->status;
}

static enum status read_dense(struct whole_source *s, const struct whole_module *m,
                              const json_t *config, struct error *e) {
  const bool scores = makes_scores(config);
  struct whole_dense *d = &s->dense[scores ? WHOLE_DENSE_SCORES : 0];
  while (d->file) d++;
  const char *act = json_string_value(json_object_get(config, "activation_function"));
  if (!act) act = "";
  d->stem = "linear.";
  d->in = size_of(config, "in_features", e);
  d->out = size_of(config, "out_features", e);
  d->bias = flag_of(config, "bias", true, e);
  d->residual = flag_of(config, "use_residual", false, e);
  check_names(s, config, scores ? "scores" : NULL, e);
  d->tanh = strcmp(act, "torch.nn.modules.activation.Tanh") == 0;
  if (!d->tanh && strcmp(act, "torch.nn.modules.linear.Identity") != 0)
    error_set(e, STATUS_CONFIG,
              "activation_function: \"%.80s\" is not supported; supported: Tanh, Identity", act);
  if (scores && !e->status) check_scores(s, d, e);
  char *path = e->status ? NULL : path_of(m, "", e);
  if (path) d->file = checkpoint_open(path, e);
  free(path);
  return e->status;
}

/* --- lengths of 1 --- */

static enum status read_normalize(const struct whole_source *s, const json_t *config,
                                  struct error *e) {
  check_names(s, config, NULL, e);
  if (s->each && !json_object_get(config, "module_input_name"))
    error_set(e, STATUS_CONFIG, "module_input_name: required: token_embeddings");
  return e->status;
}

/* --- the score of a causal reranker --- */

static int64_t token_of(const json_t *config, const char *key, struct error *e) {
  const json_t *value = json_object_get(config, key);
  if (!json_is_integer(value) || json_integer_value(value) < 0)
    error_set(e, STATUS_CONFIG, "%s: needs a token id, an integer from 0", key);
  return json_integer_value(value);
}

static enum status read_score(struct whole_source *s, const json_t *config, struct error *e) {
  static const char *const keys[] = {"true_token_id", "false_token_id", "module_input_name", NULL};
  struct whole_logit_score *score = &s->logit_score;
  const json_t *other = json_object_get(config, keys[1]);
  definition_value_names(config, keys, e);
  score->token[score->tokens++] = token_of(config, keys[0], e);
  if (other && !json_is_null(other)) score->token[score->tokens++] = token_of(config, keys[1], e);
  check_name(config, keys[2], "causal_logits", e);
  return e->status;
}

/* --- the list --- */

static bool is_named(const struct whole_module *m, const char *name) {
  return strcmp(m->name, name) == 0;
}

/* Reads an entry of modules.json. */
static enum status read_entry(const json_t *entry, struct whole_module *m, struct error *e) {
  static const struct {
    const char *name;
    enum module is;
  } names[] = {{"Transformer", MODULE_TRANSFORMER},
               {"MLMTransformer", MODULE_TRANSFORMER},
               {"StaticEmbedding", MODULE_TRANSFORMER},
               {"Pooling", MODULE_POOLING},
               {"SpladePooling", MODULE_POOLING},
               {"Dense", MODULE_DENSE},
               {"MultiVectorMask", MODULE_MASK},
               {"Normalize", MODULE_NORMALIZE},
               {"LogitScore", MODULE_SCORE}};
  m->type = json_string_value(json_object_get(entry, "type"));
  m->path = json_string_value(json_object_get(entry, "path"));
  if (!m->type || !m->path)
    return error_set(e, STATUS_CONFIG, "modules.json: needs a type and a path for each module");
  if (strlen(m->path) >= WHOLE_MODULES_PATH || m->path[0] == '/' || strstr(m->path, ".."))
    return error_set(e, STATUS_CONFIG,
                     "modules.json: the path \"%.100s\" does not lie within the folder", m->path);
  m->pylate = strncmp(m->type, "pylate.", 7) == 0;
  const bool known = m->pylate || strncmp(m->type, "sentence_transformers.", 22) == 0;
  m->name = known ? strrchr(m->type, '.') + 1 : "";
  m->is = MODULE_NONE;
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    if (is_named(m, names[k].name)) m->is = names[k].is;
  if (m->is == MODULE_NONE)
    return error_set(e, STATUS_CONFIG, "modules.json: the module \"%.100s\" is not supported",
                     m->type);
  return STATUS_OK;
}

/* Is it a mask after the normalization, which may change places? */
static bool is_late(const struct whole_source *s, const struct whole_module *m, int last) {
  return m->is == MODULE_MASK && last == MODULE_NORMALIZE && !s->late.mask;
}

/* Checks that a module may follow those up to `last`; -1: it is the first one. */
static enum status check_order(const struct whole_source *s, const struct whole_module *m, int last,
                               struct error *e) {
  const bool more = m->is == MODULE_DENSE && last == MODULE_DENSE && !s->dense[1].file;
  const bool first = last < 0, each = s->each || last == MODULE_TRANSFORMER;
  const char *why = NULL;
  if (((int)m->is <= last && !more && !is_late(s, m, last)) ||
      first != (m->is == MODULE_TRANSFORMER))
    return error_set(e, STATUS_CONFIG,
                     "modules.json: %.60s is not supported here; supported after Transformer: "
                     "Pooling (or StaticEmbedding alone), Dense, Dense, Normalize; Pooling, Dense "
                     "of scores; SpladePooling; LogitScore; Dense, MultiVectorMask, Normalize",
                     m->type);
  if (m->is == MODULE_MASK && !each)
    why = "after a Pooling is not supported";
  else if (m->is == MODULE_SCORE && last != MODULE_TRANSFORMER)
    why = "is only supported directly after a Transformer";
  else if (m->is == MODULE_NORMALIZE && last < MODULE_POOLING && !s->each)
    why = "without a Pooling before it is not supported";
  else if (m->is > MODULE_POOLING && s->pool == STACK_POOL_SPARSE)
    why = "after a SpladePooling is not supported";
  return why ? error_set(e, STATUS_CONFIG, "modules.json: %.60s %s", m->name, why) : STATUS_OK;
}

/* Reads the config.json that each module after the model has in its own folder, unless a Normalize
 * has its defaults. */
static enum status read_module(struct whole_source *s, const struct whole_module *m,
                               struct error *e) {
  char *path = path_of(m, "config.json", e);
  const bool absent = m->is == MODULE_NORMALIZE && path && !file_is_there(path);
  json_t *config = path && !absent ? file_json(path, e) : NULL;
  free(path);
  if (config && !json_is_object(config))
    error_set(e, STATUS_CONFIG, "config.json: is not an object");
  if (m->is == MODULE_MASK) s->late.mask = m->path;
  if (e->status == STATUS_OK)
    is_named(m, "SpladePooling") ? read_sparse(s, config, e)
    : m->is == MODULE_POOLING    ? read_pooling(s, config, e)
    : m->is == MODULE_SCORE      ? read_score(s, config, e)
    : m->is == MODULE_MASK       ? whole_late_mask(&s->late, config, e)
    : m->is == MODULE_DENSE      ? read_dense(s, m, config, e)
                                 : read_normalize(s, config, e);
  json_decref(config);
  return e->status ? text_before(e, "module %.60s: ", m->path) : STATUS_OK;
}

static enum status read_modules(struct whole_source *s, const char *folder,
                                char within[WHOLE_MODULES_PATH], struct error *e) {
  size_t i;
  int last = -1;
  json_t *entry;
  json_array_foreach(s->listed, i, entry) {
    struct whole_module m = {.folder = folder};
    if (read_entry(entry, &m, e) || check_order(s, &m, last, e)) return e->status;
    const bool alone = last == MODULE_TRANSFORMER;
    if ((m.is == MODULE_DENSE || m.is == MODULE_MASK) && alone) s->each = true;
    if (!is_late(s, &m, last)) last = (int)m.is;
    s->late.pylate |= m.pylate;
    s->normalize |= m.is == MODULE_NORMALIZE;
    if (is_named(&m, "StaticEmbedding")) {
      s->fixed = true;
      s->pool = STACK_POOL_MEAN;
      last = MODULE_POOLING; /* it stands for both */
    }
    if (m.is == MODULE_TRANSFORMER)
      snprintf(within, WHOLE_MODULES_PATH, "%s", m.path);
    else if (read_module(s, &m, e))
      return e->status;
    if (s->dense[WHOLE_DENSE_SCORES].file) last = MODULE_SCORE;
  }
  return last < 0 ? error_set(e, STATUS_CONFIG, "modules.json: has no modules") : STATUS_OK;
}

enum status whole_modules_read(struct whole_source *s, const char *folder,
                               char within[WHOLE_MODULES_PATH], struct error *e) {
  char *path = file_path(folder, "modules.json");
  if (!path) return error_no_memory(e);
  s->modules = file_is_there(path);
  if (s->modules) s->listed = file_json(path, e);
  free(path);
  if (!s->listed) return e->status;
  if (!json_is_array(s->listed)) return error_set(e, STATUS_CONFIG, "modules.json: is not a list");
  return read_modules(s, folder, within, e);
}
