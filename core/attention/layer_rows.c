/* layer_rows: rows through a matrix, collected in strips. */
#include "core/attention/layer_rows.h"

#include <string.h>

#include "core/base/size.h"
#include "core/kernel/gemm.h"

/* --- the layout of the scratch --- */

static struct gemm *second_matrix(const struct layer *l, unsigned role) {
  return role <= ROLE_KEY ? l->compare[role] : NULL;
}

static size_t whole_lines(size_t floats) { return size_round_up(floats, 16); }

/* Where the numbers of a strip lie in its scratch, and how many there are. */
struct strip_layout {
  size_t gathered, product, heads, compared, all;
};

/* The angles come first: they serve more than one role. */
static struct strip_layout layout_of(const struct layer *l, unsigned role) {
  const struct gemm *first = l->matrix[role], *second = second_matrix(l, role);
  const size_t rows = l->tile_rows[role], out = role_heads(l, role) * role_head_size(l, role);
  struct strip_layout at;
  at.gathered = l->rotary ? ANGLES * whole_lines(l->shape.head_size) : 0;
  at.product = at.gathered + rows * whole_lines(role_in(l, role));
  at.heads = at.product + (first ? rows * whole_lines(gemm_stripe(first)) : 0);
  at.compared = at.heads + (second ? whole_lines(rows * out) : 0);
  at.all = at.compared + (second ? rows * gemm_stripe(second) : 0);
  return at;
}

size_t strip_floats(const struct layer *l, unsigned role) { return layout_of(l, role).all; }

void strip_begin(struct strip *s, const struct layer_step *step, float *scratch) {
  const struct layer *l = step->at.layer;
  s->step = step;
  s->l = l;
  s->scratch = scratch;
  s->rows = s->parts = 0;
  for (size_t i = 0; l->rotary && i < ANGLES; i++) s->angle_of[i] = ANGLE_NONE;
}

static void place_scratch(struct strip *s) {
  const struct strip_layout at = layout_of(s->l, s->role);
  s->angle = s->scratch;
  s->gathered = s->scratch + at.gathered;
  s->product = s->scratch + at.product;
  s->heads = s->scratch + at.heads;
  s->compared = s->scratch + at.compared;
}

/* The rows as one matrix: where they lie if they follow each other, else a copy. */
static const float *gather_input(struct strip *s, size_t in) {
  bool together = true;
  for (size_t i = 1; i < s->stretches && together; i++)
    together = s->stretch[i].from == s->stretch[i - 1].from + s->stretch[i - 1].rows * in;
  if (together) return s->stretch[0].from;
  float *to = s->gathered;
  for (size_t i = 0; i < s->stretches; i++) {
    memcpy(to, s->stretch[i].from, s->stretch[i].rows * in * sizeof(float));
    to += s->stretch[i].rows * in;
  }
  return s->gathered;
}

/* --- dealing out --- */

/* Columns on their way to one head of some rows. */
struct strip_columns {
  size_t columns;
  const float *from;
  size_t from_row;
  float *to;
  size_t to_row;
};

/* Keeps the greatest magnitude of some columns of a stretch. Only where it is not finite, the first
 * row that holds such a number is looked for. */
static void note_top(const struct strip *s, struct strip_stretch *r, uint32_t top, size_t columns,
                     const float *at, size_t row) {
  r->top = top > r->top ? top : r->top;
  if (top < KERNEL_NOT_FINITE) return;
  for (size_t i = 0; i < r->bad; i++)
    if (s->l->kernel->peak(columns, at + i * row) >= KERNEL_NOT_FINITE) r->bad = i;
}

static void carry_columns(const struct strip *s, struct strip_stretch *r,
                          const struct strip_columns *p) {
  const uint32_t top =
      s->l->kernel->carry(r->rows, p->columns, p->from, p->from_row, p->to, p->to_row);
  note_top(s, r, top, p->columns, p->from, p->from_row);
}

/* Columns first .. first + count - 1 of a stretch to the heads they belong to: to their places in
 * the call, or, with the needed heads side by side, to where the second matrix reads them. */
static void deal_columns(const struct strip *s, struct strip_stretch *r, size_t row,
                         const float *from, size_t from_row, size_t first, size_t count) {
  const size_t size = role_head_size(s->l, s->role);
  const bool packed = second_matrix(s->l, s->role) != NULL;
  const size_t packed_row = s->needed->count * size;
  struct strip_columns p = {.from = from, .from_row = from_row};
  p.to_row = packed ? packed_row : r->row_step;
  for (; count > 0; p.from += p.columns, first += p.columns, count -= p.columns) {
    const size_t head = first / size, column = first % size;
    p.columns = size_min(size - column, count);
    if (s->role != ROLE_OUTPUT && !needed_has(s->needed, head)) continue;
    const size_t place = packed ? needed_slot(s->needed, head) : head;
    p.to = packed ? s->heads + row * packed_row + place * size : r->to + place * r->head_step;
    p.to += column;
    carry_columns(s, r, &p);
  }
}

static void deal_product(struct strip *s, size_t stripe, size_t first, size_t count) {
  for (size_t i = 0, row = 0; i < s->stretches; row += s->stretch[i++].rows)
    deal_columns(s, &s->stretch[i], row, s->product + row * stripe, stripe, first, count);
}

/* The rows as they are. */
static void deal_input(struct strip *s, size_t out) {
  for (size_t i = 0, row = 0; i < s->stretches; row += s->stretch[i++].rows)
    deal_columns(s, &s->stretch[i], row, s->stretch[i].from, role_in(s->l, s->role), 0, out);
}

/* --- the first matrix --- */

/* Does any of the columns belong to a head that is needed? */
static bool columns_are_needed(const struct strip *s, size_t first, size_t count) {
  const size_t size = role_head_size(s->l, s->role);
  if (s->role == ROLE_OUTPUT) return true;
  for (size_t head = first / size; head * size < first + count; head++)
    if (needed_has(s->needed, head)) return true;
  return false;
}

/* The output sums the contexts of needed heads only, as many at a time as lie side by side. */
static void add_contexts(const struct strip *s, const struct gemm *g, size_t first,
                         const float *x) {
  const size_t heads = s->l->shape.heads, size = s->l->shape.value_head_size;
  gemm_start(g, first, s->count, true, s->product);
  for (size_t from = 0, to; from < heads; from = to) {
    to = from + 1;
    if (!needed_has(s->needed, from)) continue;
    while (to < heads && needed_has(s->needed, to)) to++;
    gemm_add(g, first, s->count, x, heads * size, from * size, (to - from) * size, s->product);
  }
}

static void multiply_rows(struct strip *s) {
  const struct gemm *g = s->l->matrix[s->role];
  const size_t in = role_in(s->l, s->role), stripe = gemm_stripe(g);
  const size_t out = role_heads(s->l, s->role) * role_head_size(s->l, s->role);
  const size_t end = s->columns ? size_min(s->column + s->columns, out) : out;
  const float *x = gather_input(s, in);
  for (size_t first = s->column, columns; first < end; first += columns) {
    columns = gemm_columns(g, first);
    if (!columns_are_needed(s, first, columns)) continue;
    if (s->role == ROLE_OUTPUT && s->needed->slot)
      add_contexts(s, g, first, x);
    else
      gemm_run(g, first, s->count, x, in, s->product);
    deal_product(s, stripe, first, columns);
  }
}

/* --- the second matrix --- */

/* One head of all rows at a time: how many rows a product has does not depend on the heads. */
static void compare_head(struct strip *s, size_t head, size_t place) {
  const struct gemm *g = second_matrix(s->l, s->role);
  const size_t size = role_head_size(s->l, s->role), stripe = gemm_stripe(g);
  for (size_t first = 0, columns; first < s->l->compare_size; first += columns) {
    columns = gemm_columns(g, first);
    gemm_run(g, first, s->count, s->heads + place * size, s->needed->count * size, s->compared);
    struct strip_columns p = {.columns = columns, .from = s->compared, .from_row = stripe};
    for (size_t i = 0; i < s->stretches; i++) {
      struct strip_stretch *r = &s->stretch[i];
      p.to = r->to + head * r->head_step + first;
      p.to_row = r->row_step;
      carry_columns(s, r, &p);
      p.from += r->rows * stripe;
    }
  }
}

static void compare_heads(struct strip *s) {
  for (size_t head = 0, place = 0; head < role_heads(s->l, s->role); head++)
    if (needed_has(s->needed, head)) compare_head(s, head, place++);
}

/* --- one head of all rows after the other --- */

/* The heads that the columns at hand make up. */
struct strip_heads {
  size_t first, end;
};

static struct strip_heads heads_of(const struct strip *s) {
  const size_t size = s->l->shape.head_size, first = s->column / size;
  const size_t heads = role_heads(s->l, s->role);
  return (struct strip_heads){first,
                              s->columns ? size_min(first + s->columns / size, heads) : heads};
}

static void norm_stretch(struct strip *s, struct strip_stretch *r) {
  const struct layer *l = s->l;
  const struct strip_heads heads = heads_of(s);
  for (size_t head = heads.first; head < heads.end; head++) {
    if (!needed_has(s->needed, head)) continue;
    float *x = r->to + head * r->head_step;
    const struct kernel_norm n = {.rows = r->rows,
                                  .count = l->shape.head_size,
                                  .rms = true,
                                  .epsilon = l->shape.norm_epsilon,
                                  .factor = l->norm[s->role],
                                  .x = x,
                                  .x_row = r->row_step,
                                  .y = x,
                                  .y_row = r->row_step};
    note_top(s, r, l->kernel->norm(&n), n.count, x, r->row_step);
  }
}

/* --- positions --- */

static int64_t position_of(const struct strip *s, const struct strip_stretch *r, size_t row) {
  const struct item *item = &r->call->geometry->item[r->item];
  if (s->role == ROLE_QUERY) return (int64_t)(r->number - item->q_row + row) + item->offset;
  return (int64_t)(role_rows_there(r->call, r->item, ROLE_KEY) + r->number - item->k_row + row);
}

/* Negative positions wrap: 2^64 is a multiple of ANGLES. */
_Static_assert((ANGLES & (ANGLES - 1)) == 0, "a power of two");
static size_t angle_place(int64_t p) { return (size_t)p % ANGLES; }

/* The angles of `rows` positions from `p` on, which have places side by side. */
static const float *angles_from(struct strip *s, int64_t p, size_t rows) {
  const size_t size = s->l->shape.head_size, first = angle_place(p);
  for (size_t i = 0; i < rows; i++) {
    int64_t *at = &s->angle_of[first + i];
    if (*at != p + (int64_t)i) rotary_angles(s->l, p + (int64_t)i, s->angle + (first + i) * size);
    *at = p + (int64_t)i;
  }
  return s->angle + first * size;
}

static void rotate_rows(struct strip *s, struct strip_stretch *r, size_t row, size_t rows) {
  const size_t size = s->l->shape.head_size;
  const float *angle = angles_from(s, position_of(s, r, row), rows);
  const struct strip_heads heads = heads_of(s);
  for (size_t head = heads.first; head < heads.end; head++) {
    if (!needed_has(s->needed, head)) continue;
    float *x = r->to + head * r->head_step;
    const uint32_t top =
        s->l->kernel->rotate(rows, size / 2, angle, x + row * r->row_step, r->row_step);
    note_top(s, r, top, size, x, r->row_step);
  }
}

static void rotate_heads(struct strip *s) {
  for (size_t i = 0; i < s->stretches; i++) {
    struct strip_stretch *r = &s->stretch[i];
    for (size_t row = 0, rows; row < r->rows; row += rows) {
      rows = size_min(r->rows - row, ANGLES - angle_place(position_of(s, r, row)));
      rotate_rows(s, r, row, rows);
    }
  }
}

/* --- all of it --- */

static void clear_tops(struct strip *s) {
  for (size_t i = 0; i < s->stretches; i++)
    s->stretch[i].top = 0, s->stretch[i].bad = s->stretch[i].rows;
}

static void note_faults(const struct strip *s) {
  const unsigned step = s->number + s->role - s->step->role;
  for (size_t i = 0; i < s->stretches; i++) {
    const struct strip_stretch *r = &s->stretch[i];
    if (r->bad < r->rows) run_note_fault(run_of(s->step, r->call), step, r->number + r->bad);
  }
}

/* Keeps the items' greatest magnitudes for the attention to come. */
static void note_tops(const struct strip *s) {
  for (size_t i = 0; i < s->stretches && s->role != ROLE_OUTPUT; i++) {
    const struct strip_stretch *r = &s->stretch[i];
    _Atomic uint32_t *top = role_top(r->call, r->item, s->role);
    uint32_t known = atomic_load_explicit(top, memory_order_relaxed);
    while (r->top > known && !atomic_compare_exchange_weak(top, &known, r->top)) {
    }
  }
}

static void compute_role(struct strip *s) {
  clear_tops(s);
  if (s->l->matrix[s->role])
    multiply_rows(s);
  else
    deal_input(s, role_heads(s->l, s->role) * role_head_size(s->l, s->role));
  /* What is not finite stays so in all that follows: infinity times 0 is NaN. So tops and faults
   * may be those of the last step alone. */
  if (second_matrix(s->l, s->role)) {
    clear_tops(s);
    compare_heads(s);
  }
  if (s->role <= ROLE_KEY && s->l->norm[s->role]) {
    clear_tops(s);
    for (size_t i = 0; i < s->stretches; i++) norm_stretch(s, &s->stretch[i]);
  }
  if (s->role <= ROLE_KEY && s->l->rotary) {
    clear_tops(s);
    rotate_heads(s);
  }
  note_faults(s);
  note_tops(s);
}

/* --- which rows --- */

/* Does the row take part in the role? */
static bool row_counts(const struct strip_part *t, unsigned role, size_t row) {
  const struct geometry *g = t->call->geometry;
  const struct sight *sight = &g->sight;
  const struct item *item = &g->item[t->item];
  const size_t key_at = sight_key_at(g, t->item);
  switch (role) {
  case ROLE_QUERY:
    return sight->from[item->q_row + row] < sight->to[item->q_row + row];
  case ROLE_KEY:
    return t->call->kept || sight->seen[key_at + row];
  case ROLE_VALUE:
    return t->call->kept || sight->seen[key_at + row] ||
           (t->call->uniform_rows && sight->item[t->item].some_blind);
  default:
    return true;
  }
}

/* Where the first head of an item's rows goes, from row `row` on. */
static struct kept_rows place_of(const struct strip *s, const struct strip_part *t, size_t row) {
  const struct call *c = t->call;
  const struct item *item = &c->geometry->item[t->item];
  const size_t size = role_kept_size(s->l, s->role);
  struct kept_rows place = {.row_step = size, .head_step = item->q * size};
  const bool of_keys = s->role == ROLE_KEY || s->role == ROLE_VALUE;
  if (of_keys)
    place = kept_rows_of(s->l, c, t->item, s->role);
  else if (s->role == ROLE_QUERY)
    place.row = c->space->projected[ROLE_QUERY] + item->q_row * s->l->shape.heads * size;
  else
    place.row = c->outputs + item->q_row * size;
  place.row += row * place.row_step;
  if (of_keys && c->kept && role_kept(c, t->item, s->role)->lineage)
    place.row += KERNEL_KEYS * place.row_step;
  return place;
}

/* Rows row .. row + rows - 1 of the item. */
static void set_stretch(const struct strip *s, const struct strip_part *t, size_t row, size_t rows,
                        struct strip_stretch *r) {
  const struct call *c = t->call;
  const struct item *item = &c->geometry->item[t->item];
  const bool of_keys = s->role == ROLE_KEY || s->role == ROLE_VALUE;
  const size_t there = role_rows_there(c, t->item, s->role);
  const size_t number = (of_keys ? item->k_row : item->q_row) + row - there;
  const float *const input[ROLE_PROJECTIONS] = {c->queries, c->keys, c->values, c->space->context};
  const struct kept_rows place = place_of(s, t, row);
  r->from = input[s->role] + number * role_in(s->l, s->role);
  r->to = place.row;
  r->rows = rows;
  r->row_step = place.row_step;
  r->head_step = place.head_step;
  r->call = t->call;
  r->item = t->item;
  r->number = number;
}

static void clear_rows(const struct strip *s, const struct strip_stretch *r) {
  const size_t bytes = role_kept_size(s->l, s->role) * sizeof(float);
  for (size_t h = 0; h < role_heads(s->l, s->role); h++)
    for (size_t i = 0; i < r->rows; i++)
      memset(r->to + h * r->head_step + i * r->row_step, 0, bytes);
}

/* Adds the rows of a part that are seen in this role, as stretches; the others become zeros. */
static void add_stretches(struct strip *s, const struct strip_part *t) {
  const size_t all = role_rows(t->call, t->item, s->role);
  const size_t end = size_min(t->row + t->rows, all);
  for (size_t i = t->row, next; i < end; i = next) {
    const bool counts = row_counts(t, s->role, i);
    for (next = i + 1; next < end && row_counts(t, s->role, next) == counts;) next++;
    struct strip_stretch *r = &s->stretch[s->stretches]; /* these are no more than rows */
    set_stretch(s, t, i, next - i, r);
    if (counts)
      s->stretches++, s->count += r->rows;
    else if (s->column == 0)
      clear_rows(s, r);
  }
}

void strip_flush(struct strip *s) {
  for (s->role = s->step->role; s->parts > 0 && s->role <= s->last_role; s->role++) {
    s->needed = &s->part[0].call->space->needed[s->role];
    s->count = s->stretches = 0;
    if (s->role != ROLE_OUTPUT && s->needed->count == 0) continue; /* for speed alone */
    for (size_t i = 0; i < s->parts; i++) add_stretches(s, &s->part[i]);
    place_scratch(s);
    if (s->count > 0) compute_role(s);
  }
  s->rows = s->parts = 0;
}

/* May the rows of a unit share a tile with those in the strip? */
static bool may_join(const struct strip *s, const struct unit *u) {
  const struct call *c = call_of(s->step, u->run);
  const struct needed *needed = c->space->needed;
  const struct needed *ours = s->part[0].call->space->needed;
  if (rows_last_role(s->step, c, u) != s->last_role || u->column != s->column) return false;
  for (unsigned role = s->step->role; role <= s->last_role; role++)
    if (needed[role].slot != ours[role].slot || !s->l->rows_independent[role]) return false;
  return true;
}

void strip_add(struct strip *s, const struct unit *u, size_t item, size_t row, size_t rows) {
  const size_t most = s->l->tile_rows[s->step->role];
  struct call *call = call_of(s->step, u->run);
  if (s->parts && !may_join(s, u)) strip_flush(s);
  s->number = u->step;
  s->last_role = rows_last_role(s->step, call, u);
  s->column = u->column;
  s->columns = s->step->step.columns ? u->columns : 0;
  for (size_t end = row + rows; row < end; row += rows) {
    rows = size_min(end - row, most - s->rows);
    s->part[s->parts++] = (struct strip_part){call, item, row, rows};
    s->rows += rows;
    if (s->rows == most) strip_flush(s);
  }
}
