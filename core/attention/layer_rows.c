/* layer_rows: rows through a matrix, collected in strips. */
#include "core/attention/layer_rows.h"

#include <string.h>

#include "core/kernel/gemm.h"
#include "core/run/size.h"

/* --- the layout of the scratch --- */

static struct gemm *second_matrix(const struct layer *l, unsigned role) {
  return role <= ROLE_KEY ? l->compare[role] : NULL;
}

static size_t line(size_t floats) { return size_round_up(floats, 16); }

static size_t product_floats(const struct layer *l, unsigned role) {
  return l->matrix[role] ? l->tile_rows[role] * line(gemm_stripe(l->matrix[role])) : 0;
}

static size_t heads_floats(const struct layer *l, unsigned role) {
  const size_t row = role_heads(l, role) * role_head_size(l, role);
  return second_matrix(l, role) ? line(l->tile_rows[role] * row) : 0;
}

/* The same whatever the role: what it holds serves more than one. */
static size_t angle_floats(const struct layer *l) {
  return l->rotary ? ANGLES * line(l->shape.head_size) : 0;
}

size_t strip_floats(const struct layer *l, unsigned role) {
  const struct gemm *second = second_matrix(l, role);
  return angle_floats(l) + l->tile_rows[role] * line(role_in(l, role)) + product_floats(l, role) +
         heads_floats(l, role) + (second ? l->tile_rows[role] * gemm_stripe(second) : 0);
}

void strip_begin(struct strip *s, const struct layer *l, float *scratch) {
  s->l = l;
  s->scratch = scratch;
  s->rows = s->parts = 0;
  for (size_t i = 0; l->rotary && i < ANGLES; i++) s->stands_at[i] = ANGLE_NONE;
}

static void place_scratch(struct strip *s) {
  const struct layer *l = s->l;
  s->angle = s->scratch;
  s->gathered = s->angle + angle_floats(l);
  s->product = s->gathered + l->tile_rows[s->role] * line(role_in(l, s->role));
  s->heads = s->product + product_floats(l, s->role);
  s->compared = s->heads + heads_floats(l, s->role);
}

/* The rows as one matrix: where they lie if they follow each other, else a copy. */
static const float *strip_input(struct strip *s, size_t in) {
  bool together = true;
  for (size_t i = 1; i < s->runs && together; i++)
    together = s->run[i].from == s->run[i - 1].from + s->run[i - 1].rows * in;
  if (together) return s->run[0].from;
  float *to = s->gathered;
  for (size_t i = 0; i < s->runs; i++) {
    memcpy(to, s->run[i].from, s->run[i].rows * in * sizeof(float));
    to += s->run[i].rows * in;
  }
  return s->gathered;
}

/* --- dealing out --- */

/* Columns on their way to one head of some rows. */
struct part {
  size_t columns;
  const float *from;
  size_t from_row;
  float *to;
  size_t to_row;
};

/* The greatest magnitude of some columns of a run's rows is known. Which of the rows it was is
 * asked only where something is not finite. */
static void note_top(const struct strip *s, struct run *r, uint32_t top, size_t columns,
                     const float *at, size_t row) {
  r->top = top > r->top ? top : r->top;
  if (top < KERNEL_NOT_FINITE) return;
  for (size_t i = 0; i < r->bad; i++)
    if (s->l->kernel->peak(columns, at + i * row) >= KERNEL_NOT_FINITE) r->bad = i;
}

static void carry(const struct strip *s, struct run *r, const struct part *p) {
  const uint32_t top =
      s->l->kernel->carry(r->rows, p->columns, p->from, p->from_row, p->to, p->to_row);
  note_top(s, r, top, p->columns, p->from, p->from_row);
}

/* Columns first .. first + count - 1 of a run's rows to the heads they belong to: to their places
 * in the call, or, heads that are needed side by side, to the second matrix. */
static void deal_run(const struct strip *s, struct run *r, size_t row, const float *from,
                     size_t from_row, size_t first, size_t count) {
  const size_t size = role_head_size(s->l, s->role);
  const bool packed = second_matrix(s->l, s->role) != NULL;
  const size_t packed_row = s->live->count * size;
  struct part p = {.from = from, .from_row = from_row};
  p.to_row = packed ? packed_row : r->row_step;
  for (; count > 0; p.from += p.columns, first += p.columns, count -= p.columns) {
    const size_t head = first / size, column = first % size;
    p.columns = size_min(size - column, count);
    if (s->role != ROLE_OUTPUT && !head_is_live(s->live, head)) continue;
    const size_t place = packed ? head_slot(s->live, head) : head;
    p.to = packed ? s->heads + row * packed_row + place * size : r->to + place * r->head_step;
    p.to += column;
    carry(s, r, &p);
  }
}

static void deal_product(struct strip *s, size_t stripe, size_t first, size_t count) {
  for (size_t i = 0, row = 0; i < s->runs; row += s->run[i++].rows)
    deal_run(s, &s->run[i], row, s->product + row * stripe, stripe, first, count);
}

/* The rows as they are. */
static void deal_input(struct strip *s, size_t out) {
  for (size_t i = 0, row = 0; i < s->runs; row += s->run[i++].rows)
    deal_run(s, &s->run[i], row, s->run[i].from, role_in(s->l, s->role), 0, out);
}

/* --- the first matrix --- */

/* Does any of the columns belong to a head that is needed? */
static bool columns_are_live(const struct strip *s, size_t first, size_t count) {
  const size_t size = role_head_size(s->l, s->role);
  if (s->role == ROLE_OUTPUT) return true;
  for (size_t head = first / size; head * size < first + count; head++)
    if (head_is_live(s->live, head)) return true;
  return false;
}

/* The output takes the contexts of needed heads only: runs of them, side by side. */
static void add_contexts(const struct strip *s, const struct gemm *g, size_t first,
                         const float *x) {
  const size_t heads = s->l->shape.heads, size = s->l->shape.value_head_size;
  gemm_start(g, first, s->count, true, s->product);
  for (size_t from = 0, to; from < heads; from = to) {
    to = from + 1;
    if (!head_is_live(s->live, from)) continue;
    while (to < heads && head_is_live(s->live, to)) to++;
    gemm_add(g, first, s->count, x, heads * size, from * size, (to - from) * size, s->product);
  }
}

static void project(struct strip *s) {
  const struct gemm *g = s->l->matrix[s->role];
  const size_t in = role_in(s->l, s->role), stripe = gemm_stripe(g);
  const size_t out = role_heads(s->l, s->role) * role_head_size(s->l, s->role);
  const float *x = strip_input(s, in);
  for (size_t first = 0, columns; first < out; first += columns) {
    columns = gemm_columns(g, first);
    if (!columns_are_live(s, first, columns)) continue;
    if (s->role == ROLE_OUTPUT && s->live->slot)
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
    gemm_run(g, first, s->count, s->heads + place * size, s->live->count * size, s->compared);
    struct part p = {.columns = columns, .from = s->compared, .from_row = stripe};
    for (size_t i = 0; i < s->runs; i++) {
      struct run *r = &s->run[i];
      p.to = r->to + head * r->head_step + first;
      p.to_row = r->row_step;
      carry(s, r, &p);
      p.from += r->rows * stripe;
    }
  }
}

static void compare(struct strip *s) {
  for (size_t head = 0, place = 0; head < role_heads(s->l, s->role); head++)
    if (head_is_live(s->live, head)) compare_head(s, head, place++);
}

/* --- positions --- */

static int64_t position_of(const struct strip *s, const struct run *r, size_t row) {
  const struct item *item = &r->call->item[r->item];
  const size_t first = s->role == ROLE_KEY ? item->k_row : item->q_row;
  const int64_t i = (int64_t)(r->number - first + row);
  return s->role == ROLE_KEY ? i : i + item->offset;
}

/* Negative positions wrap: 2^64 is a multiple of ANGLES. */
_Static_assert((ANGLES & (ANGLES - 1)) == 0, "a power of two");
static size_t angle_place(int64_t p) { return (size_t)p % ANGLES; }

/* The angles of `rows` positions from `p` on, which have places side by side. */
static const float *angles_from(struct strip *s, int64_t p, size_t rows) {
  const size_t size = s->l->shape.head_size, first = angle_place(p);
  for (size_t i = 0; i < rows; i++) {
    int64_t *at = &s->stands_at[first + i];
    if (*at != p + (int64_t)i) rotary_angles(s->l, p + (int64_t)i, s->angle + (first + i) * size);
    *at = p + (int64_t)i;
  }
  return s->angle + first * size;
}

static void rotate_rows(struct strip *s, struct run *r, size_t row, size_t rows) {
  const size_t size = s->l->shape.head_size;
  const float *angle = angles_from(s, position_of(s, r, row), rows);
  for (size_t head = 0; head < role_heads(s->l, s->role); head++) {
    if (!head_is_live(s->live, head)) continue;
    float *x = r->to + head * r->head_step;
    const uint32_t top =
        s->l->kernel->rotate(rows, size / 2, angle, x + row * r->row_step, r->row_step);
    note_top(s, r, top, size, x, r->row_step);
  }
}

static void rotate(struct strip *s) {
  for (size_t i = 0; i < s->runs; i++) {
    struct run *r = &s->run[i];
    for (size_t row = 0, rows; row < r->rows; row += rows) {
      rows = size_min(r->rows - row, ANGLES - angle_place(position_of(s, r, row)));
      rotate_rows(s, r, row, rows);
    }
  }
}

/* --- all of it --- */

/* Nothing is known of the rows yet. */
static void forget_tops(struct strip *s) {
  for (size_t i = 0; i < s->runs; i++) s->run[i].top = 0, s->run[i].bad = s->run[i].rows;
}

static void note_faults(const struct strip *s) {
  static const enum fault_stage stage[ROLE_PROJECTIONS] = {FAULT_QUERY, FAULT_KEY, FAULT_VALUE,
                                                           FAULT_OUTPUT};
  for (size_t i = 0; i < s->runs; i++) {
    const struct run *r = &s->run[i];
    if (r->bad < r->rows) fault_at(r->call, stage[s->role], r->number + r->bad);
  }
}

/* Keeps the items' greatest magnitudes for the attention to come. */
static void note_tops(const struct strip *s) {
  for (size_t i = 0; i < s->runs && s->role != ROLE_OUTPUT; i++) {
    const struct run *r = &s->run[i];
    _Atomic uint32_t *top = &r->call->space->tops[r->item].role[s->role];
    uint32_t known = atomic_load_explicit(top, memory_order_relaxed);
    while (r->top > known && !atomic_compare_exchange_weak(top, &known, r->top)) {
    }
  }
}

static void run_role(struct strip *s) {
  forget_tops(s);
  if (s->l->matrix[s->role])
    project(s);
  else
    deal_input(s, role_heads(s->l, s->role) * role_head_size(s->l, s->role));
  /* What is not finite stays so in both: infinity times 0 is NaN. */
  if (second_matrix(s->l, s->role)) {
    forget_tops(s);
    compare(s);
  }
  if (s->role <= ROLE_KEY && s->l->rotary) {
    forget_tops(s);
    rotate(s);
  }
  note_faults(s);
  note_tops(s);
}

/* --- which rows --- */

/* Is the row seen by anyone? */
static bool row_is_seen(const struct taken *t, unsigned role, size_t row) {
  const struct visible *v = &t->call->space->visible;
  const struct item *item = &t->call->item[t->item];
  switch (role) {
  case ROLE_QUERY:
    return v->from[item->q_row + row] < v->to[item->q_row + row];
  case ROLE_KEY:
    return v->seen[item->k_row + row];
  case ROLE_VALUE:
    return v->seen[item->k_row + row] || (t->call->uniform_rows && v->item[t->item].some_blind);
  default:
    return true;
  }
}

/* Rows row .. row + rows - 1 of the item. */
static struct run run_of(const struct strip *s, const struct taken *t, size_t row, size_t rows) {
  const struct call *c = t->call;
  const struct item *item = &c->item[t->item];
  const bool of_keys = s->role == ROLE_KEY || s->role == ROLE_VALUE;
  const size_t number = (of_keys ? item->k_row : item->q_row) + row;
  const float *const input[ROLE_PROJECTIONS] = {c->queries, c->keys, c->values, c->space->context};
  const size_t size = role_kept_size(s->l, s->role), heads = role_heads(s->l, s->role);
  struct run r = {.from = input[s->role] + number * role_in(s->l, s->role),
                  .rows = rows,
                  .row_step = size,
                  .call = t->call,
                  .item = t->item,
                  .number = number};
  if (s->role == ROLE_OUTPUT) {
    r.to = t->call->outputs + number * size;
  } else {
    r.to = c->space->projected[s->role] + (number - row) * heads * size + row * size;
    r.head_step = (of_keys ? item->k : item->q) * size;
  }
  return r;
}

static void clear_rows(const struct strip *s, const struct run *r) {
  for (size_t h = 0; h < role_heads(s->l, s->role); h++)
    memset(r->to + h * r->head_step, 0, r->rows * r->row_step * sizeof(float));
}

/* The rows of a part that are seen in this role, as runs; the others become zeros. */
static void find_runs(struct strip *s, const struct taken *t) {
  const size_t all = role_rows(t->call, t->item, s->role);
  const size_t end = size_min(t->row + t->rows, all);
  for (size_t i = t->row, next; i < end; i = next) {
    const bool seen = row_is_seen(t, s->role, i);
    for (next = i + 1; next < end && row_is_seen(t, s->role, next) == seen;) next++;
    const struct run r = run_of(s, t, i, next - i);
    if (seen)
      s->run[s->runs++] = r, s->count += r.rows;
    else
      clear_rows(s, &r);
  }
}

void strip_flush(struct strip *s) {
  for (s->role = s->first_role; s->parts > 0 && s->role <= s->last_role; s->role++) {
    s->live = &s->part[0].call->space->live[s->role];
    s->count = s->runs = 0;
    if (s->role != ROLE_OUTPUT && s->live->count == 0) continue; /* for speed only */
    for (size_t i = 0; i < s->parts; i++) find_runs(s, &s->part[i]);
    place_scratch(s);
    if (s->count > 0) run_role(s);
  }
  s->rows = s->parts = 0;
}

/* May a unit's rows join those that are here? */
static bool belongs(const struct strip *s, const struct unit *u) {
  const struct live *live = u->call->space->live, *ours = s->part[0].call->space->live;
  if (u->role != s->first_role || u->last_role != s->last_role) return false;
  for (unsigned role = u->role; role <= u->last_role; role++)
    if (live[role].slot != ours[role].slot || !s->l->rows_independent[role]) return false;
  return true;
}

void strip_take(struct strip *s, const struct unit *u) {
  const size_t most = s->l->tile_rows[u->role];
  if (s->parts && !belongs(s, u)) strip_flush(s);
  s->first_role = u->role, s->last_role = u->last_role;
  for (size_t row = u->row, end = u->row + u->rows, rows; row < end; row += rows) {
    rows = size_min(end - row, most - s->rows);
    s->part[s->parts++] = (struct taken){u->call, u->item, row, rows};
    s->rows += rows;
    if (s->rows == most) strip_flush(s);
  }
}
