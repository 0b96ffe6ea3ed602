/* inspect_layers: finds the layers of a checkpoint, and tries a definition for each. */
#include "config/inspect/inspect_layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/build/layer/frequencies.h"
#include "config/build/layer/layout.h"
#include "config/build/layer/layout_place.h"
#include "config/build/layer/parameters.h"
#include "config/build/trial.h"
#include "config/describe/definition.h"
#include "config/describe/hints/hints_compare.h"
#include "config/document/json_reserve.h"
#include "config/document/text.h"
#include "core/base/size.h"

enum { HEAD_USUAL = 64 };

/* Data that all layers share. */
struct inspection {
  struct checkpoint *file;
  const struct inspect_wish *wish;
  const struct hints *hints;
  char name[INSPECT_NAME_FILE]; /* of the file; the models' names begin with it */
};

/* --- one definition --- */

/* Sets a key of the definition, whose value's reference is taken. */
static enum status set_member(json_t *definition, const char *key, json_t *value, struct error *e) {
  if (json_object_set_new(definition, key, value) == 0) return STATUS_OK;
  return error_no_memory(e);
}

/* Does the definition find this place? */
static bool means_place(const struct inspection *in, const json_t *definition,
                        const struct layout_place *p) {
  struct definition d;
  struct error e = {0};
  struct layout_place found;
  return definition_read(&d, definition, &e) == STATUS_OK &&
         layout_place_find(&found, in->file, &d, &e) == STATUS_OK && found.family == p->family &&
         strcmp(found.address, p->address) == 0;
}

/* Sets the place of the layer with as few keys as possible: none, or its number; its stack and its
 * number; its whole address. */
static enum status set_place(const struct inspection *in, json_t *definition,
                             const struct layout_place *p, struct error *e) {
  if (p->numbered && set_member(definition, "layer", json_integer((json_int_t)p->layer), e))
    return e->status;
  if (means_place(in, definition, p)) return STATUS_OK;
  if (p->numbered) {
    if (set_member(definition, "prefix", json_stringn(p->address, layout_place_stack(p)), e))
      return e->status;
    if (means_place(in, definition, p)) return STATUS_OK;
    json_object_del(definition, "layer");
  }
  return set_member(definition, "prefix", json_string(p->address), e);
}

/* Finds the sizes, without reading numbers. */
static enum status measure_definition(const struct inspection *in, const json_t *definition,
                                      struct parameters *p, struct error *e) {
  struct definition d;
  if (definition_read(&d, definition, e)) return e->status;
  d.hints = in->wish->heads ? NULL : in->hints;
  return parameters_measure(p, &d, in->file, e);
}

/* --- heads --- */

/* Finds a number of heads that fits queries, keys and values. The size of a head is that of the
 * score's parameters, which is certain; else that of the requested heads; else the usual one, or
 * twice the number of frequencies; if it is not certain, smaller sizes are tried. */
static struct inspect_heads find_heads(const struct inspection *in, const json_t *definition,
                                       bool *certain) {
  struct definition d;
  struct layout l;
  struct error e = {0};
  const struct layout_matrix *m = l.matrix;
  *certain = false;
  if (definition_read(&d, definition, &e)) return (struct inspect_heads){0};
  d.heads = 1;
  if (layout_find(&l, in->file, &d, &e) || !m[ROLE_VALUE].found) return (struct inspect_heads){0};
  const size_t query = layout_matrix_out(&m[ROLE_QUERY]), key = layout_matrix_out(&m[ROLE_KEY]);
  const size_t value = layout_matrix_out(&m[ROLE_VALUE]), asked = in->wish->heads;
  const enum role parameter = m[ROLE_SCORE_QUERY].found ? ROLE_SCORE_QUERY : ROLE_SCORE_WEIGHT;
  const uint64_t pairs = l.frequencies ? l.frequencies->count : 0;
  size_t largest = size_min(HEAD_USUAL, query);
  if (m[parameter].found)
    largest = layout_matrix_in(&m[parameter]);
  else if (asked)
    largest = query % asked == 0 ? query / asked : 0;
  else if (pairs > 0 && pairs <= query / 2)
    largest = 2 * (size_t)pairs;
  *certain = m[parameter].found || asked > 0;
  for (size_t size = largest; size > 0 && !(*certain && size < largest); size--)
    if (query % size == 0 && key % size == 0 && value % (key / size) == 0 &&
        query / size <= DEFINITION_HEADS_MAX)
      return (struct inspect_heads){.query = query / size, .key = key / size};
  return (struct inspect_heads){0};
}

static enum status set_heads(json_t *definition, struct inspect_heads heads, struct error *e) {
  json_object_del(definition, "kv_heads");
  if (set_member(definition, "heads", json_integer((json_int_t)heads.query), e)) return e->status;
  if (heads.key == heads.query) return STATUS_OK;
  return set_member(definition, "kv_heads", json_integer((json_int_t)heads.key), e);
}

/* Finds the number of heads: of the checkpoint's own table, the requested one, that of config.json,
 * or for the time being the usual one. */
static enum status complete_heads(const struct inspection *in, struct inspect_layer *l,
                                  struct parameters *p, struct error *e) {
  struct error first = {0}, last = {0};
  bool certain;
  if (measure_definition(in, l->definition, p, &first) == STATUS_OK) return STATUS_OK;
  l->usual = find_heads(in, l->definition, &certain);
  if (!l->usual.query && in->wish->heads) l->usual.query = l->usual.key = in->wish->heads;
  if (!l->usual.query) return error_set(e, STATUS_CONFIG, "%.500s", first.detail);
  if (set_heads(l->definition, l->usual, e)) return e->status;
  if (measure_definition(in, l->definition, p, &last))
    return error_set(e, STATUS_CONFIG, "%.500s", last.detail);
  l->headless = !certain;
  if (l->headless && hints_of(in->hints, &l->at).heads) l->error = first;
  return STATUS_OK;
}

/* --- one layer --- */

/* Finds the base of rope: of config.json, else of the checkpoint's frequencies, else
 * the usual one. */
static enum status find_rope_base(const struct inspection *in, struct inspect_layer *l,
                                  const struct parameters *p, double *base, struct error *e) {
  bool fits;
  double other = 0;
  *base = hints_of(in->hints, &l->at).rope_base;
  if (*base > 0) return STATUS_OK;
  if (p->frequencies && frequencies_compare(in->file, p->frequencies, p->shape.head_size,
                                            p->shape.rope_base, &fits, &other, e))
    return e->status;
  l->unbased = !(other > 0);
  *base = other > 0 ? other : p->shape.rope_base;
  return STATUS_OK;
}

/* Sets the keys that the layout does not imply: heads, and differences in config.json. */
static enum status set_rest(const struct inspection *in, struct inspect_layer *l,
                            const struct parameters *p, struct error *e) {
  const struct layer_shape *s = &p->shape;
  double base = 0;
  const struct hints_said said = hints_of(in->hints, &l->at);
  const enum toggle causal = said.causal;
  const size_t distance = said.distance;
  const struct inspect_heads heads = {.query = s->heads, .key = s->kv_heads};
  if (set_heads(l->definition, heads, e)) return e->status;
  if (s->rope_base > 0 && (find_rope_base(in, l, p, &base, e) ||
                           set_member(l->definition, "rope", json_pack("{s:f}", "base", base), e)))
    return e->status;
  if (s->relative_buckets && distance && distance != s->relative_distance &&
      set_member(l->definition, "relative_bias",
                 json_pack("{s:I, s:b}", "max_distance", (json_int_t)distance, "bidirectional",
                           s->relative_both),
                 e))
    return e->status;
  if (causal != TOGGLE_UNSAID && p->causal != (causal == TOGGLE_ON) &&
      set_member(l->definition, "causal", json_boolean(causal == TOGGLE_ON), e))
    return e->status;
  l->unsaid = json_object_get(l->definition, "projection") != NULL;
  if (!l->unsaid) return STATUS_OK;
  return set_member(l->definition, "value_size", json_integer((json_int_t)s->value_size), e);
}

/* Adds notes with doubts about a layer of the sizes `p`. */
static void note_doubts(const struct inspection *in, const struct inspect_layer *l,
                        const struct parameters *p, struct notes *notes) {
  struct definition d;
  struct error e = {0};
  if (definition_read(&d, l->definition, &e)) return;
  const struct hints_served is = {.at = l->at, .said = &d, .shape = &p->shape, .causal = p->causal};
  for (size_t i = 0; i < p->notes.count; i++) notes_add(notes, "%s", p->notes.text[i]);
  if (hints_of(in->hints, &l->at).ambiguous) hints_compare_unsaid(in->hints, &is, notes);
  hints_compare_unserved(in->hints, &is, notes);
}

static enum status define_layer(const struct inspection *in, struct inspect_layer *l,
                                const struct layout_place *p, const json_t *kind,
                                struct notes *notes, struct error *e) {
  struct parameters sizes;
  l->layout = p->family->layout;
  snprintf(l->address, sizeof l->address, "%s", p->address);
  l->at = (struct hints_layer){
      .family = p->family, .address = l->address, .numbered = p->numbered, .layer = p->layer};
  l->definition = json_pack("{s:s, s:s}", "checkpoint", in->wish->path, "layout", l->layout);
  if (!l->definition || json_object_update(l->definition, (json_t *)kind) != 0)
    return error_no_memory(e);
  if (set_place(in, l->definition, p, e) || complete_heads(in, l, &sizes, e) ||
      set_rest(in, l, &sizes, e))
    return e->status;
  note_doubts(in, l, &sizes, notes);
  if (l->headless) json_object_del(l->definition, "heads");
  if (l->headless) json_object_del(l->definition, "kv_heads");
  return STATUS_OK;
}

/* --- all layers --- */

/* A kind of layer to search: the keys of its definition, and the parameter of its score that must
 * exist, if any. */
struct inspect_kind {
  const char *definition, *parameter;
};

static const struct inspect_kind kinds[] = {
    {"{\"score\":\"additive\"}", "score.vector"},
    {"{\"score\":\"bilinear\"}", "score.weight"},
    {"{}", NULL},
    {"{\"projection\":\"none\",\"score\":\"additive\"}", NULL},
    {"{\"projection\":\"none\",\"score\":\"bilinear\"}", NULL},
};

static bool has_tensor(const struct checkpoint *file, const struct layout_place *p,
                       const char *stem) {
  char name[2 * LAYOUT_ADDRESS_SIZE];
  snprintf(name, sizeof name, "%s%s", p->address, stem);
  if (checkpoint_find(file, name)) return true;
  snprintf(name, sizeof name, "%s%s.weight", p->address, stem);
  return checkpoint_find(file, name) != NULL;
}

static bool is_listed(const struct inspect_layers *all, const struct layout_place *p) {
  for (size_t i = 0; i < all->count; i++)
    if (strcmp(all->layer[i].address, p->address) == 0 &&
        strcmp(all->layer[i].layout, p->family->layout) == 0)
      return true;
  return false;
}

static bool is_name_used(const struct inspect_layers *all, const char *name) {
  for (size_t i = 0; i < all->count; i++)
    if (strcmp(all->layer[i].name, name) == 0) return true;
  return false;
}

static int compare_places(const void *left, const void *right) {
  const struct layout_place *a = left, *b = right;
  const size_t shared = size_min(layout_place_stack(a), layout_place_stack(b));
  const int stack = strncmp(a->address, b->address, shared);
  if (stack != 0) return stack;
  if (layout_place_stack(a) != layout_place_stack(b))
    return layout_place_stack(a) < layout_place_stack(b) ? -1 : 1;
  if (a->layer != b->layer) return a->layer < b->layer ? -1 : 1;
  if (a->family != b->family) return a->family < b->family ? -1 : 1;
  return strcmp(a->address, b->address);
}

/* Lists the layer at this place, or the reason why it cannot be served. Its name gets a number if
 * another layer has the same. */
static enum status list_place(const struct inspection *in, const struct layout_place *p,
                              const json_t *kind, struct inspect_layers *all, struct error *e) {
  struct inspect_layer *l = &all->layer[all->count];
  struct error why = {0};
  if (all->count == INSPECT_LAYERS_MOST) {
    all->more = true;
    return STATUS_OK;
  }
  *l = (struct inspect_layer){0};
  define_layer(in, l, p, kind, &all->notes, &why);
  char stem[INSPECT_NAME];
  inspect_name_layer(in->name, p, stem);
  snprintf(l->name, sizeof l->name, "%s", stem);
  for (unsigned short n = 2; is_name_used(all, l->name); n++)
    snprintf(l->name, sizeof l->name, "%.*s-%hu", INSPECT_NAME_STEM, stem, n);
  all->count++;
  if (why.status == STATUS_OK) return STATUS_OK;
  json_decref(l->definition);
  l->definition = NULL;
  l->error = why;
  return why.status == STATUS_OUT_OF_MEMORY ? error_set(e, why.status, "%s", why.detail)
                                            : STATUS_OK;
}

/* Lists the layers of a kind that are not listed yet. */
static enum status find_kind(const struct inspection *in, const struct inspect_kind *kind,
                             struct layout_place *places, struct inspect_layers *all,
                             struct error *e) {
  struct definition d;
  bool no_memory; /* the only possible failure */
  size_t listed = 0;
  json_t *members = json_reserve_load(kind->definition, strlen(kind->definition), NULL, &no_memory);
  json_t *whole = json_deep_copy(members);
  if (!whole || json_object_set_new(whole, "checkpoint", json_string(in->wish->path)) != 0)
    error_no_memory(e);
  if (e->status == STATUS_OK && definition_read(&d, whole, e) == STATUS_OK) {
    const size_t count = layout_place_list(in->file, &d, true, places, INSPECT_LAYERS_MOST);
    listed = size_min(count, INSPECT_LAYERS_MOST);
    if (count > listed) all->more = true;
    qsort(places, listed, sizeof *places, compare_places);
  }
  for (size_t i = 0; i < listed && e->status == STATUS_OK; i++) {
    const struct layout_place *p = &places[i];
    const bool other = kind->parameter
                           ? !has_tensor(in->file, p, kind->parameter)
                           : d.projected && layout_is_pooling(in->file, p->family, p->address);
    if (!other && !is_listed(all, p)) list_place(in, p, members, all, e);
  }
  json_decref(whole);
  json_decref(members);
  return e->status;
}

enum status inspect_layers_find(struct inspect_layers *all, struct checkpoint *file,
                                const struct inspect_wish *wish, const struct hints *h,
                                struct error *e) {
  struct inspection in = {.file = file, .wish = wish, .hints = h};
  struct layout_place *places = malloc(INSPECT_LAYERS_MOST * sizeof *places);
  *all = (struct inspect_layers){.layer = calloc(INSPECT_LAYERS_MOST, sizeof *all->layer)};
  inspect_name_file(checkpoint_path(file), in.name);
  if (!text_is_utf8(wish->path, strlen(wish->path)))
    error_set(e, STATUS_CONFIG, "%s: a path in a definition is UTF-8; this is not",
              text_tail(wish->path));
  if (!places || !all->layer) error_no_memory(e);
  layout_place_mark(file, e);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds && e->status == STATUS_OK; i++)
    find_kind(&in, &kinds[i], places, all, e);
  free(places);
  if (e->status) inspect_layers_free(all);
  return e->status;
}

/* Makes the layer as model_load does; an unknown number of heads is the usual one. */
static enum status try_layer(const struct inspect_layer *l, struct checkpoint *file,
                             struct error *e) {
  struct definition d;
  struct parameters p;
  if (definition_read(&d, l->definition, e)) return e->status;
  if (l->headless) {
    d.heads = l->usual.query;
    d.kv_heads = l->usual.key;
  }
  if (parameters_read(&p, &d, file, e)) return e->status;
  layer_free(trial_make(&p, GEMM_PACKED, e));
  parameters_free(&p);
  return e->status;
}

enum status inspect_layers_check(struct inspect_layer *l, struct checkpoint *file,
                                 struct error *e) {
  struct error why = {0};
  if (try_layer(l, file, &why) == STATUS_OK) return STATUS_OK;
  if (why.status == STATUS_OUT_OF_MEMORY) return error_set(e, why.status, "%s", why.detail);
  json_decref(l->definition);
  l->definition = NULL;
  l->error = why;
  return STATUS_OK;
}

void inspect_layers_free(struct inspect_layers *all) {
  for (size_t i = 0; i < all->count; i++) json_decref(all->layer[i].definition);
  free(all->layer);
  *all = (struct inspect_layers){0};
}
