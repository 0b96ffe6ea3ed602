/* layers_all: finds the numbers of a definition's layers, and writes a definition of each. */
#include "config/build/layer/layers_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/build/layer/layout.h"
#include "config/build/layer/layout_place.h"
#include "config/describe/definition.h"
#include "config/document/file.h"
#include "config/document/text.h"

enum { NUMBERS = DEFINITION_LAYER_MAX + 1, NAME_SIZE = MODEL_NAME_SIZE + 16 };

/* A flag for each number: is there a layer with it? */
struct layers_all {
  bool is[NUMBERS];
};

/* Marks the numbers of the layers in the definition's stack. */
static enum status find_numbers(struct layers_all *all, struct definition *d,
                                const struct checkpoint *file, struct error *e) {
  const size_t most = checkpoint_marked_count(file);
  struct layout_place found, *places = malloc((most + 1) * sizeof *places);
  size_t first = NUMBERS;
  if (!places) return error_no_memory(e);
  const size_t count = layout_place_list(file, d, false, places, most);
  for (size_t i = 0; i < count; i++) {
    if (!places[i].numbered) continue;
    all->is[places[i].layer] = true;
    if (places[i].layer < first) first = places[i].layer;
  }
  free(places);
  /* Finding one of them checks all: if there are several stacks, the prefix must name one. */
  d->has_layer = first < NUMBERS;
  d->layer = first;
  if (layout_place_find(&found, file, d, e) == STATUS_OK && !d->has_layer)
    error_set(e, STATUS_CONFIG, "layers: the attention here, at \"%.150s\", has no number",
              found.address);
  return e->status;
}

/* Adds the definition of one layer. */
static enum status add_layer(json_t *out, const json_t *models, const char *name,
                             const json_t *definition, size_t layer, struct error *e) {
  char full[NAME_SIZE];
  snprintf(full, sizeof full, "%.193s.%zu", name, layer);
  if (!text_is_model_name(full))
    return error_set(e, STATUS_CONFIG, "layers: \"%s\" is too long for a model's name", full);
  if (json_object_get(models, full))
    return error_set(e, STATUS_CONFIG, "layers: there is another model %s", full);
  json_t *one = json_copy((json_t *)definition);
  if (json_object_del(one, "layers") != 0 ||
      json_object_set_new(one, "layer", json_integer((json_int_t)layer)) != 0 ||
      json_object_set(out, full, one) != 0)
    error_no_memory(e);
  json_decref(one);
  return e->status;
}

/* Finds the numbers in the definition's checkpoint. */
static enum status read_checkpoint(struct layers_all *all, const json_t *definition,
                                   const char *directory, struct error *e) {
  struct definition d;
  if (definition_read(&d, definition, e)) return e->status;
  char *path = file_path(directory, d.checkpoint);
  struct checkpoint *file = path ? checkpoint_open(path, e) : NULL;
  if (!path) error_no_memory(e);
  if (file && layout_place_mark(file, e) == STATUS_OK && find_numbers(all, &d, file, e))
    text_before(e, "%.100s: ", text_tail(d.checkpoint));
  checkpoint_free(file);
  free(path);
  return e->status;
}

static enum status expand_one(json_t *out, const json_t *models, const char *name,
                              json_t *definition, const char *directory, struct error *e) {
  struct layers_all all = {0};
  if (!json_object_get(definition, "layers") || json_object_get(definition, "transformer")) {
    if (json_object_set(out, name, definition) != 0) error_no_memory(e);
  } else {
    read_checkpoint(&all, definition, directory, e);
    for (size_t i = 0; i < NUMBERS && !e->status; i++)
      if (all.is[i]) add_layer(out, models, name, definition, i, e);
    if (e->status) text_before(e, "model %.193s: ", name);
  }
  return text_plain(e);
}

json_t *layers_all_expand(const json_t *models, const char *directory, struct error *e) {
  const char *name;
  json_t *definition, *out = json_object();
  if (!out) error_no_memory(e);
  json_object_foreach((json_t *)models, name, definition) {
    if (e->status || expand_one(out, models, name, definition, directory, e)) break;
  }
  if (e->status == STATUS_OK) return out;
  json_decref(out);
  return NULL;
}
