/* layout: finds the tensors of a layer by the names that each family gives them. */
#include "config/layout.h"

#include <stdio.h>
#include <string.h>

#include "config/nearest.h"

enum { NAME_SIZE = 256 };

/* A family of names. Each role is a stem; a family without names for a score uses plain's. */
struct family {
  const char *name;
  const char *mark[2];          /* what tells that queries are projected; either will do */
  const char *stem[ROLE_COUNT]; /* not of torch's inner roles, which share tensors */
  bool any_prefix;
  bool unprojected; /* its names are those of layers without projections, too */
};

/* In d2l's additive attention, which projects nothing, W_q and W_k belong to the score. */
static const struct family families[] = {
    {.name = "plain",
     .mark = {"query.weight"},
     .stem = {"query", "key", "value", "output", "score.query", "score.key", "score.vector",
              "score.weight"},
     .unprojected = true},
    {.name = "torch",
     .mark = {"in_proj_weight", "q_proj_weight"},
     .stem = {[ROLE_OUTPUT] = "out_proj"},
     .any_prefix = true,
     .unprojected = true},
    {.name = "d2l",
     .mark = {"W_q.weight"},
     .stem = {"W_q", "W_k", "W_v", "W_o"},
     .any_prefix = true},
    {.name = "d2l",
     .stem = {[ROLE_OUTPUT] = "W_o",
              [ROLE_SCORE_QUERY] = "W_q.weight",
              [ROLE_SCORE_KEY] = "W_k.weight",
              [ROLE_SCORE_VECTOR] = "w_v.weight"},
     .any_prefix = true,
     .unprojected = true},
};
enum { FAMILY_COUNT = sizeof families / sizeof *families };

/* What a search is about: the file, and the family with the prefix under which it was found. */
struct search {
  const struct checkpoint *file;
  const struct family *family;
  char prefix[NAME_SIZE];
};

/* --- tensors --- */

static const struct checkpoint_entry *find(const struct search *s, const char *stem,
                                           const char *end) {
  char name[2 * NAME_SIZE];
  int length = snprintf(name, sizeof name, "%s%s%s", s->prefix, stem, end);
  return length < (int)sizeof name ? checkpoint_find(s->file, name) : NULL;
}

static enum status missing(const struct search *s, const char *stem, const char *end,
                           struct error *e) {
  char name[2 * NAME_SIZE];
  struct nearest near;
  snprintf(name, sizeof name, "%s%s%s", s->prefix, stem, end);
  nearest_init(&near, name);
  for (size_t i = 0; i < checkpoint_count(s->file); i++)
    nearest_offer(&near, checkpoint_at(s->file, i)->name);
  return error_set(e, STATUS_CONFIG, "has no tensor \"%.100s\"; the nearest is \"%.100s\"", name,
                   near.name ? near.name : "");
}

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

/* Weight and bias of one role; `bias` may be NULL. */
static enum status take(struct layout_matrix *m, const struct checkpoint_entry *weight,
                        const struct checkpoint_entry *bias, struct error *e) {
  *m = (struct layout_matrix){.found = true, .has_bias = bias != NULL, .weight = *weight};
  if (judge(weight, 2, e) != STATUS_OK || !bias) return e->status;
  m->bias = *bias;
  if (judge(bias, 1, e) == STATUS_OK && bias->dim[0] != weight->dim[0])
    error_set(e, STATUS_CONFIG, "tensor \"%.100s\" has %ju numbers for the %ju rows of \"%.100s\"",
              bias->name, (uintmax_t)bias->dim[0], (uintmax_t)weight->dim[0], weight->name);
  return e->status;
}

static enum status take_stem(const struct search *s, const char *stem, struct layout_matrix *m,
                             struct error *e) {
  const struct checkpoint_entry *weight = find(s, stem, ".weight");
  if (!weight) return missing(s, stem, ".weight", e);
  return take(m, weight, find(s, stem, ".bias"), e);
}

/* A bias beside a parameter of a score would be left out of the sum: better no answer than that. */
static enum status refuse_bias(const struct search *s, const struct checkpoint_entry *weight,
                               struct error *e) {
  static const char end[] = ".weight";
  const size_t length = strlen(weight->name), tail = sizeof end - 1;
  const bool ends = length > tail && strcmp(weight->name + length - tail, end) == 0;
  const size_t stems[] = {length, ends ? length - tail : length};
  for (size_t i = 0; i < 2; i++) {
    char name[3 * NAME_SIZE];
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
  *m = (struct layout_matrix){.found = true, .weight = *weight};
  if (refuse_bias(s, weight, e) != STATUS_OK) return e->status;
  return judge(weight, role == ROLE_SCORE_VECTOR && weight->rank == 1 ? 1 : 2, e);
}

/* The shape of a third of a tensor: queries come first, then keys, then values. */
static struct checkpoint_entry third(const struct checkpoint_entry *t) {
  struct checkpoint_entry part = *t;
  part.dim[0] /= 3;
  part.count /= 3;
  return part;
}

static enum status check_thirds(const struct checkpoint_entry *t, size_t rank, struct error *e) {
  if (judge(t, rank, e) == STATUS_OK && t->dim[0] % 3 != 0)
    error_set(e, STATUS_CONFIG, "tensor \"%.100s\": %ju rows are not three times as many of one",
              t->name, (uintmax_t)t->dim[0]);
  return e->status;
}

static enum status take_torch(const struct search *s, struct layout_matrix matrix[ROLE_COUNT],
                              struct error *e) {
  static const char *const apart[] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};
  const struct checkpoint_entry *joint = find(s, "in_proj_weight", "");
  const struct checkpoint_entry *bias = find(s, "in_proj_bias", "");
  if (find(s, "bias_k", "") || find(s, "bias_v", ""))
    return error_set(e, STATUS_CONFIG,
                     "tensor \"%.100sbias_k\" or bias_v: a learned key and value are not served",
                     s->prefix);
  if (joint && check_thirds(joint, 2, e) != STATUS_OK) return e->status;
  if (bias && check_thirds(bias, 1, e) != STATUS_OK) return e->status;
  for (enum role role = ROLE_QUERY; role <= ROLE_VALUE; role++) {
    const struct checkpoint_entry *whole = joint ? joint : find(s, apart[role], "");
    if (!whole) return missing(s, apart[role], "", e);
    struct checkpoint_entry weight = joint ? third(whole) : *whole, part;
    if (bias) part = third(bias);
    if (take(&matrix[role], &weight, bias ? &part : NULL, e) != STATUS_OK) return e->status;
    matrix[role].weight_from = joint ? role * weight.count : 0;
    matrix[role].bias_from = bias ? role * part.count : 0;
  }
  return STATUS_OK;
}

/* --- families --- */

/* Looks for a tensor by the end of its name; what stands before must end with a dot. Fills the
 * prefix; more than one place is an error. */
static bool find_behind(struct search *s, const char *end, struct error *e) {
  const struct checkpoint_entry *seen = NULL;
  size_t tail = strlen(end);
  for (size_t i = 0; i < checkpoint_count(s->file); i++) {
    const struct checkpoint_entry *t = checkpoint_at(s->file, i);
    size_t length = strlen(t->name);
    if (length < tail || strcmp(t->name + length - tail, end) != 0) continue;
    size_t before = length - tail;
    if (before >= NAME_SIZE || (before > 0 && t->name[before - 1] != '.')) continue;
    if (seen) {
      error_set(e, STATUS_CONFIG, "prefix: must say which, \"%s\" or \"%.*s\"", s->prefix,
                (int)before, t->name);
      return false;
    }
    seen = t;
    memcpy(s->prefix, t->name, before);
    s->prefix[before] = '\0';
  }
  return seen != NULL;
}

/* Is the family there? Leaves the full prefix of its names, `inside` included, in the search. */
static bool find_mark(struct search *s, const struct definition *d, const char *mark,
                      const char *inside, struct error *e) {
  char end[NAME_SIZE];
  const char *prefix = d->prefix ? d->prefix : "";
  snprintf(end, sizeof end, "%s%s", inside, mark);
  if (snprintf(s->prefix, NAME_SIZE, "%s%s", prefix, inside) >= NAME_SIZE) return false;
  if (find(s, mark, "")) return true;
  if (d->prefix || !s->family->any_prefix || !find_behind(s, end, e)) return false;
  size_t length = strlen(s->prefix);
  snprintf(s->prefix + length, NAME_SIZE - length, "%s", inside);
  return true;
}

enum { MARK_SIZE = 64 };

/* What tells a family: where it projects queries; else its output projection; else what its score
 * needs. */
static void marks_of(const struct family *family, const struct definition *d,
                     char marks[2][MARK_SIZE]) {
  const enum role role = d->output_projected            ? ROLE_OUTPUT
                         : d->compare == SCORE_ADDITIVE ? ROLE_SCORE_VECTOR
                                                        : ROLE_SCORE_WEIGHT;
  const char *stem = family->stem[role];
  if (d->projected) {
    for (size_t i = 0; i < 2 && family->mark[i]; i++)
      snprintf(marks[i], MARK_SIZE, "%s", family->mark[i]);
  } else if (family->unprojected && stem) {
    snprintf(marks[0], MARK_SIZE, "%s.weight", stem);
    if (role != ROLE_OUTPUT) snprintf(marks[1], MARK_SIZE, "%s", stem);
  }
}

static bool find_family(struct search *s, const struct family *family, const struct definition *d,
                        struct error *e) {
  char inside[64] = "", marks[2][MARK_SIZE] = {"", ""};
  bool torch = strcmp(family->name, "torch") == 0;
  s->family = family;
  if (d->has_layer && torch) snprintf(inside, sizeof inside, "layers.%zu.self_attn.", d->layer);
  marks_of(family, d, marks);
  for (size_t i = 0; i < 2 && e->status == STATUS_OK; i++)
    if (*marks[i] && find_mark(s, d, marks[i], inside, e)) return true;
  return false;
}

/* Nothing fits: says what the file holds, and what to do about it. */
static enum status fits_none(const struct search *s, const struct definition *d, struct error *e) {
  char names[240] = "", inside[64] = "";
  size_t used = 0;
  for (size_t i = 0; i < checkpoint_count(s->file) && i < 3 && used < sizeof names; i++)
    used += (size_t)snprintf(names + used, sizeof names - used, "%s%.72s", i ? ", " : "",
                             checkpoint_at(s->file, i)->name);
  const char *layouts = strcmp(d->layout, "auto") != 0 ? d->layout
                        : d->has_layer                 ? "torch"
                                                       : "plain, torch, d2l";
  if (d->has_layer) snprintf(inside, sizeof inside, " in layers.%zu.self_attn.", d->layer);
  return error_set(e, STATUS_CONFIG,
                   "layout: the names of its tensors (%s%s) fit none of %s%s%s; \"tensors\" can "
                   "name them outright",
                   names, checkpoint_count(s->file) > 3 ? ", ..." : "", layouts, inside,
                   d->prefix ? " behind this prefix, which ends with its dot" : "");
}

static enum status choose_family(struct search *s, const struct definition *d, struct error *e) {
  bool any = strcmp(d->layout, "auto") == 0;
  struct search found = {.file = s->file};
  for (size_t i = 0; i < FAMILY_COUNT; i++) {
    struct search try = {.file = s->file};
    const bool layered = strcmp(families[i].name, "torch") == 0;
    if (any ? d->has_layer && !layered : strcmp(d->layout, families[i].name) != 0) continue;
    if (d->has_layer && !layered)
      return error_set(e, STATUS_CONFIG, "layer: the layout %s has none", families[i].name);
    if (!find_family(&try, &families[i], d, e)) continue;
    if (found.family)
      error_set(e, STATUS_CONFIG, "layout: must say which, %s or %s; the names fit both",
                found.family->name, families[i].name);
    found = try;
  }
  if (e->status != STATUS_OK) return e->status;
  if (!found.family) return fits_none(s, d, e);
  *s = found;
  return STATUS_OK;
}

/* --- one role --- */

static enum status take_named(const struct search *s, const struct definition *d, enum role role,
                              struct layout_matrix *m, struct error *e) {
  const char *name = json_string_value(json_object_get(d->tensors, definition_role(role)));
  if (!name)
    return error_set(e, STATUS_CONFIG, "tensors: the role \"%s\" is missing%s",
                     definition_role(role),
                     role == ROLE_OUTPUT ? "; without one output_projection must be false" : "");
  if (role >= ROLE_PROJECTIONS) return take_score(s, name, role, m, e);
  const struct checkpoint_entry *whole = find(s, name, "");
  return whole ? take(m, whole, NULL, e) : take_stem(s, name, m, e);
}

/* The textbook's additive attention gives the score's parameters the names of projections. */
static bool is_pooling(const struct search *s, const struct definition *d) {
  return d->compare == SCORE_ADDITIVE && !find(s, "W_v", ".weight") && find(s, "w_v", ".weight");
}

static enum status take_role(const struct search *s, const struct definition *d, enum role role,
                             struct layout_matrix *m, struct error *e) {
  const char *own = s->family->stem[role];
  if (role == ROLE_VALUE && is_pooling(s, d))
    return error_set(e, STATUS_CONFIG,
                     "has no tensor \"%.100sW_v.weight\", but \"w_v.weight\": with projection none "
                     "W_q, W_k and w_v are the score's",
                     s->prefix);
  if (role < ROLE_PROJECTIONS) return take_stem(s, own, m, e);
  return take_score(s, own ? own : definition_role(role), role, m, e);
}

static bool has_any(const struct definition *d) {
  for (enum role role = 0; role < ROLE_COUNT; role++)
    if (definition_has(d, role)) return true;
  return false;
}

const char *layout_find(const struct checkpoint *file, const struct definition *d,
                        struct layout_matrix matrix[ROLE_COUNT], struct error *e) {
  struct search s = {.file = file};
  bool torch = false;
  memset(matrix, 0, ROLE_COUNT * sizeof *matrix);
  if (!has_any(d)) return "none";
  if (d->prefix && strlen(d->prefix) >= NAME_SIZE)
    error_set(e, STATUS_CONFIG, "prefix: longer than %d bytes", NAME_SIZE - 1);
  if (d->tensors) {
    snprintf(s.prefix, NAME_SIZE, "%s", d->prefix ? d->prefix : "");
  } else if (choose_family(&s, d, e) == STATUS_OK) {
    torch = strcmp(s.family->name, "torch") == 0;
    if (torch && d->projected) take_torch(&s, matrix, e);
  }
  for (enum role role = 0; role < ROLE_COUNT && e->status == STATUS_OK; role++) {
    if (!definition_has(d, role) || (torch && role < ROLE_OUTPUT)) continue;
    if (d->tensors) {
      take_named(&s, d, role, &matrix[role], e);
    } else {
      take_role(&s, d, role, &matrix[role], e);
    }
  }
  if (e->status != STATUS_OK) return NULL;
  return d->tensors ? "tensors" : s.family->name;
}
