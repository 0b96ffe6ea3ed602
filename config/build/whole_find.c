/* whole_find: compares the names of a checkpoint's tensors with those of a family. */
#include "config/build/whole_find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/describe/definition.h"
#include "config/document/text.h"
#include "config/family/layout_family.h"
#include "core/base/size.h"

enum { NAME_SIZE = LAYOUT_ADDRESS_SIZE + 16 };

/* What looks for the tensors of one stack. */
struct whole_finding {
  struct whole_plan *p;
  struct whole_stack *stack;
  struct error *e;
};

/* --- names --- */

/* What is looked for. */
struct whole_spot {
  enum whole_role role;
  size_t layer;
  const char *stem;
};

/* The end, ".weight", is the caller's: some roles have several. */
static void write_name(const struct whole_plan *p, const struct whole_family *f,
                       const struct whole_spot *s, char out[LAYOUT_ADDRESS_SIZE]) {
  char path[LAYOUT_ADDRESS_SIZE] = "";
  if (s->role < WHOLE_LAYER_ROLES) layout_family_path(f->layer, s->layer, path, sizeof path);
  snprintf(out, LAYOUT_ADDRESS_SIZE, "%.127s%.63s%.63s", p->prefix, path, s->stem);
}

static bool is_table(enum whole_role role) {
  return role == WHOLE_TOKEN || role == WHOLE_TYPE || role == WHOLE_POSITION ||
         role == WHOLE_RELATIVE;
}

const struct checkpoint_entry *whole_find_near(const struct whole_plan *p, const char *name) {
  char whole[NAME_SIZE];
  size_t length = strlen(p->prefix);
  for (;;) {
    snprintf(whole, sizeof whole, "%.*s%.120s", (int)length, p->prefix, name);
    const struct checkpoint_entry *t = checkpoint_find(p->source.file, whole);
    if (t || length == 0) return t;
    length--; /* its dot */
    while (length > 0 && p->prefix[length - 1] != '.') length--;
  }
}

static const struct checkpoint_entry *find(const struct whole_finding *f,
                                           const struct whole_spot *s, const char *end) {
  const struct whole_family *family = f->stack->family;
  char name[LAYOUT_ADDRESS_SIZE], whole[NAME_SIZE];
  if (family->loose && is_table(s->role)) {
    snprintf(whole, sizeof whole, "%s%s", s->stem, end);
    return whole_find_near(f->p, whole);
  }
  write_name(f->p, family, s, name);
  snprintf(whole, sizeof whole, "%s%s", name, end);
  return checkpoint_find(f->p->source.file, whole);
}

static const char *stem_of(const struct whole_plan *p, const struct whole_family *f,
                           enum whole_role role) {
  const bool gated = p->said.gated == TOGGLE_ON;
  if (role == WHOLE_UP && gated && f->gated_up) return f->gated_up;
  if (role == WHOLE_GATE && !gated) return NULL;
  const bool of_head = role == WHOLE_NORM_QUERY || role == WHOLE_NORM_KEY;
  if (of_head && !(p->words.type && p->words.type->head_norms)) return NULL;
  return f->stem[role];
}

/* Where queries, keys and values of one attention are one tensor: its name but for its end. */
static const char *joint_of(const struct whole_family *f, enum whole_role role) {
  return role <= WHOLE_VALUE                                      ? f->joint
         : role >= WHOLE_CROSS_QUERY && role <= WHOLE_CROSS_VALUE ? f->cross_joint
                                                                  : NULL;
}

/* The table of tokens that both stacks may have; else the first of this one. */
static const char *table_of(const struct whole_plan *p, const struct whole_family *f) {
  const struct whole_family *other = p->kind == MODEL_SEQ2SEQ ? p->family->decoder : NULL;
  for (size_t i = 0; other && i < WHOLE_TABLES_MOST && p->family->table[i]; i++)
    for (size_t j = 0; j < WHOLE_TABLES_MOST && other->table[j]; j++)
      if (strcmp(p->family->table[i], other->table[j]) == 0) return other->table[j];
  return f->table[0];
}

const char *whole_find_name(const struct whole_plan *p, const struct whole_stack *stack,
                            const struct whole_place *at, char out[LAYOUT_ADDRESS_SIZE]) {
  const struct whole_family *f = stack->family;
  const char *joint = joint_of(f, at->role);
  const char *stem = joint                     ? joint
                     : at->role == WHOLE_TOKEN ? table_of(p, f)
                                               : stem_of(p, f, at->role);
  write_name(p, f, &(struct whole_spot){at->role, at->layer, stem ? stem : ""}, out);
  return joint ? "" : ".";
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

enum status whole_find_use(struct whole_plan *p, const struct checkpoint_entry *t, size_t rank,
                           struct layout_part *out, struct error *e) {
  if (set_part(out, t, rank, e)) return e->status;
  p->used[t - checkpoint_at(p->source.file, 0)] = true;
  return STATUS_OK;
}

static enum status use_part(const struct whole_finding *f, struct layout_part *out,
                            const struct checkpoint_entry *t, size_t rank) {
  return whole_find_use(f->p, t, rank, out, f->e);
}

static enum status refuse_missing(const struct whole_finding *f, const struct whole_spot *s,
                                  const char *end) {
  char name[LAYOUT_ADDRESS_SIZE];
  write_name(f->p, f->stack->family, s, name);
  return error_set(f->e, STATUS_CONFIG, "there is no tensor \"%.150s%s\"", name, end);
}

bool whole_find_needs_bias(const struct whole_family *f, enum whole_role role) {
  return f->bias == WHOLE_BIAS_ALWAYS && !is_table(role) && !(f->unbiased & 1U << role);
}

/* Old files call weight and bias of norms otherwise. */
static enum status find_pair(const struct whole_finding *f, const struct whole_spot *s) {
  const struct whole_family *family = f->stack->family;
  const enum whole_role role = s->role;
  struct layout_matrix *m = whole_plan_part(f->stack, role, s->layer);
  const struct checkpoint_entry *weight = find(f, s, ".weight"), *bias = NULL;
  const bool norm = whole_role_is_norm(role);
  if (!weight && norm) weight = find(f, s, ".gamma");
  if (!weight && role == WHOLE_POSITION) weight = find(f, s, ".weights");
  if (!weight) return STATUS_OK;
  if (!is_table(role) && family->bias != WHOLE_BIAS_NEVER) {
    bias = find(f, s, ".bias");
    if (!bias && norm) bias = find(f, s, ".beta");
  }
  if (!bias && whole_find_needs_bias(family, role)) return refuse_missing(f, s, ".bias");
  m->found = true;
  m->has_bias = bias;
  m->transposed = family->across && role < WHOLE_LAYER_ROLES && !norm;
  if (use_part(f, &m->weight, weight, norm ? 1 : 2)) return f->e->status;
  return bias ? use_part(f, &m->bias, bias, 1) : STATUS_OK;
}

/* The thirds of a joint tensor, from the role of its queries on. */
static enum status find_joint(const struct whole_finding *f, size_t layer, enum whole_role first) {
  const bool across = f->stack->family->across;
  const struct whole_spot s = {first, layer, joint_of(f->stack->family, first)};
  struct layout_part all, biases = {0};
  if (!s.stem) return STATUS_OK;
  const struct checkpoint_entry *weight = find(f, &s, "weight"), *bias = find(f, &s, "bias");
  if (!weight) return refuse_missing(f, &s, "weight");
  if (!bias && whole_find_needs_bias(f->stack->family, first)) return refuse_missing(f, &s, "bias");
  if (use_part(f, &all, weight, 2) || (bias && use_part(f, &biases, bias, 1))) return f->e->status;
  const size_t out = across ? all.columns : all.rows, third = out / 3;
  if (out % 3 != 0)
    return error_set(f->e, STATUS_CONFIG, "tensor \"%.120s\" has %zu %s, which are no three times",
                     weight->name, out, across ? "columns" : "rows");
  if (bias && biases.columns != out)
    return error_set(f->e, STATUS_CONFIG, "tensor \"%.120s\" has %zu numbers, not %zu", bias->name,
                     biases.columns, out);
  for (size_t i = 0; i < 3; i++) {
    struct layout_matrix *m = whole_plan_part(f->stack, (enum whole_role)(first + i), layer);
    *m = (struct layout_matrix){
        .found = true, .has_bias = bias, .transposed = across, .weight = all, .bias = biases};
    *(across ? &m->weight.column : &m->weight.row) = i * third;
    *(across ? &m->weight.columns : &m->weight.rows) = third;
    m->bias.column = i * third;
    m->bias.columns = third;
  }
  return STATUS_OK;
}

static enum status find_layer(const struct whole_finding *f, size_t layer) {
  if (find_joint(f, layer, WHOLE_QUERY) || find_joint(f, layer, WHOLE_CROSS_QUERY))
    return f->e->status;
  for (enum whole_role role = 0; role < WHOLE_LAYER_ROLES; role++) {
    const struct whole_spot s = {role, layer, stem_of(f->p, f->stack->family, role)};
    if (!s.stem) continue;
    if (find_pair(f, &s)) return f->e->status;
    if (!whole_plan_part(f->stack, role, layer)->found) return refuse_missing(f, &s, ".weight");
  }
  return STATUS_OK;
}

/* How many layers the file has, up to the first that it lacks. */
static size_t count_layers(const struct whole_finding *f) {
  const char *joint = f->stack->family->joint, *end = joint ? "weight" : ".weight";
  struct whole_spot s = {WHOLE_QUERY, 0, joint ? joint : f->stack->family->stem[WHOLE_QUERY]};
  while (s.layer <= DEFINITION_LAYER_MAX && find(f, &s, end)) s.layer++;
  return s.layer;
}

/* The first of the tables of tokens that is there; of stacks whose tables are apart, its own. A
 * decoder beside an encoder has no other rows to begin with. */
static enum status find_table(const struct whole_finding *f) {
  const struct whole_family *family = f->stack->family;
  const char *const *table = family->table;
  const bool beside = f->stack != whole_plan_reader(f->p), apart = f->p->words.apart;
  const size_t first = apart ? 1 + family->decodes : 0, end = apart ? first + 1 : WHOLE_TABLES_MOST;
  const struct layout_matrix *m = &f->stack->part[WHOLE_TOKEN];
  for (size_t i = first; i < end && table[i] && !m->found; i++)
    if (find_pair(f, &(struct whole_spot){WHOLE_TOKEN, 0, table[i]})) return f->e->status;
  if (m->found || !(beside || (family->keys && table[0]))) return STATUS_OK;
  return refuse_missing(f, &(struct whole_spot){WHOLE_TOKEN, 0, table[first]}, ".weight");
}

static enum status find_model_parts(const struct whole_finding *f) {
  const struct whole_family *family = f->stack->family;
  if (find_table(f)) return f->e->status;
  for (enum whole_role role = WHOLE_TOKEN + 1; role < WHOLE_DENSE; role++) {
    const struct whole_spot s = {role, 0, family->stem[role]};
    if (!s.stem) continue;
    if (find_pair(f, &s)) return f->e->status;
    const bool needed = role == WHOLE_NORM_EMBEDDED ||
                        (role == WHOLE_RELATIVE && family->relative) ||
                        (role == WHOLE_NORM_LAST && family->lasting) ||
                        (role == WHOLE_TYPE && f->p->words.types > 0) ||
                        (role == WHOLE_POSITION && family->positions == POSITIONS_LEARNED);
    if (needed && !f->stack->part[role].found) return refuse_missing(f, &s, ".weight");
  }
  return STATUS_OK;
}

/* Of a decoder: the matrix of its own for its logits, where it has one, and their bias. */
static enum status find_head(const struct whole_finding *f) {
  const struct whole_family *family = f->stack->family;
  struct layout_matrix *m = &f->stack->part[WHOLE_HEAD];
  struct layout_matrix *added = &f->stack->part[WHOLE_LOGITS_BIAS];
  char name[NAME_SIZE];
  if (!family->decodes) return STATUS_OK;
  snprintf(name, sizeof name, "%s.weight", family->head);
  const struct checkpoint_entry *weight = whole_find_near(f->p, name);
  snprintf(name, sizeof name, "%s.bias", family->head);
  const struct checkpoint_entry *bias =
      whole_find_near(f->p, family->logits_bias ? family->logits_bias : name);
  if (family->headed && !weight)
    return refuse_missing(f, &(struct whole_spot){WHOLE_HEAD, 0, family->head}, ".weight");
  m->found = weight && (family->headed || f->p->said.tie_output != TOGGLE_ON);
  if (m->found && use_part(f, &m->weight, weight, 2)) return f->e->status;
  added->found = bias;
  return bias ? use_part(f, &added->weight, bias, bias->rank == 2 ? 2 : 1) : STATUS_OK;
}

/* A matrix of a dense layer of sentence-transformers, with or without a bias. */
static enum status find_dense_matrix(const struct whole_dense *d, const char *name, bool biased,
                                     struct layout_matrix *m, struct error *e) {
  char full[2][NAME_SIZE];
  snprintf(full[0], NAME_SIZE, "%s.weight", name);
  snprintf(full[1], NAME_SIZE, "%s.bias", name);
  const struct checkpoint_entry *weight = checkpoint_find(d->file, full[0]);
  const struct checkpoint_entry *bias = checkpoint_find(d->file, full[1]);
  if (!weight || (biased && !bias))
    return error_set(e, STATUS_CONFIG, "there is no tensor \"%s\" of the dense layer",
                     full[weight != NULL]);
  *m = (struct layout_matrix){.found = true, .has_bias = biased};
  if (set_part(&m->weight, weight, 2, e)) return e->status;
  return biased ? set_part(&m->bias, bias, 1, e) : STATUS_OK;
}

static enum status find_dense(const struct whole_finding *f) {
  if (f->stack != whole_plan_reader(f->p)) return STATUS_OK;
  for (unsigned i = 0; i < STACK_DENSE_MOST; i++) {
    const struct whole_dense *d = &f->p->source.dense[i];
    struct layout_matrix *part = f->stack->part;
    if (!d->file) break;
    if (find_dense_matrix(d, "linear", d->bias, &part[WHOLE_DENSE + 2 * i], f->e))
      return f->e->status;
    if (d->residual && d->in != d->out &&
        find_dense_matrix(d, "residual", false, &part[WHOLE_DENSE_SKIP + 2 * i], f->e))
      return f->e->status;
  }
  return STATUS_OK;
}

/* --- the stacks --- */

/* Has the file a decoder, too? */
static bool has_decoder(const struct whole_plan *p) {
  const struct whole_family *decoder = p->family->decoder;
  char begin[LAYOUT_ADDRESS_SIZE];
  size_t count = 0;
  if (!decoder) return false;
  snprintf(begin, sizeof begin, "%.127s%.*s", p->prefix, (int)strcspn(decoder->layer, "{") % 64,
           decoder->layer);
  checkpoint_behind(p->source.file, begin, &count);
  return count > 0;
}

static enum status settle_kind(struct whole_plan *p, struct error *e) {
  const bool alone = p->said.has_kind && p->said.kind == MODEL_ENCODER;
  p->kind = p->family->decodes         ? MODEL_DECODER
            : !alone && has_decoder(p) ? MODEL_SEQ2SEQ
                                       : MODEL_ENCODER;
  whole_plan_reader(p)->family = p->family;
  if (p->kind == MODEL_SEQ2SEQ) p->stack[WHOLE_DECODER].family = p->family->decoder;
  if (!p->said.has_kind || p->said.kind == p->kind) return STATUS_OK;
  if (p->family->decodes)
    return error_set(e, STATUS_CONFIG, "kind: a model of %s is a decoder", p->family->name);
  if (p->said.kind == MODEL_SEQ2SEQ)
    return error_set(e, STATUS_CONFIG, "kind: seq2seq, but there is no decoder%s",
                     p->family->decoder ? "" : " that is supported");
  return error_set(e, STATUS_CONFIG, "kind: %s: %s", p->family->name,
                   p->family->decoder ? "a decoder is supported only with its encoder: as seq2seq"
                                      : "only the encoder is supported");
}

static enum status find_stack(const struct whole_finding *f) {
  struct whole_stack *s = f->stack;
  const enum whole_side side = s->family->decodes ? WHOLE_DECODER : WHOLE_ENCODER;
  const size_t there = count_layers(f), said = f->p->said.of[side].layers;
  s->form.layers = said ? said : there;
  if (said && said < there)
    notes_add(&f->p->notes, "%zu of the %zu layers in the file are used, as configured", said,
              there);
  if (s->form.layers == 0) s->form.layers = 1; /* whose first tensor is missing */
  s->layer = calloc(s->form.layers, sizeof *s->layer);
  if (!s->layer) return error_no_memory(f->e);
  for (size_t i = 0; i < s->form.layers; i++)
    if (find_layer(f, i)) return f->e->status;
  return find_model_parts(f) || find_head(f) || find_dense(f) ? f->e->status : STATUS_OK;
}

enum status whole_find_parts(struct whole_plan *p, struct error *e) {
  if (settle_kind(p, e)) return e->status;
  p->used = calloc(checkpoint_count(p->source.file) + 1, sizeof *p->used);
  if (!p->used) return error_no_memory(e);
  for (enum whole_side i = 0; i < WHOLE_SIDES && !e->status; i++)
    if (p->stack[i].family) find_stack(&(struct whole_finding){p, &p->stack[i], e});
  return e->status;
}
