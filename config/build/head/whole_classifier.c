/* whole_classifier: finds and names the classes of a model. */
#include "config/build/head/whole_classifier.h"

#include <stdio.h>
#include <string.h>

#include "config/build/plan/whole_find.h"

/* --- tensors --- */

enum { NAME_SIZE = 96 };

/* One layer of it. */
struct whole_class_layer {
  enum whole_role role;
  const char *stem;
};

static const struct checkpoint_entry *find(const struct whole_plan *p,
                                           const struct whole_class_layer *l, const char *end) {
  char name[NAME_SIZE];
  snprintf(name, sizeof name, "%.60s%s", l->stem, end);
  return whole_find_near(p, name);
}

static enum status refuse_missing(const struct whole_class_layer *l, const char *end,
                                  struct error *e) {
  return error_set(e, STATUS_CONFIG, "there is no tensor \"%s%s\" of the classifier", l->stem, end);
}

static enum status use_layer(struct whole_plan *p, const struct whole_class_layer *l,
                             struct error *e) {
  struct whole_stack *s = whole_plan_reader(p);
  struct layout_matrix *m = &s->part[l->role];
  const struct checkpoint_entry *weight = find(p, l, ".weight"), *bias = find(p, l, ".bias");
  if (!weight) return refuse_missing(l, ".weight", e);
  if (!bias && whole_find_needs_bias(s->family, l->role)) return refuse_missing(l, ".bias", e);
  *m = (struct layout_matrix){.found = true, .has_bias = bias};
  if (whole_find_use(p, weight, whole_role_is_norm(l->role) ? 1 : 2, &m->weight, e))
    return e->status;
  return bias ? whole_find_use(p, bias, 1, &m->bias, e) : STATUS_OK;
}

/* Heads by the ends of the architectures in config.json: classifiers of tokens and of sequences may
 * have tensors of the same names. */
static const char *const architectures[] = {[WHOLE_HEAD_CLASSES] = "ForSequenceClassification",
                                            [WHOLE_HEAD_TOKENS] = "ForTokenClassification",
                                            [WHOLE_HEAD_SPANS] = "ForQuestionAnswering"};
enum { HEADS = sizeof architectures / sizeof *architectures };

/* Sets the head that the definition or the architectures name. False: these name others. */
static bool read_head(struct whole_plan *p, bool *named) {
  const json_t *config = p->family->keys ? p->source.config : NULL;
  *named = p->said.has_task;
  if (p->said.has_task) p->head = p->said.task;
  for (unsigned head = 0; config && !*named && head < HEADS; head++) {
    *named = whole_plan_is_for(p, architectures[head]);
    if (*named) p->head = (enum whole_head)head;
  }
  return *named || json_array_size(json_object_get(config, "architectures")) == 0;
}

/* Uses the layers of the head that the model has: the classes' own, and perhaps one before it. */
static enum status use_head(struct whole_plan *p, bool named, struct error *e) {
  const struct whole_family *f = p->family;
  const bool items = p->head == WHOLE_HEAD_CLASSES, layered = items || f->row_heads;
  const struct whole_class_layer first = {WHOLE_CLASS_FIRST, f->stem[WHOLE_CLASS_FIRST]},
                                 norm = {WHOLE_NORM_CLASS, f->stem[WHOLE_NORM_CLASS]},
                                 classes = {WHOLE_CLASSES, f->stem[WHOLE_CLASSES]},
                                 pooled = {WHOLE_CLASSES, f->behind_pooler},
                                 pooler = {WHOLE_POOLER, f->stem[WHOLE_POOLER]},
                                 spans = {WHOLE_CLASSES, "qa_outputs"};
  struct whole_class_layer bare = {WHOLE_CLASSES, f->bare_classes};
  if (p->head == WHOLE_HEAD_SPANS) bare = spans;
  if (items && !f->decodes) bare.stem = NULL;
  const bool has_first = layered && first.stem && find(p, &first, ".weight"),
             has_classes = layered && first.stem && find(p, &classes, ".weight");
  if (has_first && has_classes) {
    if (use_layer(p, &first, e) || (norm.stem && use_layer(p, &norm, e))) return e->status;
    return use_layer(p, &classes, e);
  }
  if (items && pooled.stem && find(p, &pooled, ".weight")) {
    if (whole_plan_reader(p)->part[WHOLE_POOLER].found) return use_layer(p, &pooled, e);
    return named ? refuse_missing(&pooler, ".weight", e) : STATUS_OK;
  }
  if (bare.stem && find(p, &bare, ".weight")) return use_layer(p, &bare, e);
  if (!named) return STATUS_OK;
  if (has_first || has_classes) return refuse_missing(has_first ? &classes : &first, ".weight", e);
  notes_add(&p->notes,
            "%s names a classifier, but there are no tensors of one: /%s is not available",
            p->said.has_task ? "task" : "config.json: architectures", whole_task_names[p->head]);
  return STATUS_OK;
}

/* Are the scores those that modules.json or logit_score defines? id2label and problem_type of
 * config.json do not describe them. */
static bool has_own_scores(const struct whole_plan *p) {
  return whole_plan_logit_score(p)->tokens || whole_plan_scores(p);
}

enum status whole_classifier_find(struct whole_plan *p, struct error *e) {
  const struct whole_family *f = p->family;
  bool named;
  if (has_own_scores(p)) return STATUS_OK;
  if (p->kind == MODEL_SEQ2SEQ || !(f->stem[WHOLE_CLASSES] || f->bare_classes)) return STATUS_OK;
  return read_head(p, &named) ? use_head(p, named, e) : STATUS_OK;
}

/* --- labels --- */

/* Sets the names of the classes: the definition overrides config.json, which has them as an object,
 * {"0": "negative", "1": "positive"}. */
static enum status set_labels(struct whole_plan *p, size_t count, struct error *e) {
  const json_t *said = p->said.labels;
  const bool told = p->family->keys && !has_own_scores(p);
  const json_t *names = told ? json_object_get(p->source.config, "id2label") : NULL;
  if (said && json_array_size(said) != count)
    return error_set(e, STATUS_CONFIG, "labels: %zu names of %zu classes", json_array_size(said),
                     count);
  p->labels = said ? json_incref((json_t *)said) : json_array();
  if (!p->labels) return error_no_memory(e);
  if (said) return STATUS_OK;
  const bool named = names && !json_is_null(names);
  if (named && (!json_is_object(names) || json_object_size(names) != count))
    return error_set(e, STATUS_CONFIG,
                     "config.json: id2label: needs an object with the names of all %zu classes of "
                     "the classifier (\"labels\" of the definition overrides it)",
                     count);
  for (size_t i = 0; i < count; i++) {
    char key[32];
    snprintf(key, sizeof key, named ? "%zu" : "LABEL_%zu", i); /* as transformers does */
    const json_t *name = named ? json_object_get(names, key) : NULL;
    if (named && !json_is_string(name))
      return error_set(e, STATUS_CONFIG,
                       "config.json: id2label: needs a string \"%s\", the name of that class "
                       "(\"labels\" of the definition overrides it)",
                       key);
    if (json_array_append_new(p->labels, json_string(named ? json_string_value(name) : key)))
      return error_no_memory(e);
  }
  return STATUS_OK;
}

/* --- the function --- */

/* Reads the activation that sentence-transformers names, a module of torch. False:
 * it names none. */
static bool read_activation(struct whole_plan *p, struct error *e) {
  const json_t *config = p->family->keys ? p->source.config : NULL;
  const json_t *own = json_object_get(config, "sentence_transformers");
  const char *key = "activation_fn", *file = "config_sentence_transformers.json";
  const json_t *value = json_object_get(p->source.sentences, key);
  if (!value || json_is_null(value)) {
    file = "config.json";
    value = json_object_get(own, key);
  }
  if (!value || json_is_null(value)) {
    key = "sbert_ce_default_activation_function";
    value = json_object_get(config, key);
  }
  const char *name = json_string_value(value);
  if (!value || json_is_null(value)) return false;
  const char *dot = name ? strrchr(name, '.') : NULL;
  const char *last = dot ? dot + 1 : "";
  if (strcmp(last, "Identity") == 0)
    p->function = STACK_FUNCTION_NONE;
  else if (strcmp(last, "Sigmoid") == 0)
    p->function = STACK_FUNCTION_SIGMOID;
  else
    error_set(e, STATUS_CONFIG,
              "%s: %s: \"%.80s\" is not supported; supported: Sigmoid and Identity of torch "
              "(\"function\" of the definition overrides it)",
              file, key, name ? name : "");
  return true;
}

/* Sets the function: of the definition, of sentence-transformers, or as the pipeline of Hugging
 * Face transformers chooses it. Classes of tokens have the softmax. */
static enum status set_function(struct whole_plan *p, size_t count, struct error *e) {
  static const struct {
    const char *problem;
    enum stack_function is;
  } usual[] = {{"regression", STACK_FUNCTION_NONE},
               {"multi_label_classification", STACK_FUNCTION_SIGMOID},
               {"single_label_classification", STACK_FUNCTION_SOFTMAX}};
  const bool told = p->family->keys && !has_own_scores(p);
  const json_t *value = told ? json_object_get(p->source.config, "problem_type") : NULL;
  const char *problem = json_string_value(value);
  const bool items = p->head == WHOLE_HEAD_CLASSES;
  p->function = p->said.has_function  ? p->said.function
                : items && count == 1 ? STACK_FUNCTION_SIGMOID
                : has_own_scores(p)   ? STACK_FUNCTION_NONE /* as sentence-transformers */
                                      : STACK_FUNCTION_SOFTMAX;
  if (p->said.has_function || !items || read_activation(p, e)) return e->status;
  if (!value || json_is_null(value)) return STATUS_OK;
  for (size_t i = 0; problem && i < sizeof usual / sizeof *usual; i++) {
    if (strcmp(problem, usual[i].problem) != 0) continue;
    /* A softmax over one class would always be 1. */
    if (count > 1 || usual[i].is != STACK_FUNCTION_SOFTMAX) p->function = usual[i].is;
    return STATUS_OK;
  }
  return error_set(
      e, STATUS_CONFIG,
      "config.json: problem_type: is not one of regression, single_label_classification, "
      "multi_label_classification (\"function\" of the definition overrides it)");
}

/* --- both --- */

/* Sets the vectors that the classifier reads: of items the first row, or the last one of a decoder,
 * unless config.json names the pooling of the classifier. */
static enum status set_vectors(const struct whole_plan *p, struct stack_classifier *c,
                               struct error *e) {
  const bool late = p->family->class_vectors == STACK_VECTORS_LATE;
  const char *first = late ? "bos" : "cls";
  static const char *const keys[] = {"classifier_pooling", "clf_pooling"};
  c->vectors = p->head != WHOLE_HEAD_CLASSES ? STACK_VECTORS_EACH
               : p->family->class_vectors    ? p->family->class_vectors
               : p->family->decodes          ? STACK_VECTORS_LAST
                                             : STACK_VECTORS_FIRST;
  const json_t *value = NULL;
  for (size_t i = 0; !value && p->family->keys && i < sizeof keys / sizeof *keys; i++)
    value = json_object_get(p->source.config, keys[i]);
  if (!json_is_string(value) || p->head != WHOLE_HEAD_CLASSES) return STATUS_OK;
  const char *said = json_string_value(value);
  if (strcmp(said, first) == 0)
    c->vectors = STACK_VECTORS_FIRST;
  else if (strcmp(said, "mean") == 0)
    c->vectors = STACK_VECTORS_MEAN;
  else if (late && strcmp(said, "late") == 0)
    c->vectors = STACK_VECTORS_LATE;
  else
    return error_set(e, STATUS_CONFIG,
                     "config.json: classifier_pooling: \"%.80s\" is not supported; supported: %s, "
                     "mean%s",
                     said, first, late ? ", late" : "");
  return STATUS_OK;
}

/* Checks the settings of a classifier whose scores are its own. */
static enum status check_own_scores(const struct whole_plan *p, const char *key, size_t count,
                                    struct error *e) {
  if (p->said.has_task && p->said.task != WHOLE_HEAD_CLASSES)
    return error_set(e, STATUS_CONFIG, "%s: the task must be %s", key,
                     whole_task_names[WHOLE_HEAD_CLASSES]);
  if (p->said.classes && p->said.classes != count)
    return error_set(e, STATUS_CONFIG, "classes: %zu, but %s gives %zu", p->said.classes, key,
                     count);
  return STATUS_OK;
}

/* Sets the form of the scores that a layer of modules.json makes. */
static enum status set_scores(const struct whole_plan *p, struct stack_classifier *c,
                              struct error *e) {
  const struct whole_dense *d = whole_plan_scores(p);
  const size_t width = whole_plan_reader(p)->form.width;
  if (p->kind == MODEL_SEQ2SEQ)
    return error_set(e, STATUS_CONFIG,
                     "modules.json: a Dense of scores needs an encoder or a "
                     "decoder alone");
  if (d->in != width)
    return error_set(e, STATUS_CONFIG,
                     "in_features: %zu for the dense layer of the scores, but the width is %zu",
                     d->in, width);
  c->count = d->out;
  c->vectors = stack_pool_vectors(p->source.scored);
  return check_own_scores(p, "modules.json: Dense", c->count, e);
}

/* Sets the form of a score by logits. */
static enum status set_logit_score(const struct whole_plan *p, struct stack_classifier *c,
                                   struct error *e) {
  const struct whole_logit_score *score = whole_plan_logit_score(p);
  const struct whole_stack *s = whole_plan_reader(p);
  const char *key = p->said.logit_score.tokens ? "logit_score" : "modules.json: LogitScore";
  const size_t tokens = s->form.embedding.tokens;
  if (p->kind != MODEL_DECODER || !(s->form.output.tied || s->part[WHOLE_HEAD].found))
    return error_set(e, STATUS_CONFIG, "%s: needs a decoder with a language modeling head", key);
  if (!p->source.file) return error_set(e, STATUS_CONFIG, "%s: not available with random", key);
  if (s->form.output.cap > 0)
    return error_set(e, STATUS_CONFIG, "%s: not supported with capped logits (%s)", key,
                     s->family->keys->logit_cap);
  for (size_t i = 0; i < score->tokens; i++)
    if ((uint64_t)score->token[i] >= tokens)
      return error_set(e, STATUS_CONFIG, "%s: token %jd is outside the vocabulary of %zu", key,
                       (intmax_t)score->token[i], tokens);
  if (score->tokens == WHOLE_SCORE_TOKENS && score->token[0] == score->token[1])
    return error_set(e, STATUS_CONFIG, "%s: both tokens are %jd", key, (intmax_t)score->token[0]);
  c->count = 1;
  c->vectors = STACK_VECTORS_LAST;
  return check_own_scores(p, key, c->count, e);
}

enum { SPANS = 2 }; /* scores of a token as the first, and as the last one of an answer */

enum status whole_classifier_complete(struct whole_plan *p, struct error *e) {
  struct whole_stack *s = whole_plan_reader(p);
  struct stack_classifier *c = &s->form.classifier;
  const struct whole_settings *said = &p->said;
  const struct layout_matrix *classes = &s->part[WHOLE_CLASSES];
  const bool first = s->part[WHOLE_CLASS_FIRST].found;
  if (has_own_scores(p)) {
    if ((whole_plan_scores(p) ? set_scores : set_logit_score)(p, c, e)) return e->status;
    return set_labels(p, c->count, e) ? e->status : set_function(p, c->count, e);
  }
  if (said->has_task) p->head = said->task;
  const bool spans = p->head == WHOLE_HEAD_SPANS;
  if (p->source.file)
    c->count = classes->found ? classes->weight.rows : 0;
  else if (p->kind == MODEL_ENCODER)
    c->count = said->classes  ? said->classes
               : said->labels ? json_array_size(said->labels)
               : spans        ? SPANS
                              : 0;
  if (c->count == 0 || spans) {
    const char *key = said->labels         ? "labels"
                      : said->classes      ? "classes"
                      : said->has_function ? "function"
                                           : NULL;
    if (key)
      return error_set(e, STATUS_CONFIG, "%s: the model has no %s", key,
                       c->count ? "classes: it answers questions" : "classifier");
    if (c->count == 0) return STATUS_OK;
  }
  c->pooler = p->source.file && !first && p->head == WHOLE_HEAD_CLASSES && !p->family->decodes;
  c->tanh = !s->family->class_activation;
  if (!c->tanh) whole_settings_activation(s->family->class_activation, &c->activation);
  if (p->words.has_head_activation) c->activation = p->words.head_activation;
  if (set_vectors(p, c, e)) return e->status;
  if (said->classes && said->classes != c->count)
    return error_set(e, STATUS_CONFIG,
                     "classes: %zu in the configuration, but tensor \"%.120s\" implies %zu",
                     said->classes, classes->weight.tensor->name, c->count);
  if (!spans) return set_labels(p, c->count, e) ? e->status : set_function(p, c->count, e);
  if (c->count != SPANS)
    return error_set(e, STATUS_CONFIG, "tensor \"%.120s\" has %zu rows, but must have %d",
                     classes->weight.tensor->name, c->count, SPANS);
  return STATUS_OK;
}
