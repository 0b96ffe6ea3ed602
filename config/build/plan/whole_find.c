/* whole_find: compares the names of a checkpoint's tensors with those of the families. */
#include "config/build/plan/whole_find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/describe/definition.h"
#include "config/document/text.h"
#include "config/family/layout_family.h"
#include "core/base/size.h"

enum { NAME_SIZE = LAYOUT_ADDRESS_SIZE + 16 };

/* The search for the tensors of one stack. */
struct whole_finding {
  struct whole_plan *p;
  struct whole_stack *stack;
  struct error *e;
};

/* --- names --- */

/* A role to be found, and the stem of its tensors. */
struct whole_spot {
  enum whole_role role;
  size_t layer;
  const char *stem;
};

/* Writes the path of a layer. */
static void write_path(const struct whole_plan *p, const struct whole_family *f, size_t layer,
                       char out[LAYOUT_ADDRESS_SIZE]) {
  char within[LAYOUT_ADDRESS_SIZE];
  const struct whole_words *w = &p->words;
  const char *number = f->shared ? strstr(f->layer, "{j}") : NULL;
  if (!number) {
    layout_family_path(f->layer, layer, out, LAYOUT_ADDRESS_SIZE);
    return;
  }
  snprintf(within, sizeof within, "%.*s%zu%.20s", (int)(number - f->layer) % 64, f->layer,
           layer % w->inner, number + 3);
  layout_family_path(within, whole_words_group(w, layer / w->inner), out, LAYOUT_ADDRESS_SIZE);
}

/* Writes prefix, path of the layer and its attention, and stem. The caller appends the end,
 * ".weight": some roles have several ends. */
static void write_name(const struct whole_plan *p, const struct whole_family *f,
                       const struct whole_spot *s, char out[LAYOUT_ADDRESS_SIZE]) {
  char path[LAYOUT_ADDRESS_SIZE] = "";
  if (s->role < WHOLE_LAYER_ROLES) {
    write_path(p, f, s->layer, path);
    const size_t length = strlen(path);
    snprintf(path + length, sizeof path - length, "%s", whole_family_within(f, s->role));
  }
  snprintf(out, LAYOUT_ADDRESS_SIZE, "%.127s%.64s%.63s", p->prefix, path, s->stem);
}

static bool is_table(enum whole_role role) { return whole_roles[role].kind == WHOLE_IS_TABLE; }

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

static const struct checkpoint_entry *find_tensor(const struct whole_finding *f,
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

/* The stem of a role; NULL if this model has no such role. */
static const char *stem_of(const struct whole_plan *p, const struct whole_family *f,
                           enum whole_role role) {
  const bool gated = p->said.gated == TOGGLE_ON;
  if (role == WHOLE_UP && gated && f->gated_up) return f->gated_up;
  if (role == WHOLE_GATE && !gated) return NULL;
  if (whole_roles[role].kind == WHOLE_IS_HEAD_NORM && !(p->words.type && p->words.type->head_norms))
    return NULL;
  const struct whole_disentangled *d = &p->words.disentangled;
  if ((role == WHOLE_CONVOLUTION || role == WHOLE_NORM_CONVOLUTION) && !p->words.convolution.taps)
    return NULL;
  if ((role == WHOLE_POSITION_KEY && !(d->own && d->keys)) ||
      (role == WHOLE_POSITION_QUERY && !(d->own && d->queries)) ||
      (role == WHOLE_DISTANCES && !d->span) || (role == WHOLE_NORM_DISTANCES && !d->normed))
    return NULL;
  return f->stem[role];
}

/* The spot of a role's tensor, which may be a packed one, and what separates its stem from the end
 * of its name. */
static struct whole_spot spot_of(const struct whole_plan *p, const struct whole_family *f,
                                 enum whole_role role, size_t layer, const char **dot) {
  const struct whole_packed *packed = whole_family_packed(f, role);
  *dot = packed ? "" : ".";
  return packed ? (struct whole_spot){packed->role[0], layer, packed->stem}
                : (struct whole_spot){role, layer, stem_of(p, f, role)};
}

const char *whole_find_name(const struct whole_plan *p, const struct whole_stack *stack,
                            const struct whole_place *at, char out[LAYOUT_ADDRESS_SIZE]) {
  const struct whole_family *f = stack->family;
  const char *dot;
  struct whole_spot s = spot_of(p, f, at->role, at->layer, &dot);
  if (at->role == WHOLE_TOKEN) {
    /* The table of tokens that both stacks may have, or the first of this stack. */
    const struct whole_family *other = p->kind == MODEL_SEQ2SEQ ? p->family->decoder : NULL;
    const char *both = NULL;
    for (size_t i = 0; other && i < WHOLE_TABLES_MOST && p->family->table[i]; i++)
      for (size_t j = 0; j < WHOLE_TABLES_MOST && other->table[j] && !both; j++)
        if (strcmp(p->family->table[i], other->table[j]) == 0) both = other->table[j];
    s.stem = both ? both : f->table[0];
  }
  if (!s.stem) s.stem = "";
  write_name(p, f, &s, out);
  return dot;
}

/* --- the family and the prefix --- */

enum status whole_find_family(struct whole_plan *p, struct error *e) {
  char mark[LAYOUT_ADDRESS_SIZE], expected[LAYOUT_ADDRESS_SIZE] = "";
  const struct checkpoint *file = p->source.file;
  for (size_t i = 0; i < whole_family_count(); i++) {
    const struct whole_family *f = whole_family_at(i);
    const struct whole_type *type = p->words.type;
    if (f->by_kind && !(p->said.has_kind && p->said.kind == MODEL_DECODER)) continue;
    /* A family with keys is that of its types; the others are plain and d2l. */
    if (f->keys ? !type || strcmp(f->name, type->family) != 0
                : type && strcmp(type->family, "plain") != 0)
      continue;
    if (!f->layer) { /* its only tensor, whose name begins without a prefix */
      p->family = f;
      return STATUS_OK;
    }
    /* The mark is the end of the name of a tensor that every model of the family has. */
    const char *dot;
    const struct whole_spot query = spot_of(p, f, WHOLE_QUERY, 0, &dot);
    write_path(p, f, 0, mark);
    const size_t path = strlen(mark);
    snprintf(mark + path, sizeof mark - path, "%s%s%sweight", whole_family_within(f, WHOLE_QUERY),
             query.stem, dot);
    if (!*expected) snprintf(expected, sizeof expected, "%s", mark);
    /* The prefix is the part of a name before the mark. */
    const size_t length = strlen(mark);
    size_t count = 0;
    for (size_t j = 0; j < checkpoint_count(file); j++) {
      const char *name = checkpoint_at(file, j)->name;
      if (type && type->within && !strstr(name, type->within)) continue;
      const size_t before = text_ends_with(name, mark) ? strlen(name) - length : SIZE_MAX;
      if (before >= 128 || (before > 0 && name[before - 1] != '.')) continue;
      if (count++ == 0) snprintf(p->prefix, sizeof p->prefix, "%.*s", (int)before, name);
    }
    if (count == 0) continue;
    if (count > 1)
      return error_set(e, STATUS_CONFIG,
                       "%zu tensors' names end with \"%s\": these are several models", count, mark);
    p->family = f;
    return STATUS_OK;
  }
  if (!p->words.type)
    return error_set(e, STATUS_CONFIG,
                     "there is no config.json beside the tensors, and their names are neither "
                     "those of nn.Transformer nor of d2l");
  return error_set(e, STATUS_CONFIG, "no tensor's name ends with \"%s\", as those of %s do",
                   expected, p->words.type->family);
}

/* --- parts --- */

enum status whole_find_set(struct layout_part *out, const struct checkpoint_entry *t, size_t rank,
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
                              .columns = (size_t)(rank == 1 ? t->count : t->count / t->dim[0])};
  return STATUS_OK;
}

enum status whole_find_use(struct whole_plan *p, const struct checkpoint_entry *t, size_t rank,
                           struct layout_part *out, struct error *e) {
  if (whole_find_set(out, t, rank, e)) return e->status;
  p->used[t - checkpoint_at(p->source.file, 0)] = true;
  return STATUS_OK;
}

static enum status refuse_missing(const struct whole_finding *f, const struct whole_spot *s,
                                  const char *end) {
  char name[LAYOUT_ADDRESS_SIZE];
  write_name(f->p, f->stack->family, s, name);
  return error_set(f->e, STATUS_CONFIG, "there is no tensor \"%.150s%s\"", name, end);
}

bool whole_find_needs_bias(const struct whole_family *f, enum whole_role role) {
  return f->bias == WHOLE_BIAS_ALWAYS && !is_table(role) && !(f->unbiased >> role & 1);
}

/* The first layer with this role. */
static size_t first_layer(const struct whole_family *f, enum whole_role role) {
  return f->bare_zero && role == WHOLE_NORM_SELF;
}

/* Layers are alike: either each of them has a bias of this role, or none has. */
static enum status check_bias(const struct whole_finding *f, const struct whole_spot *s, bool has,
                              const char *end) {
  const size_t from = first_layer(f->stack->family, s->role);
  const bool layered = s->role < WHOLE_LAYER_ROLES && s->layer > from;
  const bool first = layered ? whole_plan_part(f->stack, s->role, from)->has_bias : has;
  if (!has && (first || whole_find_needs_bias(f->stack->family, s->role)))
    return refuse_missing(f, s, end);
  return has == first ? STATUS_OK
                      : refuse_missing(f, &(struct whole_spot){s->role, from, s->stem}, end);
}

/* Finds weight and bias of a role, if it has a weight. Old files use other names for those of
 * norms. */
static enum status find_pair(const struct whole_finding *f, const struct whole_spot *s) {
  const struct whole_family *family = f->stack->family;
  const enum whole_role role = s->role;
  struct layout_matrix *m = whole_plan_part(f->stack, role, s->layer);
  const struct checkpoint_entry *weight = find_tensor(f, s, ".weight"), *bias = NULL;
  const bool norm = whole_role_is_norm(role);
  if (!weight && norm) weight = find_tensor(f, s, ".gamma");
  if (!weight && role == WHOLE_POSITION) weight = find_tensor(f, s, ".weights");
  if (!weight && !family->layer && is_table(role)) weight = find_tensor(f, s, "");
  if (!weight) return STATUS_OK;
  if (!is_table(role) && family->bias != WHOLE_BIAS_NEVER) {
    bias = find_tensor(f, s, ".bias");
    if (!bias && norm) bias = find_tensor(f, s, ".beta");
  }
  if (check_bias(f, s, bias, ".bias")) return f->e->status;
  m->found = true;
  m->has_bias = bias;
  m->transposed =
      family->across && role < WHOLE_LAYER_ROLES && whole_roles[role].kind == WHOLE_IS_MATRIX;
  if (whole_find_use(f->p, weight, whole_role_rank(role), &m->weight, f->e)) return f->e->status;
  return bias ? whole_find_use(f->p, bias, 1, &m->bias, f->e) : STATUS_OK;
}

/* Finds a packed tensor of a layer, and cuts it into the parts of its roles. */
static enum status find_packed(const struct whole_finding *f, const struct whole_packed *packed,
                               size_t layer) {
  const bool across = f->stack->family->across;
  const struct whole_spot s = {packed->role[0], layer, packed->stem};
  struct layout_part all, biases = {0};
  const struct checkpoint_entry *weight = find_tensor(f, &s, "weight"), *bias = NULL;
  if (f->stack->family->bias != WHOLE_BIAS_NEVER) bias = find_tensor(f, &s, "bias");
  if (!weight) return refuse_missing(f, &s, "weight");
  if (check_bias(f, &s, bias, "bias") || whole_find_use(f->p, weight, 2, &all, f->e) ||
      (bias && whole_find_use(f->p, bias, 1, &biases, f->e)))
    return f->e->status;
  const size_t out = across ? all.columns : all.rows, each = out / packed->parts;
  if (out % packed->parts != 0)
    return error_set(f->e, STATUS_CONFIG,
                     "tensor \"%.120s\" has %zu %s, which cannot be divided into %zu equal parts",
                     weight->name, out, across ? "columns" : "rows", packed->parts);
  if (bias && biases.columns != out)
    return error_set(f->e, STATUS_CONFIG, "tensor \"%.120s\" has %zu numbers, not %zu", bias->name,
                     biases.columns, out);
  for (size_t i = 0; i < packed->parts; i++) {
    struct layout_matrix *m = whole_plan_part(f->stack, packed->role[i], layer);
    *m = (struct layout_matrix){
        .found = true, .has_bias = bias, .transposed = across, .weight = all, .bias = biases};
    *(across ? &m->weight.column : &m->weight.row) = i * each;
    *(across ? &m->weight.columns : &m->weight.rows) = each;
    m->bias.column = i * each;
    m->bias.columns = each;
  }
  return STATUS_OK;
}

/* Rejects a tensor that layers of a similar model have. */
static enum status refuse_obstacle(const struct whole_finding *f) {
  char name[LAYOUT_ADDRESS_SIZE];
  const struct whole_family *family = f->stack->family;
  if (!family->obstacle.stem) return STATUS_OK;
  write_name(f->p, family, &(struct whole_spot){WHOLE_DOWN, 0, family->obstacle.stem}, name);
  if (!checkpoint_find(f->p->source.file, name)) return STATUS_OK;
  return error_set(f->e, STATUS_CONFIG, "tensor \"%.120s\": %s", name, family->obstacle.why);
}

/* Counts the layers up to the first that the file lacks, and finds the parts of each. */
static enum status find_layers(const struct whole_finding *f) {
  struct whole_stack *stack = f->stack;
  const struct whole_family *family = stack->family;
  const char *dot;
  char end[16];
  if (!family->layer) return STATUS_OK;
  if (refuse_obstacle(f)) return f->e->status;
  struct whole_spot query = spot_of(f->p, family, WHOLE_QUERY, 0, &dot);
  snprintf(end, sizeof end, "%sweight", dot);
  while (!family->shared && query.layer <= DEFINITION_LAYER_MAX && find_tensor(f, &query, end))
    query.layer++;
  const size_t each = family->shared ? f->p->words.inner : 1;
  const size_t said = each * f->p->said.of[whole_plan_side(f->p, stack)].layers;
  stack->form.layers = said ? said : query.layer;
  if (said > DEFINITION_LAYER_MAX)
    return error_set(f->e, STATUS_CONFIG, "layers: %zu are more than %d", said,
                     DEFINITION_LAYER_MAX);
  if (said && said < query.layer)
    notes_add(&f->p->notes, "%zu of the %zu layers in the file are used, as configured", said,
              query.layer);
  if (stack->form.layers == 0) stack->form.layers = 1; /* reports its first tensor as missing */
  stack->layer = calloc(stack->form.layers, sizeof *stack->layer);
  if (!stack->layer) return error_no_memory(f->e);
  for (size_t i = 0; i < stack->form.layers; i++) {
    for (size_t j = 0; j < WHOLE_PACKED_MOST && family->packed[j].stem; j++)
      if (find_packed(f, &family->packed[j], i)) return f->e->status;
    for (enum whole_role role = 0; role < WHOLE_LAYER_ROLES; role++) {
      const struct whole_spot s = {role, i, stem_of(f->p, family, role)};
      if (!s.stem || i < first_layer(family, role)) continue;
      if (find_pair(f, &s)) return f->e->status;
      if (!whole_plan_part(stack, role, i)->found) return refuse_missing(f, &s, ".weight");
    }
  }
  return STATUS_OK;
}

/* Must a file have this role of a stack, for which the family has a stem? */
static bool is_required(const struct whole_plan *p, const struct whole_family *f,
                        enum whole_role role) {
  const bool required[WHOLE_ROLES] = {
#define WHOLE_STACK(id, kind, block, number, random, out, in, place, required) \
  [WHOLE_##id] = required,
#include "config/family/whole_roles.def"
  };
  return required[role];
}

/* Finds the tables, the last norm and the pooler. */
static enum status find_stack_parts(const struct whole_finding *f) {
  const struct whole_family *family = f->stack->family;
  /* The table of tokens is the first that the file has; the stack's own if each stack has one. A
   * decoder with an encoder must have one: it has no other rows to begin with. */
  const char *const *table = family->table;
  const bool cross = f->stack != whole_plan_reader(f->p), apart = f->p->words.apart;
  const size_t first = apart ? 1 + whole_plan_side(f->p, f->stack) : 0,
               end = apart ? first + 1 : WHOLE_TABLES_MOST;
  const struct layout_matrix *m = &f->stack->part[WHOLE_TOKEN];
  for (size_t i = first; i < end && table[i] && !m->found; i++)
    if (find_pair(f, &(struct whole_spot){WHOLE_TOKEN, 0, table[i]})) return f->e->status;
  if (!m->found && (cross || (family->keys && table[0])))
    return refuse_missing(f, &(struct whole_spot){WHOLE_TOKEN, 0, table[first]}, ".weight");
  for (enum whole_role role = WHOLE_TOKEN + 1; role < WHOLE_DENSE; role++) {
    const struct whole_spot s = {role, 0, stem_of(f->p, family, role)};
    if (!s.stem) continue;
    if (find_pair(f, &s)) return f->e->status;
    if (is_required(f->p, family, role) && !f->stack->part[role].found)
      return refuse_missing(f, &s, ".weight");
  }
  return STATUS_OK;
}

/* --- the stacks --- */

/* Sets the kind and the families of the stacks: a decoder is used if the file has one, unless the
 * definition asks for the encoder alone. */
static enum status find_kind(struct whole_plan *p, struct error *e) {
  const struct whole_family *decoder = p->family->decoder;
  const bool alone = p->said.has_kind && p->said.kind == MODEL_ENCODER;
  size_t count = 0; /* tensors of a decoder */
  if (decoder) {
    char begin[LAYOUT_ADDRESS_SIZE];
    snprintf(begin, sizeof begin, "%.127s%.*s", p->prefix, (int)strcspn(decoder->layer, "{") % 64,
             decoder->layer);
    checkpoint_behind(p->source.file, begin, &count);
  }
  const bool decodes = p->family->decodes && !p->words.both_ways;
  p->kind = decodes ? MODEL_DECODER : !alone && count > 0 ? MODEL_SEQ2SEQ : MODEL_ENCODER;
  whole_plan_reader(p)->family = p->family;
  if (p->kind == MODEL_SEQ2SEQ) p->stack[WHOLE_DECODER].family = decoder;
  if (!p->said.has_kind || p->said.kind == p->kind) return STATUS_OK;
  if (decodes)
    return error_set(e, STATUS_CONFIG, "kind: a model of %s is a decoder", p->family->name);
  if (p->words.both_ways)
    return error_set(e, STATUS_CONFIG,
                     "kind: this model of %s attends in both directions: it is an encoder",
                     p->family->name);
  if (p->said.kind == MODEL_SEQ2SEQ)
    return error_set(e, STATUS_CONFIG, "kind: seq2seq, but there is no decoder%s",
                     decoder ? "" : " that is supported");
  return error_set(e, STATUS_CONFIG, "kind: %s: %s", p->family->name,
                   decoder ? "a decoder is supported only with its encoder: as seq2seq"
                           : "only the encoder is supported");
}

enum status whole_find_parts(struct whole_plan *p, struct error *e) {
  if (find_kind(p, e)) return e->status;
  p->used = calloc(checkpoint_count(p->source.file) + 1, sizeof *p->used);
  if (!p->used) return error_no_memory(e);
  for (enum whole_side i = 0; i < WHOLE_SIDES; i++) {
    const struct whole_finding f = {p, &p->stack[i], e};
    if (!f.stack->family) continue;
    if (find_layers(&f) || find_stack_parts(&f)) return e->status;
  }
  return STATUS_OK;
}

/* --- the tensors that no role uses --- */

static bool begins_with(const char *name, const char *beginning) {
  return strncmp(name, beginning, strlen(beginning)) == 0;
}

/* Does the name, without the prefix, belong to a layer after the last one that is used? */
static bool is_of_later_layer(const struct whole_stack *stack, const char *name) {
  const char *path = stack->family->layer;
  if (!path) return false;
  const size_t before = strcspn(path, "{");
  const size_t digits = strncmp(name, path, before) == 0 ? strspn(name + before, "0123456789") : 0;
  char number[24];
  uint64_t layer;
  if (digits == 0 || digits >= sizeof number || name[before + digits] != '.') return false;
  snprintf(number, sizeof number, "%.*s", (int)digits, name + before);
  return text_decimal(number, &layer) && layer >= stack->form.layers &&
         layer <= DEFINITION_LAYER_MAX;
}

/* Would the tensor of this name, without the prefix, change what the stack computes? */
static bool would_change(const struct whole_plan *p, const struct whole_stack *stack,
                         const char *name) {
  const struct whole_family *f = stack->family;
  bool known = false;
  for (size_t i = 0; i < WHOLE_NAMES_MOST && f->scope[i]; i++)
    known = known || begins_with(name, f->scope[i]);
  if (!known) return false;
  for (size_t i = 0; i < WHOLE_NAMES_MOST && f->ignored[i]; i++)
    if (strcmp(name, f->ignored[i]) == 0) return false;
  for (size_t i = 0; i < WHOLE_TABLES_MOST && f->table[i]; i++)
    if (begins_with(name, f->table[i]) && strcmp(name + strlen(f->table[i]), ".weight") == 0)
      return false;
  const size_t before = f->layer ? strcspn(f->layer, "{") : 0;
  if (f->layer && strncmp(name, f->layer, before) == 0) {
    const char *in_layer = name + before + strspn(name + before, "0123456789");
    for (size_t i = 0; i < WHOLE_NAMES_MOST && f->buffer[i]; i++)
      if (*in_layer == '.' && strcmp(in_layer + 1, f->buffer[i]) == 0) return false;
  }
  const bool counted = p->said.of[whole_plan_side(p, stack)].layers;
  return !(counted && is_of_later_layer(stack, name));
}

enum status whole_find_check_rest(struct whole_plan *p, struct error *e) {
  for (size_t i = 0; i < checkpoint_count(p->source.file); i++) {
    const char *name = checkpoint_at(p->source.file, i)->name;
    const char *rest = begins_with(name, p->prefix) ? name + strlen(p->prefix) : NULL;
    if (p->used[i]) continue;
    p->aside++;
    for (enum whole_side side = 0; rest && side < WHOLE_SIDES; side++) {
      const struct whole_stack *stack = &p->stack[side];
      if (!stack->family || !would_change(p, stack, rest)) continue;
      if (!is_of_later_layer(stack, rest))
        return error_set(
            e, STATUS_CONFIG,
            "unexpected tensor \"%.150s\" in a %s model: attend would compute a different "
            "function, so it does not load the model",
            name, stack->family->name);
      /* Counting the layers ended at a gap, and no key gives their number. */
      char missing[LAYOUT_ADDRESS_SIZE];
      const struct whole_place at = {WHOLE_QUERY, stack->form.layers};
      const char *dot = whole_find_name(p, stack, &at, missing);
      return error_set(e, STATUS_CONFIG, "there is no tensor \"%.150s%sweight\", but \"%.150s\"",
                       missing, dot, name);
    }
  }
  return STATUS_OK;
}
