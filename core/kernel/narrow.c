/* narrow: float32 numbers stored in 16 bits if that is exact. */
#include "core/kernel/narrow.h"

#include <stdatomic.h>

#include "core/base/size.h"
#include "core/base/team.h"

enum { PIECE = 1 << 16 };

struct narrow_look {
  const float *x;
  size_t count;
  atomic_bool lacks[KERNEL_FORMS]; /* whether a number was found that the form lacks */
};

static bool has_all(enum kernel_form form, const float *x, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!narrow_has(form, x[i])) return false;
  return true;
}

/* Checks one piece. Forms that already lack a number are skipped. */
static enum status look_at(void *of, size_t index, struct error *e) {
  struct narrow_look *l = of;
  const size_t first = index * PIECE, count = size_min(PIECE, l->count - first);
  for (enum kernel_form form = KERNEL_BFLOAT16; form < KERNEL_FORMS; form++)
    if (!atomic_load(&l->lacks[form]) && !has_all(form, l->x + first, count))
      atomic_store(&l->lacks[form], true);
  return e->status;
}

enum kernel_form narrow_form(const float *x, size_t count) {
  struct narrow_look l = {.x = x, .count = count};
  struct error e = {0};
  team_split((count + PIECE - 1) / PIECE, look_at, &l, &e);
  return !atomic_load(&l.lacks[KERNEL_BFLOAT16])  ? KERNEL_BFLOAT16
         : !atomic_load(&l.lacks[KERNEL_FLOAT16]) ? KERNEL_FLOAT16
                                                  : KERNEL_FLOAT32;
}

const char *narrow_name(enum kernel_form form) {
  static const char *const names[KERNEL_FORMS] = {"float32", "bfloat16", "float16"};
  return names[form];
}
