/* whole_settings: the members of a model's definition, and the values that they allow. The first
 * mistake is kept in `e`, and the reading continues: values with a mistake are not used. */
#include "config/describe/whole_settings.h"

#include <string.h>

#include "config/describe/definition.h"

const char *const whole_function_names[] = {[STACK_FUNCTION_NONE] = "none",
                                            [STACK_FUNCTION_SOFTMAX] = "softmax",
                                            [STACK_FUNCTION_SIGMOID] = "sigmoid",
                                            NULL};

const char *const whole_task_names[] = {[WHOLE_HEAD_CLASSES] = "classify",
                                        [WHOLE_HEAD_TOKENS] = "classify_tokens",
                                        [WHOLE_HEAD_SPANS] = "question",
                                        NULL};

enum { SIZE_MOST = 1 << 20, LAYERS_MOST = DEFINITION_LAYER_MAX + 1, TOKENS_MOST = 1 << 24 };

static const char *const members[] = {"transformer",
                                      "adapter",
                                      "tower",
                                      "kind",
                                      "layers",
                                      "width",
                                      "heads",
                                      "kv_heads",
                                      "head_size",
                                      "feed_forward",
                                      "vocabulary",
                                      "encoder",
                                      "decoder",
                                      "norm",
                                      "norm_kind",
                                      "norm_eps",
                                      "activation",
                                      "gated",
                                      "logit_score",
                                      "positions",
                                      "first_position",
                                      "pad",
                                      "max_positions",
                                      "begin",
                                      "scale_embedding",
                                      "prompt",
                                      "tie_output",
                                      "end",
                                      "forced_begin",
                                      "forced_end",
                                      "weights",
                                      "pool",
                                      "normalize",
                                      "classes",
                                      "labels",
                                      "task",
                                      "function",
                                      "generate",
                                      "tokenizer",
                                      "truncate",
                                      "compute",
                                      "chat_template",
                                      NULL};

static const struct {
  const char *name;
  enum activation is;
} activations[] = {
    {"relu", ACTIVATION_RELU},
    {"gelu", ACTIVATION_GELU},
    {"gelu_python", ACTIVATION_GELU},
    {"gelu_new", ACTIVATION_GELU_NEW},
    {"gelu_fast", ACTIVATION_GELU_NEW},
    {"gelu_pytorch_tanh", ACTIVATION_GELU_NEW},
    {"silu", ACTIVATION_SILU},
    {"swish", ACTIVATION_SILU},
    {"quick_gelu", ACTIVATION_QUICK_GELU},
};

const char *whole_settings_activation(const char *name, enum activation *out) {
  for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
    if (strcmp(activations[i].name, name) != 0) continue;
    *out = activations[i].is;
    return activations[i].name;
  }
  return NULL;
}

/* --- words --- */

/* The index of the value among the words, which end with NULL; -1 if the key is absent. */
static int read_word(const json_t *json, const char *key, const char *const *words,
                     struct error *e) {
  const char *word = NULL;
  if (!json_object_get(json, key)) return -1;
  definition_value_choice(json, key, words, &word, e);
  for (int i = 0; words[i]; i++)
    if (word == words[i]) return i;
  return -1;
}

static void read_norm(struct whole_settings *s, const json_t *json, struct error *e) {
  static const char *const places[] = {"post", "pre", NULL}, *const kinds[] = {"layer", "rms",
                                                                               NULL};
  static const enum toggle means[] = {TOGGLE_UNSAID, TOGGLE_OFF, TOGGLE_ON};
  s->pre = means[read_word(json, "norm", places, e) + 1];
  s->rms = means[read_word(json, "norm_kind", kinds, e) + 1];
  const json_t *value = json_object_get(json, "norm_eps");
  if (!value) return;
  s->epsilon = json_number_value(value);
  if (!json_is_number(value) || !(s->epsilon >= 1e-30 && s->epsilon <= 1))
    error_set(e, STATUS_CONFIG, "norm_eps: needs a number from 1e-30 to 1");
}

/* Reads the ways to encode positions: a word, or a list of one of the embedding and one of the
 * attention. */
static void read_places(struct whole_settings *s, const json_t *json, struct error *e) {
  static const char *const words[] = {"none",     "sinusoid", "learned", "rotary",
                                      "relative", "alibi",    NULL};
  enum {
    EMBEDDED = WHOLE_PLACES_SINUSOID | WHOLE_PLACES_LEARNED,
    ATTENDED = WHOLE_PLACES_ROTARY | WHOLE_PLACES_RELATIVE | WHOLE_PLACES_ALIBI
  };
  const json_t *said = json_object_get(json, "positions");
  unsigned embedded = 0, attended = 0;
  if (!json_is_array(said)) {
    const int word = read_word(json, "positions", words, e);
    s->places = word < 0 ? WHOLE_PLACES_UNSAID : 1U << word;
    return;
  }
  for (size_t i = 0; words[i]; i++)
    for (size_t j = 0; j < json_array_size(said); j++) {
      const char *one = json_string_value(json_array_get(said, j));
      if (!one || strcmp(one, words[i]) != 0) continue;
      s->places |= 1U << i;
      embedded += (1U << i & EMBEDDED) != 0;
      attended += (1U << i & ATTENDED) != 0;
    }
  if (json_array_size(said) != 2 || embedded != 1 || attended != 1)
    error_set(e, STATUS_CONFIG,
              "positions: a list needs sinusoid or learned, and rotary, relative or alibi");
}

/* --- classes --- */

enum { CLASSES_MOST = 1 << 16 };

static void read_logit_score(struct whole_settings *s, const json_t *json, struct error *e) {
  const json_t *list = json_object_get(json, "logit_score");
  const size_t count = json_array_size(list);
  bool good = count > 0 && count <= WHOLE_SCORE_TOKENS;
  if (!list) return;
  for (size_t i = 0; good && i < count; i++) {
    const json_t *token = json_array_get(list, i);
    s->logit_score.token[i] = json_integer_value(token);
    good = json_is_integer(token) && s->logit_score.token[i] >= 0;
  }
  if (good)
    s->logit_score.tokens = count;
  else
    error_set(e, STATUS_CONFIG,
              "logit_score: needs a list of one or two token ids: [true] or [true, false]");
}

static void read_classes(struct whole_settings *s, const json_t *json, struct error *e) {
  const json_t *labels = json_object_get(json, "labels");
  const size_t count = json_array_size(labels);
  const int function = read_word(json, "function", whole_function_names, e);
  s->has_function = function >= 0;
  if (function >= 0) s->function = (enum stack_function)function;
  const int task = read_word(json, "task", whole_task_names, e);
  s->has_task = task >= 0;
  if (task >= 0) s->task = (enum whole_head)task;
  read_logit_score(s, json, e);
  definition_value_count(json, "classes", 1, CLASSES_MOST, &s->classes, e);
  if (!labels) return;
  s->labels = labels;
  bool good = count > 0 && count <= CLASSES_MOST;
  for (size_t i = 0; i < count; i++) good = good && json_is_string(json_array_get(labels, i));
  if (!good)
    error_set(e, STATUS_CONFIG, "labels: needs a list of 1 to %d strings, a name for each class",
              CLASSES_MOST);
}

/* --- tokens --- */

/* Reads a token; -1 for null. */
static int64_t read_token(const json_t *value, const char *key, struct error *e) {
  if (!value || json_is_null(value)) return -1;
  const json_int_t token = json_integer_value(value);
  if (!json_is_integer(value) || token < 0 || token >= TOKENS_MOST)
    error_set(e, STATUS_CONFIG, "%s: needs a token, an integer from 0 to %d, or null", key,
              TOKENS_MOST - 1);
  return token;
}

static void read_tokens(struct whole_tokens *t, const json_t *json, struct error *e) {
  t->begin = read_token(json_object_get(json, "begin"), "begin", e);
  t->pad = read_token(json_object_get(json, "pad"), "pad", e);
  t->forced_begin = read_token(json_object_get(json, "forced_begin"), "forced_begin", e);
  t->forced_end = read_token(json_object_get(json, "forced_end"), "forced_end", e);
  /* `end` is a token or a list of tokens. */
  const json_t *end = json_object_get(json, "end");
  const bool many = json_is_array(end);
  const size_t count = many ? json_array_size(end) : end && !json_is_null(end);
  if (count > WHOLE_ENDS_MAX) {
    error_set(e, STATUS_CONFIG, "end: %zu tokens are more than %d", count, WHOLE_ENDS_MAX);
    return;
  }
  for (size_t i = 0; i < count; i++) {
    const json_t *one = many ? json_array_get(end, i) : end;
    if (json_is_null(one)) error_set(e, STATUS_CONFIG, "end: null is no token of a list");
    t->end[t->ends++] = read_token(one, "end", e);
  }
}

/* --- sizes --- */

const char *whole_settings_side(enum whole_side side) {
  return side == WHOLE_DECODER ? "decoder" : "encoder";
}

static const char *const stack_sizes[] = {"layers", "heads", "feed_forward", NULL};

bool whole_settings_is_size(const char *word) {
  for (size_t i = 0; stack_sizes[i]; i++)
    if (strcmp(stack_sizes[i], word) == 0) return true;
  return false;
}

static void read_stack_sizes(struct whole_stack_sizes *s, const json_t *json, struct error *e) {
  definition_value_count(json, "layers", 1, LAYERS_MOST, &s->layers, e);
  definition_value_count(json, "heads", 1, DEFINITION_HEADS_MAX, &s->heads, e);
  definition_value_count(json, "feed_forward", 1, SIZE_MOST, &s->forward_size, e);
}

/* Reads sizes of the model, and those of one stack alone, in the objects `encoder` and `decoder`,
 * which override them. */
static void read_sizes(struct whole_settings *s, const json_t *json, struct error *e) {
  read_stack_sizes(&s->of[WHOLE_ENCODER], json, e);
  s->of[WHOLE_DECODER] = s->of[WHOLE_ENCODER];
  for (enum whole_side side = 0; side < WHOLE_SIDES; side++) {
    const char *key = whole_settings_side(side);
    const json_t *value = json_object_get(json, key);
    struct error inside = {0};
    if (!value) continue;
    if (!json_is_object(value)) definition_value_refuse(key, "an object", value, e);
    definition_value_names_called(value, stack_sizes, whole_called, &inside);
    read_stack_sizes(&s->of[side], value, &inside);
    if (inside.status) error_set(e, inside.status, "%s: %.400s", key, inside.detail);
  }
  definition_value_count(json, "width", 1, SIZE_MOST, &s->width, e);
  definition_value_count(json, "kv_heads", 1, DEFINITION_HEADS_MAX, &s->kv_heads, e);
  definition_value_count(json, "head_size", 1, SIZE_MOST, &s->head_size, e);
  definition_value_count(json, "vocabulary", 1, TOKENS_MOST, &s->vocabulary, e);
}

/* --- all of it --- */

enum status whole_settings_read(struct whole_settings *s, const json_t *json, struct error *e) {
  static const char *const kinds[] = {"encoder", "decoder", "seq2seq", NULL};
  static const enum model_kind kind_of[] = {MODEL_ENCODER, MODEL_DECODER, MODEL_SEQ2SEQ};
  static const char *const weights[] = {"auto", "float32", NULL};
  *s = (struct whole_settings){.token = {.begin = -1}};
  definition_value_names_called(json, members, whole_called, e);
  const int kind = read_word(json, "kind", kinds, e);
  s->has_kind = kind >= 0;
  if (kind >= 0) s->kind = kind_of[kind];
  read_sizes(s, json, e);
  read_norm(s, json, e);

  const char *activation = NULL;
  definition_value_string(json, "activation", &activation, e);
  if (activation) s->activation = whole_settings_activation(activation, &s->activate);
  if (activation && !s->activation)
    error_set(e, STATUS_CONFIG,
              "activation: \"%.60s\" is not one of relu, gelu, gelu_new, silu, quick_gelu",
              activation);
  read_places(s, json, e);
  definition_value_count(json, "first_position", 0, SIZE_MOST, &s->first_position, e);
  definition_value_count(json, "max_positions", 1, TOKENS_MOST, &s->max_positions, e);

  static const char *const towers[] = {"text", "vision", NULL};
  read_word(json, "tower", towers, e);
  const int pool = read_word(json, "pool", stack_pool_names, e);
  s->has_pool = pool >= 0;
  if (pool >= 0) s->pool = (enum stack_pool)pool;
  definition_value_toggle(json, "normalize", &s->normalize, e);
  read_classes(s, json, e);
  read_tokens(&s->token, json, e);
  definition_value_toggle(json, "gated", &s->gated, e);
  definition_value_toggle(json, "scale_embedding", &s->scale_embedding, e);
  definition_value_toggle(json, "tie_output", &s->tie_output, e);

  const json_t *generate = json_object_get(json, "generate");
  struct error inside = {0};
  whole_choice_init(&s->choice);
  if (generate && !json_is_object(generate))
    definition_value_refuse("generate", "an object", generate, e);
  else if (generate && whole_choice_read(&s->choice, generate, &inside))
    error_set(e, inside.status, "generate: %.400s", inside.detail);
  s->has_compute = definition_value_compute(json, &s->compute, e);
  s->float32 = read_word(json, "weights", weights, e) == 1;
  return e->status;
}
