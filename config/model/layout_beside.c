/* layout_beside: looks at what lies beside the layer. */
#include "config/model/layout_beside.h"

#include <stdio.h>
#include <string.h>

enum { NAME_SIZE = 2 * PLACE_NAME };

static const struct checkpoint_entry *find(const struct checkpoint *file, const struct place *p,
                                           size_t length, const char *stem) {
  char name[NAME_SIZE];
  snprintf(name, sizeof name, "%.*s%s", (int)length, p->address, stem);
  return checkpoint_find(file, name);
}

bool layout_sees_all(const struct place *p, const struct checkpoint *file) {
  return p->family->sees_all && find(file, p, p->before, p->family->sees_all);
}

static enum status refuse(const struct checkpoint_entry *t, const char *why, struct error *e) {
  if (t) error_set(e, STATUS_CONFIG, "tensor \"%.100s\": %s", t->name, why);
  return e->status;
}

static enum status refuse_obstacles(const struct layout *l, const struct checkpoint *file,
                                    struct error *e) {
  const struct place *p = &l->place;
  const struct family *f = p->family;
  for (size_t i = 0; i < OBSTACLES_MOST && f->obstacle[i].stem; i++)
    refuse(find(file, p, strlen(p->address), f->obstacle[i].stem), f->obstacle[i].why, e);
  for (size_t i = 0; i < OBSTACLES_MOST && f->beyond[i].stem; i++)
    refuse(find(file, p, p->before, f->beyond[i].stem), f->beyond[i].why, e);
  return e->status;
}

/* --- what nobody knows --- */

static bool is_used(const struct layout *l, const struct checkpoint_entry *t) {
  for (enum role role = 0; role < ROLE_COUNT; role++) {
    const struct layout_matrix *m = &l->matrix[role];
    if (m->found && (m->weight.tensor == t || (m->has_bias && m->bias.tensor == t))) return true;
  }
  return t == l->frequencies;
}

static bool begins(const char *name, const char *with) {
  return strncmp(name, with, strlen(with)) == 0;
}

/* A harmless name that ends with a dot stands for all behind it. */
static bool is_harmless(const struct family *f, const char *rest) {
  for (size_t i = 0; i < HARMLESS_MOST && f->harmless[i]; i++) {
    const char *known = f->harmless[i];
    if (known[strlen(known) - 1] == '.' ? begins(rest, known) : strcmp(rest, known) == 0)
      return true;
  }
  return false;
}

/* An output projection that the definition does not want. */
static bool is_unwanted(const struct family *f, const struct definition *d, const char *rest) {
  const char *stem = f->stem[ROLE_OUTPUT];
  return !d->output_projected && stem && begins(rest, stem) && rest[strlen(stem)] == '.';
}

static enum status refuse_unknown(const struct layout *l, const struct checkpoint *file,
                                  const struct definition *d, struct error *e) {
  const size_t length = strlen(l->place.address);
  for (size_t i = 0; i < checkpoint_count(file) && e->status == STATUS_OK; i++) {
    const struct checkpoint_entry *t = checkpoint_at(file, i);
    if (strncmp(t->name, l->place.address, length) != 0) continue;
    const char *rest = t->name + length;
    if (!is_used(l, t) && !is_harmless(l->place.family, rest) &&
        !is_unwanted(l->place.family, d, rest))
      refuse(t,
             "lies beside the layer's and is none that is served; it may change what the layer "
             "computes, and \"tensors\" can name the others without it",
             e);
  }
  return e->status;
}

enum status layout_look_beside(struct layout *l, const struct checkpoint *file,
                               const struct definition *d, struct error *e) {
  const struct place *p = &l->place;
  if (refuse_obstacles(l, file, e)) return e->status;
  if (p->family->frequencies) {
    l->frequencies = find(file, p, strlen(p->address), p->family->frequencies);
    if (!l->frequencies) l->frequencies = find(file, p, place_stack(p), "rotary_emb.inv_freq");
  }
  return p->numbered ? refuse_unknown(l, file, d, e) : STATUS_OK;
}
