/* whole_find: compares the names of a checkpoint's tensors with those of a family. */
#include "config/model/whole_find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/document/text.h"
#include "config/layer/layout_family.h"
#include "core/run/size.h"

enum { NAME_SIZE = LAYOUT_ADDRESS_SIZE + 16 };

/* --- names --- */

/* What is looked for. */
struct whole_spot {
  enum whole_role role;
  size_t layer;
  const char *stem;
};

/* The end, ".weight", is the caller's: some roles have several. */
static void write_name(const struct whole_plan *p, const struct whole_spot *s,
                       char out[LAYOUT_ADDRESS_SIZE]) {
  char path[LAYOUT_ADDRESS_SIZE] = "";
  if (s->role < WHOLE_LAYER_ROLES)
    layout_family_path(p->family->layer, s->layer, path, sizeof path);
  snprintf(out, LAYOUT_ADDRESS_SIZE, "%.127s%.63s%.63s", p->prefix, path, s->stem);
}

static bool is_table(enum whole_role role) {
  return role == WHOLE_TOKEN || role == WHOLE_TYPE || role == WHOLE_POSITION ||
         role == WHOLE_RELATIVE;
}

/* The tensor of this name and end. A table may lie without the prefix: where nn.Transformer is a
 * member of a module, that has the embedding. */
static const struct checkpoint_entry *find(const struct whole_plan *p, const struct whole_spot *s,
                                           const char *end) {
  char name[LAYOUT_ADDRESS_SIZE], whole[NAME_SIZE];
  write_name(p, s, name);
  snprintf(whole, sizeof whole, "%s%s", name, end);
  const struct checkpoint_entry *t = checkpoint_find(p->source.file, whole);
  if (!t && p->family->loose && is_table(s->role)) {
    snprintf(whole, sizeof whole, "%s%s", s->stem, end);
    t = checkpoint_find(p->source.file, whole);
  }
  return t;
}

static const char *stem_of(const struct whole_plan *p, enum whole_role role) {
  const bool gated = p->said.gated == TOGGLE_ON;
  if (role == WHOLE_UP && gated && p->family->gated_up) return p->family->gated_up;
  if (role == WHOLE_GATE && !gated) return NULL;
  const bool of_head = role == WHOLE_NORM_QUERY || role == WHOLE_NORM_KEY;
  if (of_head && !(p->words.type && p->words.type->head_norms)) return NULL;
  return p->family->stem[role];
}

void whole_find_name(const struct whole_plan *p, enum whole_role role, size_t layer,
                     char out[LAYOUT_ADDRESS_SIZE]) {
  const char *joint = role <= WHOLE_VALUE ? p->family->joint : NULL;
  const char *stem = joint ? joint : role == WHOLE_TOKEN ? p->family->table[0] : stem_of(p, role);
  write_name(p, &(struct whole_spot){role, layer, stem ? stem : ""}, out);
}

/* --- the family and the prefix --- */

/* The end of the name of a tensor that every model of the family has. */
static void write_mark(const struct whole_family *f, char out[LAYOUT_ADDRESS_SIZE]) {
  layout_family_path(f->layer, 0, out, LAYOUT_ADDRESS_SIZE);
  const size_t used = strlen(out);
  snprintf(out + used, LAYOUT_ADDRESS_SIZE - used, "%s%s", f->joint ? f->joint : f->stem[0],
           f->joint ? "weight" : ".weight");
}

/* Finds the prefixes behind which the mark stands; returns how many there are, and the first. */
static size_t list_prefixes(const struct checkpoint *file, const char *mark,
                            char first[LAYOUT_ADDRESS_SIZE]) {
  const size_t length = strlen(mark);
  size_t count = 0;
  for (size_t i = 0; i < checkpoint_count(file); i++) {
    const char *name = checkpoint_at(file, i)->name;
    const size_t before = text_ends_with(name, mark) ? strlen(name) - length : SIZE_MAX;
    if (before >= 128 || (before > 0 && name[before - 1] != '.')) continue;
    if (count++ == 0) snprintf(first, LAYOUT_ADDRESS_SIZE, "%.*s", (int)before, name);
  }
  return count;
}

static bool is_candidate(const struct whole_plan *p, const struct whole_family *f) {
  const struct whole_type *type = p->words.type;
  if (f->by_kind && !(p->said.has_kind && p->said.kind == MODEL_DECODER)) return false;
  if (!f->keys) return !type || strcmp(type->family, "plain") == 0; /* plain or d2l */
  return type && strcmp(f->name, type->family) == 0;
}

static enum status refuse_names(const struct whole_plan *p, struct error *e) {
  char mark[LAYOUT_ADDRESS_SIZE] = "";
  for (size_t i = 0; i < whole_family_count() && !*mark; i++)
    if (is_candidate(p, whole_family_at(i))) write_mark(whole_family_at(i), mark);
  if (!p->words.type)
    return error_set(e, STATUS_CONFIG,
                     "there is no config.json beside the tensors, and their names are neither "
                     "those of nn.Transformer nor of d2l");
  return error_set(e, STATUS_CONFIG, "no tensor's name ends with \"%s\", as those of %s do", mark,
                   p->words.type->family);
}

enum status whole_find_family(struct whole_plan *p, struct error *e) {
  char mark[LAYOUT_ADDRESS_SIZE];
  for (size_t i = 0; i < whole_family_count(); i++) {
    const struct whole_family *f = whole_family_at(i);
    if (!is_candidate(p, f)) continue;
    write_mark(f, mark);
    const size_t count = list_prefixes(p->source.file, mark, p->prefix);
    if (count == 0) continue;
    if (text_ends_with(p->prefix, "decoder."))
      return error_set(e, STATUS_CONFIG,
                       "its layers are those of a decoder, which is not served "
                       "yet");
    if (count > 1)
      return error_set(e, STATUS_CONFIG,
                       "%zu tensors' names end with \"%s\": these are several models", count, mark);
    p->family = f;
    return STATUS_OK;
  }
  return refuse_names(p, e);
}

/* --- parts --- */

/* A stretch of the rows of a tensor, all of its columns. A vector is one row. */
static enum status set_part(struct layout_part *out, const struct checkpoint_entry *t, size_t rank,
                            struct error *e) {
  if (checkpoint_check_tensor(t, e)) return e->status;
  if (t->rank != rank)
    return error_set(e, STATUS_CONFIG, "tensor \"%.120s\" has %zu dimensions, but must have %zu",
                     t->name, t->rank, rank);
  if (t->count == 0)
    return error_set(e, STATUS_CONFIG, "tensor \"%.120s\" is empty: a dimension of it is 0",
                     t->name);
  *out = (struct layout_part){.tensor = t,
                              .rows = rank == 1 ? 1 : (size_t)t->dim[0],
                              .columns = (size_t)t->dim[rank - 1]};
  return STATUS_OK;
}

/* The same of a tensor of the model's own file, which is used then. */
static enum status use_part(struct whole_plan *p, struct layout_part *out,
                            const struct checkpoint_entry *t, size_t rank, struct error *e) {
  if (set_part(out, t, rank, e)) return e->status;
  p->used[t - checkpoint_at(p->source.file, 0)] = true;
  return STATUS_OK;
}

static enum status refuse_missing(const struct whole_plan *p, const struct whole_spot *s,
                                  const char *end, struct error *e) {
  char name[LAYOUT_ADDRESS_SIZE];
  write_name(p, s, name);
  return error_set(e, STATUS_CONFIG, "there is no tensor \"%.150s%s\"", name, end);
}

static bool needs_bias(const struct whole_plan *p, enum whole_role role) {
  return p->family->bias == WHOLE_BIAS_ALWAYS && !is_table(role) &&
         !(p->family->unbiased & 1U << role);
}

/* Old files call weight and bias of norms otherwise. */
static enum status find_pair(struct whole_plan *p, const struct whole_spot *s, struct error *e) {
  const enum whole_role role = s->role;
  struct layout_matrix *m = whole_plan_part(p, role, s->layer);
  const struct checkpoint_entry *weight = find(p, s, ".weight"), *bias = NULL;
  const bool norm = whole_role_is_norm(role);
  if (!weight && norm) weight = find(p, s, ".gamma");
  if (!weight && role == WHOLE_POSITION) weight = find(p, s, ".weights");
  if (!weight) return STATUS_OK;
  if (!is_table(role) && p->family->bias != WHOLE_BIAS_NEVER) {
    bias = find(p, s, ".bias");
    if (!bias && norm) bias = find(p, s, ".beta");
  }
  if (!bias && needs_bias(p, role)) return refuse_missing(p, s, ".bias", e);
  m->found = true;
  m->has_bias = bias;
  m->transposed = p->family->across && role < WHOLE_LAYER_ROLES && !norm;
  if (use_part(p, &m->weight, weight, norm ? 1 : 2, e)) return e->status;
  return bias ? use_part(p, &m->bias, bias, 1, e) : STATUS_OK;
}

/* The thirds of a joint tensor. */
static enum status find_joint(struct whole_plan *p, size_t layer, struct error *e) {
  const struct whole_spot s = {WHOLE_QUERY, layer, p->family->joint};
  const struct checkpoint_entry *weight = find(p, &s, "weight"), *bias = find(p, &s, "bias");
  struct layout_part all, biases = {0};
  if (!weight) return refuse_missing(p, &s, "weight", e);
  if (!bias && needs_bias(p, WHOLE_QUERY)) return refuse_missing(p, &s, "bias", e);
  if (use_part(p, &all, weight, 2, e) || (bias && use_part(p, &biases, bias, 1, e)))
    return e->status;
  const bool across = p->family->across;
  const size_t out = across ? all.columns : all.rows, third = out / 3;
  if (out % 3 != 0)
    return error_set(e, STATUS_CONFIG, "tensor \"%.120s\" has %zu %s, which are no three times",
                     weight->name, out, across ? "columns" : "rows");
  if (bias && biases.columns != out)
    return error_set(e, STATUS_CONFIG, "tensor \"%.120s\" has %zu numbers, not %zu", bias->name,
                     biases.columns, out);
  for (enum whole_role role = WHOLE_QUERY; role <= WHOLE_VALUE; role++) {
    struct layout_matrix *m = whole_plan_part(p, role, layer);
    *m = (struct layout_matrix){
        .found = true, .has_bias = bias, .transposed = across, .weight = all, .bias = biases};
    *(across ? &m->weight.column : &m->weight.row) = role * third;
    *(across ? &m->weight.columns : &m->weight.rows) = third;
    m->bias.column = role * third;
    m->bias.columns = third;
  }
  return STATUS_OK;
}

static enum status find_layer(struct whole_plan *p, size_t layer, struct error *e) {
  if (p->family->joint && find_joint(p, layer, e)) return e->status;
  for (enum whole_role role = 0; role < WHOLE_LAYER_ROLES; role++) {
    const struct whole_spot s = {role, layer, stem_of(p, role)};
    if (!s.stem) continue;
    if (find_pair(p, &s, e)) return e->status;
    if (!whole_plan_part(p, role, layer)->found) return refuse_missing(p, &s, ".weight", e);
  }
  return STATUS_OK;
}

/* How many layers the file has, up to the first that it lacks. */
static size_t count_layers(const struct whole_plan *p) {
  const char *joint = p->family->joint, *end = joint ? "weight" : ".weight";
  struct whole_spot s = {WHOLE_QUERY, 0, joint ? joint : p->family->stem[WHOLE_QUERY]};
  while (s.layer <= DEFINITION_LAYER_MAX && find(p, &s, end)) s.layer++;
  return s.layer;
}

/* The first of the tables of tokens that is there; of stacks whose tables are apart, its own. */
static enum status find_table(struct whole_plan *p, struct error *e) {
  const char *const *table = p->family->table;
  const size_t first = p->words.apart ? 1 : 0, end = p->words.apart ? 2 : WHOLE_TABLES_MOST;
  for (size_t i = first; i < end && table[i] && !p->part[WHOLE_TOKEN].found; i++)
    if (find_pair(p, &(struct whole_spot){WHOLE_TOKEN, 0, table[i]}, e)) return e->status;
  if (!p->family->keys || !table[0] || p->part[WHOLE_TOKEN].found) return STATUS_OK;
  return refuse_missing(p, &(struct whole_spot){WHOLE_TOKEN, 0, table[first]}, ".weight", e);
}

static enum status find_model(struct whole_plan *p, struct error *e) {
  const struct whole_family *f = p->family;
  if (find_table(p, e)) return e->status;
  for (enum whole_role role = WHOLE_TOKEN + 1; role < WHOLE_DENSE; role++) {
    const struct whole_spot s = {role, 0, f->stem[role]};
    if (!s.stem) continue;
    if (find_pair(p, &s, e)) return e->status;
    const bool needed = role == WHOLE_NORM_EMBEDDED || (role == WHOLE_RELATIVE && f->relative) ||
                        (role == WHOLE_NORM_LAST && f->lasting) ||
                        (role == WHOLE_TYPE && p->words.types > 0) ||
                        (role == WHOLE_POSITION && f->positions == POSITIONS_LEARNED);
    if (needed && !p->part[role].found) return refuse_missing(p, &s, ".weight", e);
  }
  return STATUS_OK;
}

/* Of a decoder that has a matrix of its own for its logits. */
static enum status find_head(struct whole_plan *p, struct error *e) {
  struct layout_matrix *m = &p->part[WHOLE_HEAD];
  char name[NAME_SIZE];
  if (!p->family->decodes || p->said.tie_output == TOGGLE_ON) return STATUS_OK;
  snprintf(name, sizeof name, "%s.weight", p->family->head);
  const struct checkpoint_entry *weight = checkpoint_find(p->source.file, name);
  snprintf(name, sizeof name, "%s.bias", p->family->head);
  const struct checkpoint_entry *bias = checkpoint_find(p->source.file, name);
  if (!weight) return STATUS_OK;
  *m = (struct layout_matrix){.found = true, .has_bias = bias};
  if (use_part(p, &m->weight, weight, 2, e)) return e->status;
  return bias ? use_part(p, &m->bias, bias, 1, e) : STATUS_OK;
}

/* The dense layer of sentence-transformers. */
static enum status find_dense(struct whole_plan *p, struct error *e) {
  struct layout_matrix *m = &p->part[WHOLE_DENSE];
  if (!p->source.dense) return STATUS_OK;
  const struct checkpoint_entry *weight = checkpoint_find(p->source.dense, "linear.weight");
  const struct checkpoint_entry *bias = checkpoint_find(p->source.dense, "linear.bias");
  if (!weight || (p->source.dense_bias && !bias))
    return error_set(e, STATUS_CONFIG, "there is no tensor \"linear.%s\" of the dense layer",
                     weight ? "bias" : "weight");
  *m = (struct layout_matrix){.found = true, .has_bias = p->source.dense_bias};
  if (set_part(&m->weight, weight, 2, e)) return e->status;
  return m->has_bias ? set_part(&m->bias, bias, 1, e) : STATUS_OK;
}

/* Has the file a decoder, too? */
static bool has_decoder(const struct whole_plan *p) {
  char begin[LAYOUT_ADDRESS_SIZE];
  size_t count = 0;
  snprintf(begin, sizeof begin, "%s%s", p->prefix, p->family->decoder ? p->family->decoder : "");
  if (p->family->decoder) checkpoint_behind(p->source.file, begin, &count);
  return count > 0;
}

static enum status settle_kind(struct whole_plan *p, struct error *e) {
  const bool alone = p->said.has_kind && p->said.kind == MODEL_ENCODER;
  p->kind = p->family->decodes         ? MODEL_DECODER
            : !alone && has_decoder(p) ? MODEL_SEQ2SEQ
                                       : MODEL_ENCODER;
  if (!p->said.has_kind || p->said.kind == p->kind) return STATUS_OK;
  if (p->family->decodes)
    return error_set(e, STATUS_CONFIG, "kind: a model of %s is a decoder", p->family->name);
  return p->said.kind == MODEL_DECODER
             ? error_set(e, STATUS_CONFIG, "kind: a decoder of %s is not served yet",
                         p->family->name)
             : error_set(e, STATUS_CONFIG, "kind: seq2seq is said, but there is no decoder");
}

enum status whole_find_parts(struct whole_plan *p, struct error *e) {
  const size_t there = count_layers(p), said = p->said.layers;
  if (settle_kind(p, e)) return e->status;
  p->form.layers = said ? said : there;
  if (said && said < there)
    notes_add(&p->notes, "%zu layers of %zu in the file are used, as is said", said, there);
  p->layer = calloc(p->form.layers, sizeof *p->layer);
  p->used = calloc(checkpoint_count(p->source.file) + 1, sizeof *p->used);
  if (!p->layer || !p->used)
    return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a list of tensors");
  for (size_t i = 0; i < p->form.layers; i++)
    if (find_layer(p, i, e)) return e->status;
  return find_model(p, e) || find_head(p, e) ? e->status : find_dense(p, e);
}
