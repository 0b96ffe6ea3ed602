/* layer_rows: rows through a matrix, collected in strips. */
#include "core/layer_rows.h"

#include <string.h>

#include "core/gemm.h"
#include "core/size.h"

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

size_t strip_floats(const struct layer *l, unsigned role) {
  const struct gemm *second = second_matrix(l, role);
  return l->tile_rows[role] * line(role_in(l, role)) + product_floats(l, role) +
         heads_floats(l, role) + (second ? l->tile_rows[role] * gemm_stripe(second) : 0);
}

void strip_begin(struct strip *s, const struct layer *l, unsigned role, float *scratch) {
  s->l = l;
  s->role = role;
  s->count = 0;
  s->gathered = scratch;
  s->product = s->gathered + l->tile_rows[role] * line(role_in(l, role));
  s->heads = s->product + product_floats(l, role);
  s->compared = s->heads + heads_floats(l, role);
}

/* The rows as one matrix: where they lie if they follow each other, else a copy. */
static const float *strip_input(struct strip *s, size_t in) {
  bool together = true;
  for (size_t i = 1; i < s->count && together; i++)
    together = s->row[i].from == s->row[i - 1].from + in;
  if (together) return s->row[0].from;
  for (size_t i = 0; i < s->count; i++)
    memcpy(s->gathered + i * in, s->row[i].from, in * sizeof(float));
  return s->gathered;
}

/* --- dealing out --- */

/* Where the heads of a row go: to their places in the call, or, packed, to the second matrix. */
struct target {
  float *to;
  size_t head_step;
  bool packed; /* heads that are not needed have no place */
};

static struct target target_of(const struct strip *s, size_t i) {
  const size_t size = role_head_size(s->l, s->role);
  if (!second_matrix(s->l, s->role))
    return (struct target){.to = s->row[i].to, .head_step = s->row[i].head_step};
  return (
      struct target){.to = s->heads + i * s->live->count * size, .head_step = size, .packed = true};
}

static size_t place_of(const struct strip *s, const struct target *t, size_t head) {
  return t->packed && s->live->slot ? s->live->slot[head] : head;
}

static void raise_top(uint32_t *top, uint32_t most) { *top = most > *top ? most : *top; }

/* Columns first .. first + count - 1 of a row to the heads they belong to. */
static void deal_out(struct strip *s, size_t i, const float *from, size_t first, size_t count) {
  const size_t size = role_head_size(s->l, s->role);
  const struct target t = target_of(s, i);
  while (count > 0) {
    const size_t head = first / size, column = first % size;
    const size_t n = size_min(size - column, count);
    if (s->role == ROLE_OUTPUT || head_is_live(s->live, head)) {
      float *to = t.to + place_of(s, &t, head) * t.head_step + column;
      raise_top(&s->top[i], s->l->kernel->carry(n, from, to));
    }
    from += n, first += n, count -= n;
  }
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
    for (size_t i = 0; i < s->count; i++) deal_out(s, i, s->product + i * stripe, first, columns);
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
    for (size_t i = 0; i < s->count; i++) {
      float *to = s->row[i].to + head * s->row[i].head_step + first;
      raise_top(&s->top[i], s->l->kernel->carry(columns, s->compared + i * stripe, to));
    }
  }
}

static void compare(struct strip *s) {
  for (size_t head = 0, place = 0; head < role_heads(s->l, s->role); head++)
    if (head_is_live(s->live, head)) compare_head(s, head, place++);
}

/* --- all of it --- */

static void note_fault(const struct strip *s, size_t i) {
  static const enum fault_stage stage[ROLE_PROJECTIONS] = {FAULT_QUERY, FAULT_KEY, FAULT_VALUE,
                                                           FAULT_OUTPUT};
  if (s->top[i] >= KERNEL_NOT_FINITE) fault_at(s->row[i].call, stage[s->role], s->row[i].number);
}

/* Keeps the item's greatest magnitude for the attention to come. */
static void note_top(const struct strip *s, size_t i) {
  const struct row *r = &s->row[i];
  if (s->role == ROLE_OUTPUT) return;
  _Atomic uint32_t *top = &r->call->space->tops[r->item].role[s->role];
  uint32_t known = atomic_load_explicit(top, memory_order_relaxed);
  while (s->top[i] > known && !atomic_compare_exchange_weak(top, &known, s->top[i])) {
  }
}

void strip_flush(struct strip *s) {
  if (s->count == 0) return;
  const size_t out = role_heads(s->l, s->role) * role_head_size(s->l, s->role);
  memset(s->top, 0, s->count * sizeof *s->top);
  if (s->l->matrix[s->role])
    project(s);
  else
    for (size_t i = 0; i < s->count; i++) deal_out(s, i, s->row[i].from, 0, out);
  if (second_matrix(s->l, s->role)) {
    for (size_t i = 0; i < s->count; i++) note_fault(s, i);
    memset(s->top, 0, s->count * sizeof *s->top);
    compare(s);
  }
  for (size_t i = 0; i < s->count; i++) {
    note_fault(s, i);
    note_top(s, i);
  }
  s->count = 0;
}

/* Is the row seen by anyone? */
static bool row_is_seen(const struct unit *u, size_t row) {
  const struct visible *v = &u->call->space->visible;
  const struct item *item = &u->call->item[u->item];
  switch (u->role) {
  case ROLE_QUERY:
    return v->from[item->q_row + row] < v->to[item->q_row + row];
  case ROLE_KEY:
    return v->seen[item->k_row + row];
  case ROLE_VALUE:
    return v->seen[item->k_row + row] || (u->call->uniform_rows && v->item[u->item].some_blind);
  default:
    return true;
  }
}

static struct row row_of(const struct layer *l, const struct unit *u, size_t row) {
  const struct call *c = u->call;
  const struct item *item = &c->item[u->item];
  const bool of_keys = u->role == ROLE_KEY || u->role == ROLE_VALUE;
  const size_t number = (of_keys ? item->k_row : item->q_row) + row;
  const float *const input[ROLE_PROJECTIONS] = {c->queries, c->keys, c->values, c->space->context};
  const size_t size = role_kept_size(l, u->role);
  struct row r = {.from = input[u->role] + number * role_in(l, u->role),
                  .call = u->call,
                  .item = u->item,
                  .number = number};
  if (u->role == ROLE_OUTPUT) {
    r.to = u->call->outputs + number * size;
  } else {
    const size_t rows = of_keys ? item->k : item->q;
    r.to =
        c->space->projected[u->role] + (number - row) * role_heads(l, u->role) * size + row * size;
    r.head_step = rows * size;
  }
  return r;
}

static void clear_row(const struct layer *l, unsigned role, const struct row *r) {
  const size_t size = role_kept_size(l, role);
  for (size_t h = 0; h < role_heads(l, role); h++)
    memset(r->to + h * r->head_step, 0, size * sizeof(float));
}

void strip_take(struct strip *s, const struct unit *u) {
  const struct live *live = &u->call->space->live[u->role];
  if (s->count && live->slot != s->live->slot) strip_flush(s);
  s->live = live;
  for (size_t i = u->row; i < u->row + u->rows; i++) {
    const struct row r = row_of(s->l, u, i);
    if (!row_is_seen(u, i)) {
      clear_row(s->l, s->role, &r);
      continue;
    }
    s->row[s->count++] = r;
    if (s->count == s->l->tile_rows[s->role]) strip_flush(s);
  }
  if (!s->l->rows_independent[s->role]) strip_flush(s);
}
