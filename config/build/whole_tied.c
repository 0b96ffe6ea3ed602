/* whole_tied: compares copies of the table of tokens. */
#include "config/build/whole_tied.h"

#include <stdio.h>
#include <string.h>

#include "config/build/whole_find.h"
#include "core/base/size.h"
#include "core/base/team.h"

enum { PIECE = 4 * 1024 }; /* numbers that are compared at a time */

struct whole_copies {
  struct checkpoint *file;
  const struct checkpoint_entry *one, *other;
};

static enum status refuse(const struct whole_copies *c, struct error *e) {
  return error_set(e, STATUS_CONFIG,
                   "tensor \"%.120s\" differs from \"%.120s\", of which it should be a copy",
                   c->other->name, c->one->name);
}

static enum status compare_piece(void *of, size_t index, struct error *e) {
  const struct whole_copies *c = of;
  float one[PIECE], other[PIECE];
  const uint64_t at = (uint64_t)index * PIECE;
  const size_t n = c->one->count - at < PIECE ? (size_t)(c->one->count - at) : PIECE;
  if (checkpoint_read_floats(c->file, c->one, at, n, one, e) ||
      checkpoint_read_floats(c->file, c->other, at, n, other, e))
    return e->status;
  for (size_t i = 0; i < n; i++)
    if (one[i] != other[i]) return refuse(c, e);
  return STATUS_OK;
}

/* The copy may be missing. */
static enum status compare(const struct whole_plan *p, const struct checkpoint_entry *copy,
                           struct error *e) {
  const struct whole_stack *s =
      &p->stack[p->stack[WHOLE_DECODER].family ? WHOLE_DECODER : WHOLE_ENCODER];
  struct whole_copies c = {p->source.file, s->part[WHOLE_TOKEN].weight.tensor, copy};
  if (!c.other || c.other == c.one) return STATUS_OK;
  if (checkpoint_check_tensor(c.other, e)) return e->status;
  if (c.other->rank != 2 || c.other->dim[0] != c.one->dim[0] || c.other->dim[1] != c.one->dim[1] ||
      c.other->by_columns != c.one->by_columns)
    return refuse(&c, e);
  const size_t pieces = (size_t)((c.one->count + PIECE - 1) / PIECE);
  return (checkpoint_reads_anywhere(c.file) ? team_split : team_row)(pieces, compare_piece, &c, e);
}

enum status whole_tied_check(const struct whole_plan *p, struct error *e) {
  const struct whole_stack *decoder = &p->stack[WHOLE_DECODER];
  char name[LAYOUT_ADDRESS_SIZE + 64];
  if (!p->source.file) return STATUS_OK;
  for (size_t i = 0; i < WHOLE_TABLES_MOST && p->family->table[i]; i++) {
    if (!p->family->tied || p->words.apart) break;
    snprintf(name, sizeof name, "%s%s.weight", p->prefix, p->family->table[i]);
    if (compare(p, checkpoint_find(p->source.file, name), e)) return e->status;
  }
  if (!decoder->form.output.tied) return STATUS_OK;
  snprintf(name, sizeof name, "%s.weight", decoder->family->head);
  return compare(p, whole_find_near(p, name), e);
}
