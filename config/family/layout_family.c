/* layout_family: what follows from the table of kinds of layers, which is in whole_family.c. */
#include "config/family/layout_family.h"

#include <stdio.h>
#include <string.h>

#include "config/family/whole_type.h"

const char *const layout_family_separate[3] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};

void layout_family_list(const char *out[LAYOUT_FAMILIES_MOST + 1]) {
  size_t count = 0;
  for (size_t i = 0; i < layout_family_count(); i++)
    if (count == 0 || strcmp(out[count - 1], layout_family_at(i)->layout) != 0)
      out[count++] = layout_family_at(i)->layout;
  out[count] = NULL;
}

const char *layout_family_layer(const struct layout_family *f) {
  return f->layer ? f->layer : f->names->layer;
}

const char *layout_family_within(const struct layout_family *f) {
  return whole_family_within(f->names, f->cross ? WHOLE_CROSS_QUERY : WHOLE_QUERY);
}

const char *layout_family_stem(const struct layout_family *f, enum role role) {
  const unsigned first = f->cross ? WHOLE_CROSS_QUERY : WHOLE_QUERY;
  return role < ROLE_PROJECTIONS ? f->names->stem[first + (unsigned)role] : f->parameter[role];
}

const char *layout_family_joint(const struct layout_family *f) {
  return f->cross ? f->names->cross_joint : f->names->joint;
}

struct definition_customs layout_family_customs(const struct layout_family *f) {
  const struct whole_family *n = f->names;
  return (struct definition_customs){.causal = f->causal || (n->decodes && !f->cross),
                                     .unscaled = n->unscaled,
                                     .rope = n->rotary,
                                     .relative = n->relative && !f->cross,
                                     .relative_both = n->relative && !f->cross && !n->decodes};
}

/* Do the attentions of both families have the same names? */
static bool share_names(const struct whole_family *a, const struct whole_family *b) {
  if (strcmp(a->layer, b->layer) != 0) return false;
  if (strcmp(whole_family_within(a, WHOLE_QUERY), whole_family_within(b, WHOLE_QUERY)) != 0)
    return false;
  for (enum whole_role role = WHOLE_QUERY; role <= WHOLE_OUTPUT; role++) {
    const char *one = a->stem[role] ? a->stem[role] : "",
               *other = b->stem[role] ? b->stem[role] : "";
    if (strcmp(one, other) != 0) return false;
  }
  return true;
}

bool layout_family_fits(const struct layout_family *f, const char *type) {
  const struct whole_type *whole = whole_type_find(type);
  if (!f->names->keys || whole_type_has_layers(type, f->layout)) return true;
  if (!whole || !whole->family || whole->head_norms) return false;
  for (size_t i = 0; i < whole_family_count(); i++) {
    const struct whole_family *one = whole_family_at(i);
    if (strcmp(one->name, whole->family) != 0) continue;
    for (size_t j = 0; j < layout_family_count(); j++)
      if (strcmp(layout_family_at(j)->layout, f->layout) == 0 &&
          share_names(one, layout_family_at(j)->names))
        return true;
  }
  return false;
}

bool layout_family_path(const char *path, size_t layer, char *out, size_t size) {
  const char *number = strstr(path, "{i}");
  const int length =
      !number ? snprintf(out, size, "%s", path)
              : snprintf(out, size, "%.*s%zu%s", (int)(number - path), path, layer, number + 3);
  return length >= 0 && (size_t)length < size;
}
