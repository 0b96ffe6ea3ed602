/* whole_classifier: finds and names the classes of an encoder. */
#include "config/build/whole_classifier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/build/whole.h"
#include "config/build/whole_find.h"
#include "config/document/text.h"

/* --- tensors --- */

enum { NAME_SIZE = 96 };

/* The head that config.json says the tensors are of. */
enum head { HEAD_UNSAID, HEAD_OF_ITEMS, HEAD_OTHER };

/* A classifier of tokens has tensors of the same names as one of items. */
static enum head read_head(const json_t *config) {
  const json_t *all = json_object_get(config, "architectures"), *one;
  size_t i;
  json_array_foreach((json_t *)all, i, one) {
    const char *name = json_string_value(one);
    if (name && text_ends_with(name, "ForSequenceClassification")) return HEAD_OF_ITEMS;
  }
  return json_array_size(all) > 0 ? HEAD_OTHER : HEAD_UNSAID;
}

/* A layer of it by its stem. */
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

static bool is_there(const struct whole_plan *p, const struct whole_class_layer *l) {
  return find(p, l, ".weight");
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
  if (whole_find_use(p, weight, 2, &m->weight, e)) return e->status;
  return bias ? whole_find_use(p, bias, 1, &m->bias, e) : STATUS_OK;
}

/* Behind the pooler, which is the first of its layers then. */
static enum status find_behind(struct whole_plan *p, const struct whole_class_layer *classes,
                               enum head head, struct error *e) {
  const struct whole_stack *s = whole_plan_reader(p);
  const struct whole_class_layer pooler = {WHOLE_POOLER, s->family->stem[WHOLE_POOLER]};
  if (s->part[WHOLE_POOLER].found) return use_layer(p, classes, e);
  return head == HEAD_OF_ITEMS ? refuse_missing(&pooler, ".weight", e) : STATUS_OK;
}

enum status whole_classifier_find(struct whole_plan *p, struct error *e) {
  const struct whole_family *f = p->family;
  const struct whole_class_layer first = {WHOLE_CLASS_FIRST, f->stem[WHOLE_CLASS_FIRST]},
                                 classes = {WHOLE_CLASSES, f->stem[WHOLE_CLASSES]},
                                 behind = {WHOLE_CLASSES, f->behind_pooler};
  const enum head head = f->keys ? read_head(p->source.config) : HEAD_UNSAID;
  if (p->kind != MODEL_ENCODER || !first.stem || head == HEAD_OTHER) return STATUS_OK;
  const bool has_first = is_there(p, &first), has_classes = is_there(p, &classes);
  if (has_first && has_classes)
    return use_layer(p, &first, e) ? e->status : use_layer(p, &classes, e);
  if (behind.stem && is_there(p, &behind)) return find_behind(p, &behind, head, e);
  if (head != HEAD_OF_ITEMS) return STATUS_OK;
  if (has_first || has_classes) return refuse_missing(has_first ? &classes : &first, ".weight", e);
  notes_add(&p->notes, "config.json: architectures names a classifier, but there are no tensors of "
                       "one: /classify is not available");
  return STATUS_OK;
}

/* --- labels --- */

/* Appends a value that is taken. False: no memory. */
static bool append(json_t *list, json_t *value) { return json_array_append_new(list, value) == 0; }

/* As the library calls classes that have no names. */
static bool append_numbers(json_t *list, size_t count) {
  bool good = list;
  for (size_t i = 0; good && i < count; i++) {
    char name[32];
    snprintf(name, sizeof name, "LABEL_%zu", i);
    good = append(list, json_string(name));
  }
  return good;
}

/* config.json has them as an object: {"0": "negative", "1": "positive"}. */
static enum status append_names(json_t *list, const json_t *names, size_t count, struct error *e) {
  if (!json_is_object(names) || json_object_size(names) != count)
    return error_set(e, STATUS_CONFIG,
                     "config.json: id2label: needs an object with the names of all %zu classes of "
                     "the classifier (\"labels\" of the definition overrides it)",
                     count);
  for (size_t i = 0; i < count; i++) {
    char key[24];
    snprintf(key, sizeof key, "%zu", i);
    json_t *name = json_object_get(names, key);
    if (!json_is_string(name))
      return error_set(e, STATUS_CONFIG,
                       "config.json: id2label: needs a string \"%s\", the name of that class "
                       "(\"labels\" of the definition overrides it)",
                       key);
    if (json_array_append(list, name)) return error_no_memory(e);
  }
  return STATUS_OK;
}

/* What the definition says goes before config.json. */
static enum status settle_labels(struct whole_plan *p, size_t count, struct error *e) {
  const json_t *said = p->said.labels;
  const json_t *names = p->family->keys ? json_object_get(p->source.config, "id2label") : NULL;
  if (said && json_array_size(said) != count)
    return error_set(e, STATUS_CONFIG, "labels: %zu names of %zu classes", json_array_size(said),
                     count);
  if (said) {
    p->labels = json_incref((json_t *)said);
    return STATUS_OK;
  }
  p->labels = json_array();
  if (p->labels && names && !json_is_null(names)) return append_names(p->labels, names, count, e);
  if (!append_numbers(p->labels, count)) error_no_memory(e);
  return e->status;
}

/* --- the function --- */

/* Reads the activation that sentence-transformers name, a module of torch. False: there is none.
 */
static bool read_activation(struct whole_plan *p, struct error *e) {
  const json_t *config = p->family->keys ? p->source.config : NULL;
  const json_t *own = json_object_get(config, "sentence_transformers");
  const char *key = "activation_fn";
  const json_t *value = json_object_get(own, key);
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
              "config.json: %s: \"%.80s\" is not supported; supported: Sigmoid and Identity of "
              "torch (\"function\" of the definition overrides it)",
              key, name ? name : "");
  return true;
}

/* As sentence-transformers say, else as the library's pipeline chooses it. */
static enum status settle_function(struct whole_plan *p, size_t count, struct error *e) {
  static const struct {
    const char *problem;
    enum stack_function is;
  } usual[] = {{"regression", STACK_FUNCTION_NONE},
               {"multi_label_classification", STACK_FUNCTION_SIGMOID},
               {"single_label_classification", STACK_FUNCTION_SOFTMAX}};
  const json_t *value = p->family->keys ? json_object_get(p->source.config, "problem_type") : NULL;
  const char *problem = json_string_value(value);
  p->function = p->said.has_function ? p->said.function
                : count == 1         ? STACK_FUNCTION_SIGMOID
                                     : STACK_FUNCTION_SOFTMAX;
  if (p->said.has_function || read_activation(p, e)) return e->status;
  if (!value || json_is_null(value)) return STATUS_OK;
  for (size_t i = 0; problem && i < sizeof usual / sizeof *usual; i++) {
    if (strcmp(problem, usual[i].problem) != 0) continue;
    /* One class among which to choose is none. */
    if (count > 1 || usual[i].is != STACK_FUNCTION_SOFTMAX) p->function = usual[i].is;
    return STATUS_OK;
  }
  return error_set(
      e, STATUS_CONFIG,
      "config.json: problem_type: is not one of regression, single_label_classification, "
      "multi_label_classification (\"function\" of the definition overrides it)");
}

/* --- the whole --- */

static enum status refuse_said(const struct whole_settings *s, struct error *e) {
  const char *key = s->labels         ? "labels"
                    : s->classes      ? "classes"
                    : s->has_function ? "function"
                                      : NULL;
  return key ? error_set(e, STATUS_CONFIG, "%s: the model has no classifier", key) : STATUS_OK;
}

/* Of a file its tensor tells it, of a drawn encoder what is said. */
static size_t count_classes(const struct whole_plan *p) {
  const struct layout_matrix *m = &whole_plan_reader(p)->part[WHOLE_CLASSES];
  if (p->source.file) return m->found ? m->weight.rows : 0;
  if (p->kind != MODEL_ENCODER) return 0;
  return p->said.classes ? p->said.classes : json_array_size(p->said.labels);
}

enum status whole_classifier_settle(struct whole_plan *p, struct error *e) {
  struct whole_stack *s = whole_plan_reader(p);
  struct stack_classifier *c = &s->form.classifier;
  c->count = count_classes(p);
  if (c->count == 0) return refuse_said(&p->said, e);
  c->pooler = p->source.file && !s->part[WHOLE_CLASS_FIRST].found;
  c->relu = s->family->rectified;
  if (p->said.classes && p->said.classes != c->count)
    return error_set(e, STATUS_CONFIG,
                     "classes: %zu in the configuration, but tensor \"%.120s\" implies %zu",
                     p->said.classes, s->part[WHOLE_CLASSES].weight.tensor->name, c->count);
  return settle_labels(p, c->count, e) ? e->status : settle_function(p, c->count, e);
}

enum status whole_classifier_describe(struct whole *w, const struct whole_plan *p,
                                      struct error *e) {
  const size_t count = json_array_size(p->labels);
  if (count == 0) return STATUS_OK;
  w->function = p->function;
  w->classes = count;
  w->label = calloc(count, sizeof *w->label);
  bool good = w->label;
  for (size_t i = 0; good && i < count; i++)
    good = (w->label[i] = strdup(json_string_value(json_array_get(p->labels, i))));
  return good ? STATUS_OK : error_no_memory(e);
}
