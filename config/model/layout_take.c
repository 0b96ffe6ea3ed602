/* layout_take: takes the tensors of a layer, and refuses what does not fit. */
#include "config/model/layout_take.h"

#include <stdio.h>
#include <string.h>

#include "config/document/nearest.h"

enum { NAME_SIZE = 2 * PLACE_NAME };

/* Where names are looked for. */
struct search {
  const struct checkpoint *file;
  const char *prefix;
};

static const struct checkpoint_entry *find(const struct search *s, const char *stem,
                                           const char *end) {
  char name[NAME_SIZE];
  int length = snprintf(name, sizeof name, "%s%s%s", s->prefix, stem, end);
  return length < (int)sizeof name ? checkpoint_find(s->file, name) : NULL;
}

/* The nearest name; one that begins with what was asked for is nearer than any other. */
static const char *nearest_to(const struct checkpoint *file, const char *name, size_t stem) {
  struct nearest near, begun;
  nearest_init(&near, name);
  nearest_init(&begun, name);
  for (size_t i = 0; i < checkpoint_count(file); i++) {
    const char *other = checkpoint_at(file, i)->name;
    nearest_offer(&near, other);
    if (strncmp(other, name, stem) == 0) nearest_offer(&begun, other);
  }
  if (begun.name) return begun.name;
  return near.name ? near.name : "";
}

static enum status missing(const struct search *s, const char *stem, const char *end,
                           struct error *e) {
  char name[NAME_SIZE];
  snprintf(name, sizeof name, "%s%s%s", s->prefix, stem, end);
  return error_set(e, STATUS_CONFIG, "has no tensor \"%.100s\"; the nearest is \"%.100s\"", name,
                   nearest_to(s->file, name, strlen(s->prefix) + strlen(stem)));
}

/* --- one tensor --- */

/* Only tensors that are used come here: what else the file holds is nobody's business. */
static enum status judge(const struct checkpoint_entry *t, size_t rank, struct error *e) {
  if (checkpoint_judge(t, e)) return e->status;
  if (t->rank != rank)
    return error_set(e, STATUS_CONFIG, "tensor \"%.100s\" has %zu dimensions, not %zu", t->name,
                     t->rank, rank);
  if (t->count == 0)
    return error_set(e, STATUS_CONFIG, "tensor \"%.100s\" holds no numbers", t->name);
  return STATUS_OK;
}

static struct layout_part whole(const struct checkpoint_entry *t) {
  if (t->rank == 1) return (struct layout_part){.tensor = t, .rows = 1, .columns = t->dim[0]};
  return (struct layout_part){.tensor = t, .rows = t->dim[0], .columns = t->dim[1]};
}

/* The bias must be as long as the weight has outputs. */
static enum status set_bias(struct layout_matrix *m, struct layout_part bias, struct error *e) {
  m->has_bias = true;
  m->bias = bias;
  if (bias.columns != layout_out(m))
    error_set(e, STATUS_CONFIG, "tensor \"%.100s\" has %zu numbers for the %zu %s of \"%.100s\"",
              bias.tensor->name, bias.columns, layout_out(m), m->transposed ? "columns" : "rows",
              m->weight.tensor->name);
  return e->status;
}

/* Weight and bias of one role; `bias` may be NULL. */
static enum status take(struct layout_matrix *m, const struct checkpoint_entry *weight,
                        const struct checkpoint_entry *bias, bool transposed, struct error *e) {
  if (judge(weight, 2, e) || (bias && judge(bias, 1, e))) return e->status;
  *m = (struct layout_matrix){.found = true, .transposed = transposed, .weight = whole(weight)};
  return bias ? set_bias(m, whole(bias), e) : STATUS_OK;
}

static enum status take_stem(const struct search *s, const char *stem, bool transposed,
                             struct layout_matrix *m, struct error *e) {
  const struct checkpoint_entry *weight = find(s, stem, ".weight");
  if (!weight) return missing(s, stem, ".weight", e);
  return take(m, weight, find(s, stem, ".bias"), transposed, e);
}

/* A bias beside a parameter of a score would be left out of the sum: better no answer than that. */
static enum status refuse_bias(const struct search *s, const struct checkpoint_entry *weight,
                               struct error *e) {
  static const char end[] = ".weight";
  const size_t length = strlen(weight->name), tail = sizeof end - 1;
  const bool ends = length > tail && strcmp(weight->name + length - tail, end) == 0;
  const size_t stems[] = {length, ends ? length - tail : length};
  for (size_t i = 0; i < 2; i++) {
    char name[2 * NAME_SIZE];
    int n = snprintf(name, sizeof name, "%.*s.bias", (int)stems[i], weight->name);
    if (n < (int)sizeof name && checkpoint_find(s->file, name))
      error_set(e, STATUS_CONFIG, "tensor \"%.100s\": the parameters of a score have no bias",
                name);
  }
  return e->status;
}

static enum status take_score(const struct search *s, const char *name, enum role role,
                              struct layout_matrix *m, struct error *e) {
  const struct checkpoint_entry *weight = find(s, name, "");
  if (!weight) weight = find(s, name, ".weight");
  if (!weight) return missing(s, name, "", e);
  if (refuse_bias(s, weight, e) ||
      judge(weight, role == ROLE_SCORE_VECTOR && weight->rank == 1 ? 1 : 2, e))
    return e->status;
  *m = (struct layout_matrix){.found = true, .weight = whole(weight)};
  return STATUS_OK;
}

/* --- queries, keys and values in one tensor --- */

/* The third that is a role's: queries come first, then keys, then values. */
static struct layout_part third(const struct checkpoint_entry *t, enum role role, bool by_rows) {
  struct layout_part part = whole(t);
  if (by_rows) {
    part.rows /= 3;
    part.row = role * part.rows;
  } else {
    part.columns /= 3;
    part.column = role * part.columns;
  }
  return part;
}

static enum status check_thirds(const struct checkpoint_entry *t, size_t rank, struct error *e) {
  if (judge(t, rank, e) == STATUS_OK && t->dim[0] % 3 != 0)
    error_set(e, STATUS_CONFIG, "tensor \"%.100s\": %ju rows are not three times as many of one",
              t->name, (uintmax_t)t->dim[0]);
  return e->status;
}

static enum status take_torch(const struct search *s, struct layout *l, struct error *e) {
  static const char *const apart[] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};
  const struct checkpoint_entry *joint = find(s, "in_proj_weight", "");
  const struct checkpoint_entry *bias = find(s, "in_proj_bias", "");
  if ((joint && check_thirds(joint, 2, e)) || (bias && check_thirds(bias, 1, e))) return e->status;
  for (enum role role = ROLE_QUERY; role <= ROLE_VALUE; role++) {
    struct layout_matrix *m = &l->matrix[role];
    const struct checkpoint_entry *own = joint ? joint : find(s, apart[role], "");
    if (!own) return missing(s, apart[role], "", e);
    if (!joint && judge(own, 2, e)) return e->status;
    *m = (struct layout_matrix){.found = true,
                                .weight = joint ? third(joint, role, true) : whole(own)};
    if (bias && set_bias(m, third(bias, role, false), e)) return e->status;
  }
  return STATUS_OK;
}

static enum status take_conv1d(const struct search *s, struct layout *l, struct error *e) {
  const struct checkpoint_entry *joint = find(s, "c_attn", ".weight");
  const struct checkpoint_entry *bias = find(s, "c_attn", ".bias");
  if (!joint) return missing(s, "c_attn", ".weight", e);
  if (judge(joint, 2, e) || (bias && check_thirds(bias, 1, e))) return e->status;
  if (joint->dim[1] % 3 != 0 || joint->dim[1] / 3 != joint->dim[0])
    return error_set(e, STATUS_CONFIG,
                     "tensor \"%.100s\" is [%ju, %ju]; queries, keys and values side by side would "
                     "be [n, 3n]",
                     joint->name, (uintmax_t)joint->dim[0], (uintmax_t)joint->dim[1]);
  for (enum role role = ROLE_QUERY; role <= ROLE_VALUE; role++) {
    struct layout_matrix *m = &l->matrix[role];
    *m = (struct layout_matrix){.found = true,
                                .transposed = true,
                                .weight = third(joint, role, false)};
    if (bias && set_bias(m, third(bias, role, false), e)) return e->status;
  }
  return STATUS_OK;
}

/* --- relative positions --- */

/* The family's table for this place, or NULL. */
static const struct checkpoint_entry *
find_table(const struct layout *l, const struct checkpoint *file, char name[NAME_SIZE]) {
  const struct place *p = &l->place;
  const struct checkpoint_entry *table = NULL;
  for (size_t i = 0; i < 2 && p->family->table[i] && !table; i++) {
    char path[PLACE_NAME];
    if (!family_path(p->family->table[i], p->layer, path, sizeof path)) continue;
    snprintf(name, NAME_SIZE, "%.*s%s", (int)p->before, p->address, path);
    table = checkpoint_find(file, name);
  }
  return table;
}

static enum status take_table(struct layout *l, const struct checkpoint *file,
                              const struct definition *d, size_t *heads, struct error *e) {
  const bool wanted = definition_has(d, ROLE_RELATIVE);
  char name[NAME_SIZE];
  const struct checkpoint_entry *table = find_table(l, file, name);
  if (wanted && l->place.family->cross)
    return error_set(e, STATUS_CONFIG, "relative_bias: cross attention of %s has none", l->name);
  if (!table && wanted) return missing(&(struct search){.file = file, .prefix = ""}, name, "", e);
  if (!table || judge(table, 2, e)) return e->status;
  *heads = table->dim[1];
  if (wanted)
    l->matrix[ROLE_RELATIVE] = (struct layout_matrix){.found = true, .weight = whole(table)};
  return STATUS_OK;
}

/* --- roles --- */

static enum status take_named(const struct search *s, const struct definition *d, enum role role,
                              struct layout_matrix *m, struct error *e) {
  const char *name = json_string_value(json_object_get(d->tensors, definition_role(role)));
  if (!name)
    return error_set(e, STATUS_CONFIG, "tensors: the role \"%s\" is missing%s",
                     definition_role(role),
                     role == ROLE_OUTPUT ? "; without one output_projection must be false" : "");
  if (role >= ROLE_PROJECTIONS) return take_score(s, name, role, m, e);
  const struct checkpoint_entry *exact = find(s, name, "");
  return exact ? take(m, exact, NULL, false, e) : take_stem(s, name, false, m, e);
}

bool layout_is_pooling(const struct checkpoint *file, const struct family *family,
                       const char *address) {
  const struct search s = {.file = file, .prefix = address};
  return strcmp(family->layout, "d2l") == 0 && find(&s, "w_v", ".weight") &&
         !find(&s, "W_v", ".weight");
}

static enum status take_role(const struct search *s, const struct family *family,
                             const struct definition *d, enum role role, struct layout_matrix *m,
                             struct error *e) {
  const char *own = family->stem[role];
  if (role == ROLE_VALUE && d->compare == SCORE_ADDITIVE &&
      layout_is_pooling(s->file, family, s->prefix))
    return error_set(e, STATUS_CONFIG,
                     "has no tensor \"%.100sW_v.weight\", but \"w_v.weight\": with projection none "
                     "W_q, W_k and w_v are the score's",
                     s->prefix);
  if (role >= ROLE_PROJECTIONS) return take_score(s, own ? own : definition_role(role), role, m, e);
  return take_stem(s, own, family->pack == PACK_CONV1D, m, e);
}

/* Layers of a family have these biases together, but that Whisper's keys have none: one that is
 * missing was lost or misspelt, and would count as zero. */
static enum status check_biases(const struct layout *l, struct error *e) {
  const struct layout_matrix *query = &l->matrix[ROLE_QUERY];
  for (enum role role = ROLE_KEY; role <= ROLE_VALUE && query->found; role++) {
    const struct layout_matrix *m = &l->matrix[role];
    const bool may_lack = role == ROLE_KEY && strcmp(l->name, "whisper") == 0;
    if (m->has_bias == query->has_bias || (may_lack && !m->has_bias)) continue;
    return error_set(e, STATUS_CONFIG, "\"%.100s\" has a bias, but \"%.100s\" has none",
                     (m->has_bias ? m : query)->weight.tensor->name,
                     (m->has_bias ? query : m)->weight.tensor->name);
  }
  return STATUS_OK;
}

enum status layout_take(struct layout *l, const struct checkpoint *file, const struct definition *d,
                        size_t *heads, struct error *e) {
  const struct family *family = l->place.family;
  const struct search s = {.file = file,
                           .prefix = family      ? l->place.address
                                     : d->prefix ? d->prefix
                                                 : ""};
  const bool joint = family && family->pack != PACK_APART;
  if (joint && d->projected)
    family->pack == PACK_TORCH ? take_torch(&s, l, e) : take_conv1d(&s, l, e);
  if (family && family->table[0]) take_table(l, file, d, heads, e);
  for (enum role role = 0; role < ROLE_COUNT && e->status == STATUS_OK; role++) {
    if (!definition_has(d, role) || (joint && role < ROLE_OUTPUT)) continue;
    if (!family) {
      take_named(&s, d, role, &l->matrix[role], e);
    } else if (!l->matrix[role].found) {
      take_role(&s, family, d, role, &l->matrix[role], e);
    }
  }
  if (e->status == STATUS_OK && family && strstr(family->path, "{i}")) check_biases(l, e);
  return e->status;
}
