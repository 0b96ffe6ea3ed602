/* adapter_config: reads what PEFT says of a LoRA adapter. */
#include "config/adapter/adapter_config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/document/file.h"
#include "config/document/text.h"
#include "config/tokenizer/pattern/pattern.h"

/* Values of the modules whose paths a pattern matches. */
struct adapter_pattern {
  struct pattern *pattern;
  double value;
};

struct adapter_patterns {
  size_t count;
  struct adapter_pattern *one; /* [count], in the order of the file: the first match counts */
};

struct adapter_config {
  char *base;
  size_t rank;
  double alpha;
  bool stabilized; /* whether the factor is alpha / sqrt(rank), not alpha / rank */
  struct adapter_patterns ranks, alphas;
  struct pattern_watch watch; /* of the patterns, on all modules */
};

enum { RANK_MOST = 1 << 20 };

/* Members that do not change what a trained adapter computes: which modules it has, its tensors
 * show, and the model itself shows which matrices are stored transposed. */
static const char *const ignored[] = {
    "auto_mapping",   "corda_config",   "eva_config",        "exclude_modules",
    "fan_in_fan_out", "inference_mode", "layers_pattern",    "layers_to_transform",
    "loftq_config",   "lora_dropout",   "lora_ga_config",    "megatron_core",
    "merge_weights",  "peft_version",   "qalora_group_size", "revision",
    "runtime_config", "target_modules", "task_type",         NULL};

/* Ways to initialize an adapter that leave the model's own weights as they are; true and false are
 * others. */
static const char *const initials[] = {"gaussian", "eva", "orthogonal", "mica", NULL};

static bool is_among(const char *word, const char *const *words) {
  while (*words && strcasecmp(word, *words) != 0) words++;
  return *words;
}

static bool is_off(const json_t *value) {
  return !value || json_is_null(value) || json_is_false(value) ||
         (json_is_array(value) && json_array_size(value) == 0) ||
         (json_is_object(value) && json_object_size(value) == 0);
}

static void read_rank(struct adapter_config *c, const json_t *value, struct error *e) {
  const json_int_t rank = json_integer_value(value);
  if (!json_is_integer(value) || rank < 1 || rank > RANK_MOST)
    error_set(e, STATUS_CONFIG, "r: needs an integer from 1 to %d", RANK_MOST);
  c->rank = (size_t)rank;
}

static void read_alpha(struct adapter_config *c, const json_t *value, struct error *e) {
  c->alpha = json_number_value(value);
  if (!json_is_number(value) || !isfinite(c->alpha))
    error_set(e, STATUS_CONFIG, "lora_alpha: needs a number");
}

static void read_stabilized(struct adapter_config *c, const json_t *value, struct error *e) {
  c->stabilized = json_is_true(value);
  if (!json_is_boolean(value) && !json_is_null(value))
    error_set(e, STATUS_CONFIG, "use_rslora: needs true or false");
}

static void read_base(struct adapter_config *c, const json_t *value, struct error *e) {
  if (!json_is_string(value)) return;
  free(c->base);
  c->base = strdup(json_string_value(value));
  if (!c->base) error_no_memory(e);
}

/* PEFT compares the whole path with the expression, or its part after a dot. */
static struct pattern *new_pattern(const char *key, struct error *e) {
  static const char before[] = "^(?:.*\\.)?(?:", after[] = ")$";
  const size_t size = sizeof before + strlen(key) + sizeof after;
  char *expression = malloc(size);
  if (!expression) {
    error_no_memory(e);
    return NULL;
  }
  snprintf(expression, size, "%s%s%s", before, key, after);
  struct pattern *pattern = pattern_of(expression, e);
  free(expression);
  return pattern;
}

static void read_patterns(struct adapter_patterns *out, const char *member, const json_t *value,
                          struct error *e) {
  const char *key;
  json_t *number;
  if (is_off(value)) return;
  if (!json_is_object(value)) {
    error_set(e, STATUS_CONFIG, "%s: needs an object", member);
    return;
  }
  out->one = calloc(json_object_size(value), sizeof *out->one);
  if (!out->one) error_no_memory(e);
  json_object_foreach((json_t *)value, key, number) {
    if (e->status) return;
    struct adapter_pattern *p = &out->one[out->count++];
    p->value = json_number_value(number);
    p->pattern = new_pattern(key, e);
    if (!json_is_number(number) || !isfinite(p->value))
      error_set(e, STATUS_CONFIG, "%s: \"%.60s\" needs a number", member, key);
    else if (e->status == STATUS_CONFIG)
      text_before(e, "%s: \"%.60s\": ", member, key);
  }
}

static void read_rank_patterns(struct adapter_config *c, const json_t *value, struct error *e) {
  read_patterns(&c->ranks, "rank_pattern", value, e);
}

static void read_alpha_patterns(struct adapter_config *c, const json_t *value, struct error *e) {
  read_patterns(&c->alphas, "alpha_pattern", value, e);
}

static void check_bias(struct adapter_config *c, const json_t *value, struct error *e) {
  (void)c;
  const char *bias = json_string_value(value);
  if (!bias || strcmp(bias, "none") != 0)
    error_set(e, STATUS_CONFIG, "bias: \"%.40s\" is not supported; only \"none\" is",
              bias ? bias : "");
}

static void check_initial(struct adapter_config *c, const json_t *value, struct error *e) {
  (void)c;
  const char *word = json_string_value(value);
  if (is_off(value) || json_is_true(value) || (word && is_among(word, initials))) return;
  error_set(e, STATUS_CONFIG,
            "init_lora_weights: \"%.40s\" is not supported: it also changes the model's own "
            "weights; save the adapter converted to plain LoRA",
            word ? word : "");
}

static const struct {
  const char *name;
  void (*read)(struct adapter_config *c, const json_t *value, struct error *e);
} members[] = {{"r", read_rank},
               {"lora_alpha", read_alpha},
               {"use_rslora", read_stabilized},
               {"base_model_name_or_path", read_base},
               {"rank_pattern", read_rank_patterns},
               {"alpha_pattern", read_alpha_patterns},
               {"bias", check_bias},
               {"init_lora_weights", check_initial}};

static void read_member(struct adapter_config *c, const char *key, const json_t *value,
                        struct error *e) {
  for (size_t i = 0; i < sizeof members / sizeof *members; i++)
    if (strcmp(members[i].name, key) == 0) {
      members[i].read(c, value, e);
      return;
    }
  if (is_among(key, ignored) || is_off(value)) return;
  char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
  error_set(e, STATUS_CONFIG, "\"%.60s\": %.60s is not supported", key, text ? text : "it");
  free(text);
}

struct adapter_config *adapter_config_read(const char *path, struct error *e) {
  struct adapter_config *c = calloc(1, sizeof *c);
  json_t *json = c ? file_json(path, e) : NULL;
  const json_t *type = json_object_get(json, "peft_type");
  const char *key, *kind = json_string_value(type);
  json_t *value;
  if (c) *c = (struct adapter_config){.rank = 8, .alpha = 8}; /* as in PEFT */
  if (!c) {
    error_no_memory(e);
  } else if (json && !json_is_object(json)) {
    error_set(e, STATUS_CONFIG, "is not an object");
  } else if (json && (!kind || strcmp(kind, "LORA") != 0)) {
    error_set(e, STATUS_CONFIG, "peft_type: \"%.40s\" is not supported; only \"LORA\" is",
              kind ? kind : "");
  }
  json_object_foreach(json, key, value) {
    if (e->status) break;
    if (value != type) read_member(c, key, value, e);
  }
  if (json && e->status) text_before(e, "%.120s: ", text_tail(path));
  json_decref(json);
  if (e->status == STATUS_OK) return c;
  adapter_config_free(c);
  return NULL;
}

static void free_patterns(struct adapter_patterns *p) {
  for (size_t i = 0; i < p->count; i++) pattern_free(p->one[i].pattern);
  free(p->one);
}

void adapter_config_free(struct adapter_config *c) {
  if (!c) return;
  free_patterns(&c->ranks);
  free_patterns(&c->alphas);
  free(c->base);
  free(c);
}

const char *adapter_config_base(const struct adapter_config *c) { return c->base ? c->base : ""; }

/* The value of the first pattern of a member that matches; `otherwise` if there is none. */
static double find_value(struct adapter_config *c, const char *member,
                         const struct adapter_patterns *all, const char *module, double otherwise,
                         struct error *e) {
  for (size_t i = 0; i < all->count && e->status == STATUS_OK; i++) {
    struct pattern_search s;
    if (pattern_search_begin(&s, all->one[i].pattern, &c->watch, module, strlen(module), e)) break;
    const bool found = pattern_search_next(&s, e);
    pattern_search_end(&s);
    if (found) return all->one[i].value;
  }
  if (e->status == STATUS_INVALID_REQUEST) {
    *e = (struct error){0};
    error_set(e, STATUS_CONFIG, "%s: its expressions take too long", member);
  }
  return otherwise;
}

enum status adapter_config_module(struct adapter_config *c, const char *module, size_t *rank,
                                  double *scale, struct error *e) {
  const double said = find_value(c, "rank_pattern", &c->ranks, module, (double)c->rank, e);
  if (e->status) return e->status;
  const double alpha = find_value(c, "alpha_pattern", &c->alphas, module, c->alpha, e);
  if (e->status) return e->status;
  if (!(said >= 1 && said <= RANK_MOST) || said != floor(said))
    return error_set(e, STATUS_CONFIG, "rank_pattern: %g is not an integer from 1 to %d", said,
                     RANK_MOST);
  *rank = (size_t)said;
  *scale = alpha / (c->stabilized ? sqrt(said) : said);
  return STATUS_OK;
}
