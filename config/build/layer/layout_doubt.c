/* layout_doubt: looks at the tensors near a layer's, and at what their names mean. */
#include "config/build/layer/layout_doubt.h"
#include "config/describe/definition.h"
#include "config/describe/definition_value.h"

#include <stdio.h>
#include <string.h>

enum { NAME_SIZE = 2 * LAYOUT_ADDRESS_SIZE };

/* --- unsupported tensors --- */

static const struct checkpoint_entry *find_beside(const struct checkpoint *file,
                                                  const struct layout_place *p, size_t length,
                                                  const char *stem) {
  char name[NAME_SIZE];
  snprintf(name, sizeof name, "%.*s%s", (int)length, p->address, stem);
  return checkpoint_find(file, name);
}

bool layout_sees_all(const struct layout_place *p, const struct checkpoint *file) {
  return p->family->sees_all && find_beside(file, p, p->before, p->family->sees_all);
}

static enum status refuse_tensor(const struct checkpoint_entry *t, const char *why,
                                 struct error *e) {
  return t ? error_set(e, STATUS_CONFIG, "tensor \"%.100s\": %s", t->name, why) : STATUS_OK;
}

/* May the tensor be ignored? `rest` is its name after the layer's address. */
static bool is_expected(const struct layout *l, const struct definition *d,
                        const struct checkpoint_entry *t, const char *rest) {
  const struct layout_family *f = l->place.family;
  if (t == l->frequencies) return true;
  for (enum role role = 0; role < ROLE_COUNT; role++) {
    const struct layout_matrix *m = &l->matrix[role];
    if (m->found && (m->weight.tensor == t || (m->has_bias && m->bias.tensor == t))) return true;
  }
  /* A harmless name that ends with a dot means every name that begins with it. */
  for (size_t i = 0; i < LAYOUT_HARMLESS_MOST && f->harmless[i]; i++) {
    const size_t length = strlen(f->harmless[i]);
    if (strncmp(rest, f->harmless[i], length) == 0 &&
        (f->harmless[i][length - 1] == '.' || rest[length] == '\0'))
      return true;
  }
  /* The definition may leave out the output projection. */
  const char *stem = layout_family_stem(f, ROLE_OUTPUT);
  return !d->output_projected && stem && strncmp(rest, stem, strlen(stem)) == 0 &&
         rest[strlen(stem)] == '.';
}

enum status layout_refuse_unserved(const struct layout *l, const struct checkpoint *file,
                                   const struct definition *d, struct error *e) {
  const struct layout_place *p = &l->place;
  const struct layout_family *f = p->family;
  for (size_t i = 0; i < LAYOUT_OBSTACLES_MOST && f->obstacle[i].stem; i++)
    if (refuse_tensor(find_beside(file, p, strlen(p->address), f->obstacle[i].stem),
                      f->obstacle[i].why, e))
      return e->status;
  for (size_t i = 0; i < LAYOUT_OBSTACLES_MOST && f->beyond[i].stem; i++)
    if (refuse_tensor(find_beside(file, p, p->before, f->beyond[i].stem), f->beyond[i].why, e))
      return e->status;
  if (!p->numbered) return STATUS_OK;
  const struct checkpoint_entry *unknown = NULL; /* the first one in the file */
  size_t count;
  const struct checkpoint_entry *const *all = checkpoint_behind(file, p->address, &count);
  for (size_t i = 0; i < count; i++)
    if (!is_expected(l, d, all[i], all[i]->name + strlen(p->address)) &&
        (!unknown || all[i] < unknown)) /* all are entries of one array */
      unknown = all[i];
  return refuse_tensor(unknown,
                       "belongs to the layer and is not supported, but may change what it "
                       "computes; name the other tensors with \"tensors\" to leave it out",
                       e);
}

/* --- notes --- */

/* Notes the defaults of a family for a tensor of `tensors` that has a name of that family. */
static void doubt_habits(const struct layout_family *f, const char *name,
                         const struct definition *said, struct notes *n) {
  const struct definition_customs c = layout_family_customs(f);
  const struct {
    bool doubtful;
    const char *habit;
  } habits[] = {
      {f->names->across, "whose matrices are [in, out], but are read as [out, in] here"},
      {c.unscaled && said->scaled && !(said->scale > 0),
       "whose scores are not scaled (set scale to confirm)"},
      {c.causal && said->causal == TOGGLE_UNSAID, "which is causal (set causal to confirm)"},
      {c.rope && said->rope == TOGGLE_UNSAID,
       "which rotates queries and keys (set rope to confirm)"},
      {c.relative && said->relative == TOGGLE_UNSAID,
       "which adds relative positions (set relative_bias to confirm)"},
  };
  for (size_t i = 0; i < sizeof habits / sizeof *habits; i++)
    if (habits[i].doubtful)
      notes_add(n, "tensor \"%.100s\" has a name of layout %s, %s", name, f->layout,
                habits[i].habit);
}

void layout_doubt(const struct layout *l, const struct checkpoint *file,
                  const struct definition *said, struct notes *n) {
  static const char own[] = "attention.";
  struct layout_place p;
  if (l->place.family) {
    /* BERT's attention.self.query becomes crossattention.self.query. */
    const size_t length = strlen(l->place.address), tail = sizeof own - 1;
    if (said->causal != TOGGLE_UNSAID || !l->place.family->may_decode || length < tail) return;
    char cross[NAME_SIZE];
    snprintf(cross, sizeof cross, "%.*scross%s%s.weight", (int)(length - tail), l->place.address,
             own, layout_family_stem(l->place.family, ROLE_QUERY));
    if (checkpoint_find(file, cross))
      notes_add(n,
                "there is cross attention beside \"%.100s\", as in decoders, but this is not "
                "causal (set causal to confirm)",
                l->place.address);
    return;
  }
  for (enum role role = 0; role < ROLE_PROJECTIONS; role++) {
    const struct layout_matrix *m = &l->matrix[role];
    if (!m->found || !layout_place_of_tensor(&p, m->weight.tensor->name)) continue;
    doubt_habits(p.family, m->weight.tensor->name, said, n);
    return;
  }
}
