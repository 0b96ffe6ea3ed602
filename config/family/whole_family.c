/* whole_family: the families of all tables, and what follows from a family. */
#include "config/family/whole_family.h"

#include <string.h>

#include "config/family/layout_family.h"
#include "config/family/whole_family_rows.h"

/* The lists of stems, and those who count from the first role of an attention, know this order. */
#define SAME_ORDER(first)                                 \
  ((int)first##KEY == (int)first##QUERY + ROLE_KEY &&     \
   (int)first##VALUE == (int)first##QUERY + ROLE_VALUE && \
   (int)first##OUTPUT == (int)first##QUERY + ROLE_OUTPUT)
_Static_assert(ROLE_QUERY == 0 && SAME_ORDER(WHOLE_) && SAME_ORDER(WHOLE_CROSS_),
               "the roles of an attention are in the order of enum role");
_Static_assert(WHOLE_ROLES <= 64 && WHOLE_CROSS_OUTPUT < 32, "a bit of `unbiased` for each role");
_Static_assert(WHOLE_DENSE_SKIP == WHOLE_DENSE + 1 &&
                   WHOLE_DENSE_END == WHOLE_DENSE + 2 * STACK_DENSE_MOST - 1,
               "two roles for each dense layer");

const struct whole_packed *whole_family_packed(const struct whole_family *f, enum whole_role role) {
  for (const struct whole_packed *p = f->packed; p < f->packed + WHOLE_PACKED_MOST; p++)
    for (size_t i = 0; i < p->parts; i++)
      if (p->role[i] == role) return p;
  return NULL;
}

const char *whole_family_within(const struct whole_family *f, enum whole_role role) {
  const bool cross = role >= WHOLE_CROSS_QUERY && role <= WHOLE_CROSS_OUTPUT;
  const bool self =
      role <= WHOLE_OUTPUT || (role >= WHOLE_NORM_QUERY && role <= WHOLE_POSITION_QUERY);
  const char *path = cross ? f->cross : self ? f->self : NULL;
  return path ? path : "";
}

/* The order in which a file and its config.json are compared with them. */
static const struct whole_family *const *const tables[] = {
    whole_families_plain, whole_families_encoders, whole_families_pairs, whole_families_decoders};

/* The family of this number, or NULL; `count`, unless NULL, is then the number of families. */
static const struct whole_family *at(size_t index, size_t *count) {
  size_t seen = 0;
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
    for (size_t j = 0; tables[i][j]; j++, seen++)
      if (seen == index) return tables[i][j];
  if (count) *count = seen;
  return NULL;
}

size_t whole_family_count(void) {
  size_t count = 0;
  at(SIZE_MAX, &count);
  return count;
}

const struct whole_family *whole_family_at(size_t index) { return at(index, NULL); }

const struct whole_family *whole_family_find(const char *name) {
  const struct whole_family *f;
  for (size_t i = 0; (f = at(i, NULL)); i++)
    if (strcmp(f->name, name) == 0) return f;
  return NULL;
}
