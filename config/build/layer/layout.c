/* layout: finds the layer of a definition, and its tensors, role by role. */
#include "config/build/layer/layout.h"

#include <stdio.h>
#include <string.h>

#include "config/build/layer/layout_doubt.h"
#include "config/build/layer/layout_place.h"
#include "config/describe/definition.h"
#include "config/describe/definition_value.h"
#include "config/describe/hints/hints.h"
#include "config/document/nearest.h"

enum { NAME_SIZE = 2 * LAYOUT_ADDRESS_SIZE };

/* A search for names that begin with the prefix. */
struct layout_search {
  const struct checkpoint *file;
  const char *prefix;
};

static const struct checkpoint_entry *find_tensor(const struct layout_search *s, const char *stem,
                                                  const char *end) {
  char name[NAME_SIZE];
  int length = snprintf(name, sizeof name, "%s%s%s", s->prefix, stem, end);
  return length < (int)sizeof name ? checkpoint_find(s->file, name) : NULL;
}

/* Rejects a checkpoint without this tensor. A name with the same beginning, up to the stem, is the
 * best hint, however different its end. */
static enum status refuse_missing(const struct layout_search *s, const char *stem, const char *end,
                                  struct error *e) {
  char name[NAME_SIZE], hint[NEAREST_HINT];
  snprintf(name, sizeof name, "%s%s%s", s->prefix, stem, end);
  struct nearest near, begun;
  nearest_init(&near, name);
  nearest_init(&begun, name);
  begun.any = true;
  for (size_t i = 0; i < checkpoint_count(s->file); i++) {
    const char *other = checkpoint_at(s->file, i)->name;
    nearest_offer(&near, other);
    if (strncmp(other, name, strlen(s->prefix) + strlen(stem)) == 0) nearest_offer(&begun, other);
  }
  return error_set(e, STATUS_CONFIG, "has no tensor \"%.100s\"%s", name,
                   nearest_hint(begun.name ? &begun : &near, hint));
}

/* --- one tensor --- */

/* Checks a tensor that is used; the others of the file may be of any type and shape. */
static enum status check_used(const struct checkpoint_entry *t, size_t rank, struct error *e) {
  if (checkpoint_check_tensor(t, e)) return e->status;
  if (t->rank != rank)
    return error_set(e, STATUS_CONFIG, "tensor \"%.100s\" has %zu dimensions, not %zu", t->name,
                     t->rank, rank);
  if (t->count == 0)
    return error_set(e, STATUS_CONFIG, "tensor \"%.100s\" holds no numbers", t->name);
  return STATUS_OK;
}

static struct layout_part whole_tensor(const struct checkpoint_entry *t) {
  if (t->rank == 1) return (struct layout_part){.tensor = t, .rows = 1, .columns = t->dim[0]};
  return (struct layout_part){.tensor = t, .rows = t->dim[0], .columns = t->dim[1]};
}

/* The bias must be as long as the weight has outputs. */
static enum status set_bias(struct layout_matrix *m, struct layout_part bias, struct error *e) {
  m->has_bias = true;
  m->bias = bias;
  if (bias.columns != layout_matrix_out(m))
    error_set(e, STATUS_CONFIG, "tensor \"%.100s\" has %zu numbers for the %zu %s of \"%.100s\"",
              bias.tensor->name, bias.columns, layout_matrix_out(m),
              m->transposed ? "columns" : "rows", m->weight.tensor->name);
  return e->status;
}

/* Sets weight and bias of one role; `bias` may be NULL. */
static enum status set_matrix(struct layout_matrix *m, const struct checkpoint_entry *weight,
                              const struct checkpoint_entry *bias, bool transposed,
                              struct error *e) {
  if (check_used(weight, 2, e) || (bias && check_used(bias, 1, e))) return e->status;
  *m = (struct layout_matrix){.found = true,
                              .transposed = transposed,
                              .weight = whole_tensor(weight)};
  return bias ? set_bias(m, whole_tensor(bias), e) : STATUS_OK;
}

static enum status find_matrix(const struct layout_search *s, const char *stem, bool transposed,
                               struct layout_matrix *m, struct error *e) {
  const struct checkpoint_entry *weight = find_tensor(s, stem, ".weight");
  if (!weight) return refuse_missing(s, stem, ".weight", e);
  return set_matrix(m, weight, find_tensor(s, stem, ".bias"), transposed, e);
}

/* Finds a parameter of a score, which has no bias: a bias would be ignored, so it is rejected. */
static enum status find_score_parameter(const struct layout_search *s, const char *name,
                                        enum role role, struct layout_matrix *m, struct error *e) {
  static const char end[] = ".weight";
  const struct checkpoint_entry *weight = find_tensor(s, name, "");
  if (!weight) weight = find_tensor(s, name, end);
  if (!weight) return refuse_missing(s, name, "", e);
  const size_t length = strlen(weight->name), tail = sizeof end - 1;
  const bool ends = length > tail && strcmp(weight->name + length - tail, end) == 0;
  const size_t stems[] = {length, ends ? length - tail : length};
  for (size_t i = 0; i < 2; i++) {
    char bias[2 * NAME_SIZE];
    const int n = snprintf(bias, sizeof bias, "%.*s.bias", (int)stems[i], weight->name);
    if (n < (int)sizeof bias && checkpoint_find(s->file, bias))
      return error_set(e, STATUS_CONFIG,
                       "tensor \"%.100s\": the parameters of a score have no bias", bias);
  }
  if (check_used(weight, role == ROLE_SCORE_VECTOR && weight->rank == 1 ? 1 : 2, e))
    return e->status;
  *m = (struct layout_matrix){.found = true, .weight = whole_tensor(weight)};
  return STATUS_OK;
}

/* --- queries, keys and values in one tensor --- */

/* The third of a tensor that belongs to a role: queries, keys, values, in this order. */
static struct layout_part third_of(const struct checkpoint_entry *t, enum role role, bool by_rows) {
  struct layout_part part = whole_tensor(t);
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
  if (check_used(t, rank, e) == STATUS_OK && t->dim[0] % 3 != 0)
    error_set(e, STATUS_CONFIG,
              "tensor \"%.100s\": %ju rows cannot be divided among queries, keys and values",
              t->name, (uintmax_t)t->dim[0]);
  return e->status;
}

/* Finds the rows of a packed tensor, or the separate matrices that nn.MultiheadAttention has if
 * keys or values have another width. Their biases are packed in either case. */
static enum status find_by_rows(const struct layout_search *s, struct layout *l, struct error *e) {
  const char *const *apart = layout_family_separate;
  const char *stem = layout_family_packed(l->place.family);
  const struct checkpoint_entry *packed = find_tensor(s, stem, "weight");
  const struct checkpoint_entry *bias = find_tensor(s, stem, "bias");
  if ((packed && check_thirds(packed, 2, e)) || (bias && check_thirds(bias, 1, e)))
    return e->status;
  for (enum role role = ROLE_QUERY; role <= ROLE_VALUE; role++) {
    struct layout_matrix *m = &l->matrix[role];
    const struct checkpoint_entry *own = packed ? packed : find_tensor(s, apart[role], "");
    if (!own) return refuse_missing(s, apart[role], "", e);
    if (!packed && check_used(own, 2, e)) return e->status;
    *m =
        (struct layout_matrix){.found = true,
                               .weight = packed ? third_of(packed, role, true) : whole_tensor(own)};
    if (bias && set_bias(m, third_of(bias, role, false), e)) return e->status;
  }
  return STATUS_OK;
}

/* Finds the columns of a packed tensor, as in Conv1D. */
static enum status find_by_columns(const struct layout_search *s, struct layout *l,
                                   struct error *e) {
  const char *stem = layout_family_packed(l->place.family);
  const struct checkpoint_entry *packed = find_tensor(s, stem, "weight");
  const struct checkpoint_entry *bias = find_tensor(s, stem, "bias");
  if (!packed) return refuse_missing(s, stem, "weight", e);
  if (check_used(packed, 2, e) || (bias && check_thirds(bias, 1, e))) return e->status;
  if (packed->dim[1] % 3 != 0 || packed->dim[1] / 3 != packed->dim[0])
    return error_set(e, STATUS_CONFIG,
                     "tensor \"%.100s\" is [%ju, %ju]; queries, keys and values side by side would "
                     "be [n, 3n]",
                     packed->name, (uintmax_t)packed->dim[0], (uintmax_t)packed->dim[1]);
  for (enum role role = ROLE_QUERY; role <= ROLE_VALUE; role++) {
    struct layout_matrix *m = &l->matrix[role];
    *m = (struct layout_matrix){.found = true,
                                .transposed = true,
                                .weight = third_of(packed, role, false)};
    if (bias && set_bias(m, third_of(bias, role, false), e)) return e->status;
  }
  return STATUS_OK;
}

/* --- relative positions --- */

/* Finds the family's table of relative positions for this place; its columns are heads. */
static enum status find_relative_table(struct layout *l, const struct checkpoint *file,
                                       const struct definition *d, size_t *heads, struct error *e) {
  const struct layout_place *p = &l->place;
  const bool needed = definition_has(d, ROLE_RELATIVE);
  const struct checkpoint_entry *table = NULL;
  const char *all = p->family->names->stem[WHOLE_RELATIVE], *own = strrchr(all, '.');
  char name[NAME_SIZE];
  /* The layer's own table, or that of the first layer. A cross-attention has none: the decoder's
   * table only has the number of heads. */
  snprintf(name, NAME_SIZE, "%s%s.weight", p->address, own ? own + 1 : all);
  if (!p->family->cross) table = checkpoint_find(file, name);
  if (!table) {
    snprintf(name, NAME_SIZE, "%.*s%s.weight", (int)p->before, p->address, all);
    table = checkpoint_find(file, name);
  }
  if (needed && p->family->cross)
    return error_set(e, STATUS_CONFIG, "relative_bias: cross attention of %s has none", l->name);
  if (!table && needed)
    return refuse_missing(&(struct layout_search){.file = file, .prefix = ""}, name, "", e);
  if (!table || check_used(table, 2, e)) return e->status;
  *heads = table->dim[1];
  if (needed)
    l->matrix[ROLE_RELATIVE] = (struct layout_matrix){.found = true, .weight = whole_tensor(table)};
  return STATUS_OK;
}

/* --- one role --- */

/* Finds a role by its name in `tensors`. */
static enum status find_mapped_role(const struct layout_search *s, const struct definition *d,
                                    enum role role, struct layout_matrix *m, struct error *e) {
  const char *name = json_string_value(json_object_get(d->tensors, definition_role_name(role)));
  if (!name)
    return error_set(e, STATUS_CONFIG, "tensors: the role \"%s\" is missing%s",
                     definition_role_name(role),
                     role == ROLE_OUTPUT ? "; without one output_projection must be false" : "");
  if (role >= ROLE_PROJECTIONS) return find_score_parameter(s, name, role, m, e);
  const struct checkpoint_entry *exact = find_tensor(s, name, "");
  return exact ? set_matrix(m, exact, NULL, false, e) : find_matrix(s, name, false, m, e);
}

bool layout_is_pooling(const struct checkpoint *file, const struct layout_family *family,
                       const char *address) {
  const struct layout_search s = {.file = file, .prefix = address};
  return strcmp(family->layout, "d2l") == 0 && find_tensor(&s, "w_v", ".weight") &&
         !find_tensor(&s, "W_v", ".weight");
}

/* Finds a role by the names of the family. */
static enum status find_family_role(const struct layout_search *s,
                                    const struct layout_family *family, const struct definition *d,
                                    enum role role, struct layout_matrix *m, struct error *e) {
  const char *own = layout_family_stem(family, role);
  if (role == ROLE_VALUE && d->compare == SCORE_ADDITIVE &&
      layout_is_pooling(s->file, family, s->prefix))
    return error_set(e, STATUS_CONFIG,
                     "has no tensor \"%.100sW_v.weight\", but \"w_v.weight\": with projection none "
                     "W_q, W_k and w_v are the score's",
                     s->prefix);
  if (role >= ROLE_PROJECTIONS)
    return find_score_parameter(s, own ? own : definition_role_name(role), role, m, e);
  return find_matrix(s, own, family->names->across, m, e);
}

/* In a family's layers queries, keys and values have a bias or none has one, except its bare keys.
 * A missing bias was lost or misspelt: it must not count as zero. */
static enum status check_biases(const struct layout *l, struct error *e) {
  const struct layout_matrix *query = &l->matrix[ROLE_QUERY];
  for (enum role role = ROLE_KEY; role <= ROLE_VALUE && query->found; role++) {
    const struct layout_matrix *m = &l->matrix[role];
    const bool may_lack = role == ROLE_KEY && l->place.family->bare_keys;
    if (m->has_bias == query->has_bias || (may_lack && !m->has_bias)) continue;
    return error_set(e, STATUS_CONFIG, "\"%.100s\" has a bias, but \"%.100s\" has none",
                     (m->has_bias ? m : query)->weight.tensor->name,
                     (m->has_bias ? query : m)->weight.tensor->name);
  }
  return STATUS_OK;
}

/* Finds the roles of the completed definition: at the layout's place, or by `tensors`. *heads
 * becomes that of the table of relative positions, if there is one. */
static enum status find_tensors(struct layout *l, const struct checkpoint *file,
                                const struct definition *d, size_t *heads, struct error *e) {
  const struct layout_family *family = l->place.family;
  const struct layout_search s = {.file = file,
                                  .prefix = family      ? l->place.address
                                            : d->prefix ? d->prefix
                                                        : ""};
  const bool packed = family && layout_family_packed(family);
  if (packed && d->projected &&
      (family->names->across ? find_by_columns(&s, l, e) : find_by_rows(&s, l, e)))
    return e->status;
  if (family && family->names->relative && find_relative_table(l, file, d, heads, e))
    return e->status;
  for (enum role role = 0; role < ROLE_COUNT; role++) {
    struct layout_matrix *m = &l->matrix[role];
    if (!definition_has(d, role) || m->found || (packed && role < ROLE_OUTPUT)) continue;
    if (family ? find_family_role(&s, family, d, role, m, e) : find_mapped_role(&s, d, role, m, e))
      return e->status;
  }
  return l->place.numbered ? check_biases(l, e) : STATUS_OK;
}

/* --- the layer --- */

/* Rejects tensors of the layer that would make it a different one. */
static enum status check_beside(struct layout *l, const struct checkpoint *file,
                                const struct definition *d, bool rope_said, struct error *e) {
  const struct layout_place *p = &l->place;
  if (p->family->frequencies) { /* the layer's own, or those of its stack */
    char stack[LAYOUT_ADDRESS_SIZE];
    snprintf(stack, sizeof stack, "%.*s", (int)layout_place_stack(p), p->address);
    const struct layout_search own = {.file = file, .prefix = p->address};
    const struct layout_search shared = {.file = file, .prefix = stack};
    l->frequencies = find_tensor(&own, p->family->frequencies, "");
    if (!l->frequencies) l->frequencies = find_tensor(&shared, "rotary_emb.inv_freq", "");
  }
  if (layout_refuse_unserved(l, file, d, e)) return e->status;
  if (l->frequencies && d->rope == TOGGLE_OFF && !rope_said)
    return error_set(
        e, STATUS_CONFIG,
        "tensor \"%.100s\": it rotates queries and keys: set rope, to false or its base",
        l->frequencies->name);
  return STATUS_OK;
}

/* Sets the heads, in this order: of the definition; of the `table` of relative positions, unless
 * that is 0; of config.json, if matrices are cut into heads. */
static enum status find_heads(struct layout *l, struct definition *d, size_t table,
                              struct error *e) {
  const struct layout_place *p = &l->place;
  size_t kv_heads = 0;
  if (!d->heads && !table && d->projected && d->checkpoint && d->hints) {
    const struct hints_layer at = {.family = p->family,
                                   .address = p->family || !d->prefix ? p->address : d->prefix,
                                   .numbered = p->numbered,
                                   .layer = p->layer};
    const struct hints_said said = hints_of(d->hints, &at);
    d->heads = said.heads;
    l->hinted = d->heads > 0;
    if (l->hinted && !d->kv_heads) kv_heads = said.kv_heads;
  }
  /* In a family with shared keys the rows of its matrix show their number of heads, if the size of
   * a head is that of the queries. */
  const size_t heads = d->heads ? d->heads : table;
  const size_t query = layout_matrix_out(&l->matrix[ROLE_QUERY]);
  const size_t key = layout_matrix_out(&l->matrix[ROLE_KEY]);
  const struct whole_keys *keys = p->family ? p->family->names->keys : NULL;
  if (keys && keys->kv_heads && heads > 0 && query > 0 && query % heads == 0 &&
      key % (query / heads) == 0 && key > 0)
    kv_heads = key / (query / heads);
  return definition_complete_heads(d, table, kv_heads, e);
}

enum status layout_find(struct layout *l, const struct checkpoint *file, struct definition *d,
                        struct error *e) {
  const bool rope_said = d->rope != TOGGLE_UNSAID;
  struct definition_customs customs = {0};
  size_t heads = 0;
  bool needed = false; /* does any role need a tensor? */
  *l = (struct layout){.name = "none"};
  for (enum role role = 0; role < ROLE_COUNT; role++) needed |= definition_has(d, role);
  if (file && needed) {
    if (!d->tensors && layout_place_find(&l->place, file, d, e)) return e->status;
    l->name = d->tensors ? "tensors" : l->place.family->layout;
  }
  if (l->place.family) {
    customs = layout_family_customs(l->place.family);
    if (layout_sees_all(&l->place, file)) customs.causal = false;
  }
  if (definition_complete(d, &customs, e)) return e->status;
  if (file && needed) {
    if (find_tensors(l, file, d, &heads, e)) return e->status;
    if (l->place.family && check_beside(l, file, d, rope_said, e)) return e->status;
  }
  return find_heads(l, d, heads, e);
}
