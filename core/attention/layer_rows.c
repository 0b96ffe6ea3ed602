/* layer_rows: the steps that multiply rows with a matrix: projections and output.
 *
 * A unit is some rows of an item, or several small items. A thread collects rows of its units in a
 * strip and multiplies them together. The product's columns are copied to the places of the heads.
 * If scores do not compare the heads themselves, each head of a row then goes through a second
 * matrix that the heads share. Norms and rotary positions then change queries and keys in place,
 * once all heads of a row are there.
 *
 * Heads that the call does not need are not computed: their places are never read. Rows that no
 * query attends to are not computed either, and become zeros. Rows that are queries, keys and
 * values at the same time go through all three matrices while they are in cache. */
#include <math.h>
#include <string.h>

#include "core/attention/layer_parts.h"
#include "core/base/size.h"

enum {
  LEAST_ROWS = 16,       /* rows that should share the reading of a matrix: it may be in memory */
  LEAST_WORK = 100000000 /* operations, about a millisecond: most work of a span for that reason */
};

static bool is_of_keys(unsigned role) { return role == ROLE_KEY || role == ROLE_VALUE; }

/* --- columns of a matrix, shared out among threads --- */

/* Each column is computed for whole rows, which changes no bits if rows are independent. */
size_t rows_columns(const struct layer *l, unsigned role) {
  const bool compared = role <= ROLE_KEY && l->compare[role];
  if (!l->matrix[role] || !l->rows_independent[role] || l->shape.grouped || compared) return 0;
  return role_heads(l, role) * role_head_size(l, role);
}

double rows_side_by_side(const struct layer *l, unsigned role) {
  if (role == ROLE_OUTPUT) return (double)rows_columns(l, role) * (double)role_in(l, role) * 2;
  double work = 0;
  for (unsigned r = ROLE_QUERY; r <= ROLE_VALUE; r++)
    work += (double)rows_columns(l, r) * (double)role_in(l, r) * 2;
  return work;
}

/* Columns of a unit; 0: units have whole rows. Queries, keys and values decide alike: only with
 * whole rows do they go through all three matrices together. A role whose columns cannot be shared
 * has one unit with all of them. */
static size_t rows_share(const struct step *step, const struct run *first) {
  const struct layer_step *s = layer_step_of(step);
  const struct layer *l = s->at.layer;
  size_t q_rows = 0, k_rows = 0;
  if (!first->next && first->work < 2.0 * SHARED_WORK) return 0;
  for (const struct run *r = first; r; r = r->next) {
    const struct geometry *g = call_of_const(s, r)->geometry;
    q_rows += g->q_rows, k_rows += g->k_rows;
    if (q_rows > SHARED_ROWS || (k_rows > SHARED_ROWS && s->role != ROLE_OUTPUT)) return 0;
  }
  const size_t rows = is_of_keys(s->role) ? k_rows : q_rows;
  const size_t most = s->role == ROLE_OUTPUT ? q_rows : size_max(q_rows, k_rows);
  if (s->side_by_side * (double)most < 2.0 * SHARED_WORK) return 0;
  if (!step->columns || !rows) return size_max(step->columns, 1);
  /* Rounded up to whole stripes of the matrix, and to whole heads if these are normalized or
   * rotated; that is not always a power of two. */
  const bool whole_heads = s->role <= ROLE_KEY && (l->rotary || l->norm[s->role]);
  const size_t stripe = gemm_stripe(l->matrix[s->role]);
  size_t whole = stripe;
  while (whole_heads && whole % l->shape.head_size) whole += stripe;
  /* Twice as many if rows are of several runs, since each unit copies them side by side. */
  return shared_columns(step->columns, 2.0 * (double)role_in(l, s->role) * (double)rows,
                        first->next ? 2 : 1, whole);
}

/* --- units --- */

/* The last role that the rows of a unit go through: usually the step's own; with self-attention the
 * queries' rows go through all three. */
static unsigned last_role_of(const struct layer_step *s, const struct call *c,
                             const struct unit *u) {
  const bool all = s->role == ROLE_QUERY && !u->columns && c->space->of_itself;
  return all ? ROLE_VALUE : s->role;
}

static bool rows_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct layer_step *s = layer_step_of(step);
  const struct call *c = call_of(s, u->run);
  const size_t items = c->geometry->items;
  if (is_of_keys(s->role) && !at->columns && c->space->of_itself)
    return false; /* they went with the queries */
  bool needed = s->role == ROLE_OUTPUT;
  for (unsigned role = s->role; role <= last_role_of(s, c, u); role++)
    needed |= c->space->needed[role].count > 0;
  if (!needed) return false;
  if (c->space->bunch > 1) { /* several small items, whole */
    if (at->item >= items) return false;
    u->item = at->item;
    u->items = size_min(c->space->bunch, items - at->item);
    at->item += u->items;
    return true;
  }
  for (; at->item < items; at->item++, at->row = 0) {
    const size_t all = role_rows(c, at->item, s->role);
    at->row = size_max(at->row, role_rows_there(c, at->item, s->role));
    if (at->row >= all) continue;
    u->item = at->item;
    u->row = at->row;
    u->rows = size_min(s->at.layer->tile_rows[s->role], all - at->row);
    at->row += u->rows;
    return true;
  }
  return false;
}

/* The work of `rows` rows in the unit's roles and columns. */
static double some_rows_work(const struct layer_step *s, const struct unit *u, size_t rows) {
  const struct call *c = call_of(s, u->run);
  const unsigned last = last_role_of(s, c, u);
  const bool shared = u->columns && s->step.columns;
  double work = 0;
  for (unsigned role = s->role; role <= last; role++) work += rows_work(s->at.layer, c, role, rows);
  return shared ? work * (double)u->columns / (double)s->step.columns : work;
}

static double rows_unit_work(const struct step *step, const struct unit *u) {
  const struct layer_step *s = layer_step_of(step);
  if (u->rows > 0) return some_rows_work(s, u, u->rows);
  /* The rows of a bunch of items follow each other. */
  const struct geometry *g = call_of(s, u->run)->geometry;
  const struct item *first = &g->item[u->item], *last = first + u->items - 1;
  const size_t q_rows = last->q_row + last->q - first->q_row;
  const size_t keys = sight_key_at(g, u->item + u->items - 1) + last->k - sight_key_at(g, u->item);
  return some_rows_work(s, u, is_of_keys(s->role) ? keys : q_rows);
}

/* A span has as many rows as share the reading of a matrix, unless that takes long. */
static double rows_least(const struct step *step, const struct cursor *at) {
  const struct unit u = {.run = at->unit.run};
  return at->columns ? 0 : fmin(some_rows_work(layer_step_of(step), &u, LEAST_ROWS), LEAST_WORK);
}

/* --- the strip --- */

enum {
  ANGLES = GATHERED_ROWS
}; /* positions whose angles are stored: as many as a strip has rows */

#define ANGLE_NONE INT64_MIN

/* Rows of one item, as a unit has them. */
struct strip_part {
  struct call *call;
  size_t item, row, rows;
};

/* Consecutive rows of a part that take part in the current role. */
struct strip_stretch {
  struct call *call;
  size_t item;
  float *to;        /* the place of the first row's first head */
  size_t head_step; /* floats from one head's place to the next one's */
};

/* Rows collected for one product. They may belong to several items and calls. */
struct strip {
  const struct layer_step *step;
  const struct layer *l;
  unsigned number;        /* of the step in its program */
  unsigned last_role;     /* the last role of the rows; the first is the step's */
  size_t column, columns; /* of the matrix, if they are shared out; 0, 0: all */
  float *scratch;
  size_t rows, parts;
  struct strip_part part[GATHERED_ROWS];

  /* The current role. */
  unsigned role;
  const struct needed *needed; /* the same for all rows */
  size_t stretches, count;     /* stretches; rows of all stretches */
  struct strip_stretch stretch[GATHERED_ROWS];
  struct gathered_part gathered[GATHERED_ROWS]; /* their rows, by number over all items */
  float *angle;                /* [ANGLES, head size] with rotary positions; see rotary_angles */
  double *frequency;           /* room for those of an item, if the layer's are not for all */
  float *input;                /* [tile rows, in] */
  float *product;              /* scratch of products */
  struct gemm_input quantized; /* of these rows, if the role before has quantized them */
  float *heads;                /* [tile rows, needed heads, head size] input of the second matrix */
  float *compared;             /* scratch of products with the second matrix */

  /* Positions repeat: those of an item's queries with its keys, those of an item with the next one.
   * So angles are stored, those of position p in place p modulo ANGLES. */
  int64_t angle_of[ANGLES]; /* the position whose angles are in this place, or ANGLE_NONE */
  size_t length;            /* they are those of items of this length; see rotary_length */
  const double *by;         /* frequencies of that length */
};

static struct gemm *second_matrix(const struct layer *l, unsigned role) {
  return role <= ROLE_KEY ? l->compare[role] : NULL;
}

static size_t whole_lines(size_t floats) { return size_round_up(floats, 16); }

/* The first float of each array of a strip in its scratch, and the size of all. */
struct strip_layout {
  size_t frequency, input, product, heads, compared, all;
};

/* The angles come first: they serve more than one role. */
static struct strip_layout layout_of(const struct layer *l, unsigned role) {
  const struct gemm *first = l->matrix[role], *second = second_matrix(l, role);
  const size_t rows = l->tile_rows[role], out = role_heads(l, role) * role_head_size(l, role);
  struct strip_layout at;
  const size_t doubles = l->shape.rope_stretch.trained > 0 ? rotary_pairs(l) : 0;
  at.frequency = l->rotary ? ANGLES * whole_lines(l->shape.head_size) : 0;
  at.input = at.frequency + whole_lines(doubles * (sizeof(double) / sizeof(float)));
  at.product = at.input + rows * whole_lines(role_in(l, role));
  at.heads = at.product + (first ? gemm_scratch_floats(first, rows) : 0);
  at.compared = at.heads + (second ? whole_lines(rows * out) : 0);
  at.all = at.compared + (second ? gemm_scratch_floats(second, rows) : 0);
  return at;
}

size_t strip_floats(const struct layer *l, unsigned role) { return layout_of(l, role).all; }

/* --- copying columns to the heads --- */

/* Copies columns first .. first + count - 1 of a stretch, whose rows begin at row `row` of the
 * strip, to the places of their heads in the call; or, if there is a second matrix, to its input,
 * where the needed heads are side by side. */
static void deal_columns(struct strip *s, size_t stretch, size_t row, const float *from,
                         size_t from_row, size_t first, size_t count) {
  const struct strip_stretch *t = &s->stretch[stretch];
  struct gathered_part *r = &s->gathered[stretch];
  const size_t size = role_head_size(s->l, s->role);
  const bool packed = second_matrix(s->l, s->role) != NULL;
  const size_t packed_row = s->needed->count * size;
  for (size_t columns; count > 0; from += columns, first += columns, count -= columns) {
    const size_t head = first / size, column = first % size;
    columns = size_min(size - column, count);
    if (s->role != ROLE_OUTPUT && !needed_has(s->needed, head)) continue;
    const size_t place = packed ? needed_slot(s->needed, head) : head;
    float *to = packed ? s->heads + row * packed_row + place * size : t->to + place * t->head_step;
    const uint32_t top = s->l->kernel->carry(r->rows, columns, from, from_row, to + column,
                                             packed ? packed_row : r->to_row);
    gathered_update(r, top, columns, from, from_row);
  }
}

/* --- the first matrix --- */

/* Returns whether any of the columns belongs to a needed head. */
static bool columns_are_needed(const struct strip *s, size_t first, size_t count) {
  const size_t size = role_head_size(s->l, s->role);
  if (s->role == ROLE_OUTPUT) return true;
  for (size_t head = first / size; head * size < first + count; head++)
    if (needed_has(s->needed, head)) return true;
  return false;
}

/* The output sums the contexts of needed heads only, as many at a time as are side by side. */
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

/* The rows as the matrix of the role reads them. Queries, keys and values quantize the same rows
 * once, if these lie in place. Grouped matrices do not: they may cut rows into different parts. */
static struct gemm_input input_of(struct strip *s, const struct gemm *g, const float *x) {
  const size_t in = role_in(s->l, s->role);
  const bool again = s->quantized.x == x && s->quantized.rows == s->count && x != s->input &&
                     s->quantized.x_stride == in && !s->l->shape.grouped;
  float *memory = s->product + s->count * gemm_stripe(g);
  if (again && s->quantized.quantized == memory) return s->quantized;
  return s->quantized = gemm_input(g, s->count, x, in, memory);
}

/* Not gathered_multiply: heads that are not needed are left out, and columns end at heads. */
static void multiply_rows(struct strip *s) {
  const struct gemm *g = s->l->matrix[s->role];
  const size_t in = role_in(s->l, s->role), stripe = gemm_stripe(g);
  const size_t out = role_heads(s->l, s->role) * role_head_size(s->l, s->role);
  const size_t end = s->columns ? size_min(s->column + s->columns, out) : out;
  const float *x = gathered_rows(s->gathered, s->stretches, in, s->input);
  /* Contexts of some heads: the others are zeros (STEP_LOOK), which a quantized row takes as they
   * are. */
  const bool some = s->role == ROLE_OUTPUT && s->needed->slot && !gemm_quantizes(g);
  const struct gemm_input input = input_of(s, g, x);
  for (size_t first = s->column, columns; first < end; first += columns) {
    columns = gemm_columns(g, first);
    if (!columns_are_needed(s, first, columns)) continue;
    if (some)
      add_contexts(s, g, first, x);
    else
      gemm_run(g, first, &input, s->product);
    for (size_t i = 0, row = 0; i < s->stretches; row += s->gathered[i++].rows)
      deal_columns(s, i, row, s->product + row * stripe, stripe, first, columns);
  }
}

/* --- the second matrix, norms and rotary positions --- */

/* One head of all rows at a time: how many rows a product has does not depend on the heads. */
static void compare_heads(struct strip *s) {
  const size_t size = role_head_size(s->l, s->role), x_row = s->needed->count * size;
  for (size_t head = 0, place = 0; head < role_heads(s->l, s->role); head++) {
    if (!needed_has(s->needed, head)) continue;
    const struct gathered_product product = {.matrix = second_matrix(s->l, s->role),
                                             .end = s->l->compare_size,
                                             .x = s->heads + place * size,
                                             .x_row = x_row,
                                             .scratch = s->compared};
    place++;
    for (size_t i = 0; i < s->stretches; i++)
      s->gathered[i].to = s->stretch[i].to + head * s->stretch[i].head_step;
    gathered_multiply(&product, s->gathered, s->stretches);
  }
}

/* The heads that consist of the strip's columns. */
struct strip_heads {
  size_t first, end;
};

static struct strip_heads heads_of(const struct strip *s) {
  const size_t size = s->l->shape.head_size, first = s->column / size;
  const size_t heads = role_heads(s->l, s->role);
  return (struct strip_heads){first,
                              s->columns ? size_min(first + s->columns / size, heads) : heads};
}

static void norm_heads(struct strip *s, size_t stretch) {
  const struct layer *l = s->l;
  const struct strip_heads heads = heads_of(s);
  struct gathered_part *r = &s->gathered[stretch];
  for (size_t head = heads.first; head < heads.end; head++) {
    if (!needed_has(s->needed, head)) continue;
    float *x = s->stretch[stretch].to + head * s->stretch[stretch].head_step;
    const struct kernel_norm n = {.rows = r->rows,
                                  .count = l->shape.head_size,
                                  .rms = true,
                                  .epsilon = l->shape.norm_epsilon,
                                  .factor = l->norm[s->role],
                                  .x = x,
                                  .x_row = r->to_row,
                                  .y = x,
                                  .y_row = r->to_row};
    gathered_update(r, l->kernel->norm(&n), n.count, x, r->to_row);
  }
}

/* The position of a row, of which `number` is its number over all items. */
static int64_t position_of(const struct strip *s, const struct strip_stretch *t, size_t number) {
  const struct item *item = &t->call->geometry->item[t->item];
  if (s->role == ROLE_QUERY) return (int64_t)(number - item->q_row) + item->offset;
  return (int64_t)(role_rows_there(t->call, t->item, ROLE_KEY) + number - item->k_row);
}

/* Negative positions wrap: 2^64 is a multiple of ANGLES. */
_Static_assert((ANGLES & (ANGLES - 1)) == 0, "a power of two");
static size_t angle_place(int64_t p) { return (size_t)p % ANGLES; }

/* The angles of `rows` positions from `p` on, whose places are side by side. */
static const float *angles_from(struct strip *s, int64_t p, size_t rows) {
  const size_t size = s->l->shape.head_size, first = angle_place(p);
  for (size_t i = 0; i < rows; i++) {
    int64_t *at = &s->angle_of[first + i];
    if (*at != p + (int64_t)i)
      rotary_angles(s->l, s->by, p + (int64_t)i, s->angle + (first + i) * size);
    *at = p + (int64_t)i;
  }
  return s->angle + first * size;
}

/* Makes the stored angles those of items of a length; the ones of another length are forgotten. */
static void set_length(struct strip *s, size_t length) {
  if (s->by && s->length == length) return;
  s->length = length;
  s->by = rotary_frequencies(s->l, length, s->frequency);
  for (size_t i = 0; i < ANGLES; i++) s->angle_of[i] = ANGLE_NONE;
}

static void rotate_heads(struct strip *s, size_t stretch) {
  const struct strip_stretch *t = &s->stretch[stretch];
  struct gathered_part *r = &s->gathered[stretch];
  const size_t size = s->l->shape.head_size;
  const struct strip_heads heads = heads_of(s);
  set_length(s, rotary_length(s->l, t->call->geometry->item[t->item].k));
  for (size_t row = 0, rows; row < r->rows; row += rows) {
    const int64_t position = position_of(s, t, r->row + row);
    rows = size_min(r->rows - row, ANGLES - angle_place(position));
    const float *angle = angles_from(s, position, rows);
    for (size_t head = heads.first; head < heads.end; head++) {
      if (!needed_has(s->needed, head)) continue;
      float *x = t->to + head * t->head_step;
      const uint32_t top =
          s->l->kernel->rotate(rows, size / 2, angle, x + row * r->to_row, r->to_row);
      gathered_update(r, top, size, x, r->to_row);
    }
  }
}

/* --- one role of the strip's rows --- */

static void clear_tops(struct strip *s) {
  for (size_t i = 0; i < s->stretches; i++)
    s->gathered[i].top = 0, s->gathered[i].bad = s->gathered[i].rows;
}

static void compute_role(struct strip *s) {
  const struct layer *l = s->l;
  const size_t in = role_in(l, s->role), out = role_heads(l, s->role) * role_head_size(l, s->role);
  clear_tops(s);
  if (l->matrix[s->role])
    multiply_rows(s);
  else
    for (size_t i = 0, row = 0; i < s->stretches; row += s->gathered[i++].rows)
      deal_columns(s, i, row, s->gathered[i].from, in, 0, out);
  /* A number that is not finite stays so in all that follows: infinity times 0 is NaN. So tops and
   * faults may be those of the last operation alone. */
  if (second_matrix(l, s->role)) {
    clear_tops(s);
    compare_heads(s);
  }
  if (s->role <= ROLE_KEY && l->norm[s->role]) {
    clear_tops(s);
    for (size_t i = 0; i < s->stretches; i++) norm_heads(s, i);
  }
  if (s->role <= ROLE_KEY && l->rotary) {
    clear_tops(s);
    for (size_t i = 0; i < s->stretches; i++) rotate_heads(s, i);
  }
  /* Faults, and the items' greatest magnitudes for the attention that follows. */
  gathered_record_faults(s->gathered, s->stretches, s->number + s->role - s->step->role);
  for (size_t i = 0; s->role != ROLE_OUTPUT && i < s->stretches; i++) {
    const uint32_t here = s->gathered[i].top;
    _Atomic uint32_t *top = role_top(s->stretch[i].call, s->stretch[i].item, s->role);
    uint32_t known = atomic_load_explicit(top, memory_order_relaxed);
    while (here > known && !atomic_compare_exchange_weak(top, &known, here)) {
    }
  }
}

/* Returns whether the row takes part in the role. */
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

/* Sets the next stretch to rows row .. row + rows - 1 of the item. */
static void set_stretch(struct strip *s, const struct strip_part *t, size_t row, size_t rows) {
  const struct call *c = t->call;
  const struct item *item = &c->geometry->item[t->item];
  const bool of_keys = is_of_keys(s->role);
  const size_t size = role_kept_size(s->l, s->role);
  const size_t number =
      (of_keys ? item->k_row : item->q_row) + row - role_rows_there(c, t->item, s->role);
  const float *const input[ROLE_PROJECTIONS] = {c->queries, c->keys, c->values, c->space->context};
  struct kept_rows place = {.row_step = size, .head_step = item->q * size};
  if (of_keys)
    place = kept_rows_of(s->l, c, t->item, s->role);
  else if (s->role == ROLE_QUERY)
    place.row = c->space->projected[ROLE_QUERY] + item->q_row * s->l->shape.heads * size;
  else
    place.row = c->outputs + item->q_row * size;
  if (of_keys && c->kept && role_kept(c, t->item, s->role)->lineage)
    place.row += KERNEL_KEYS * place.row_step;
  s->stretch[s->stretches] =
      (struct strip_stretch){t->call, t->item, place.row + row * place.row_step, place.head_step};
  s->gathered[s->stretches] =
      (struct gathered_part){.run = run_of(s->step, t->call),
                             .row = number,
                             .rows = rows,
                             .from = input[s->role] + number * role_in(s->l, s->role),
                             .to_row = place.row_step};
}

/* Adds the rows of a part that take part in this role, as stretches; the others become zeros. */
static void add_stretches(struct strip *s, const struct strip_part *t) {
  const size_t all = role_rows(t->call, t->item, s->role);
  const size_t end = size_min(t->row + t->rows, all);
  const size_t bytes = role_kept_size(s->l, s->role) * sizeof(float);
  for (size_t i = t->row, next; i < end; i = next) {
    const bool counts = row_counts(t, s->role, i);
    for (next = i + 1; next < end && row_counts(t, s->role, next) == counts;) next++;
    const struct strip_stretch *r = &s->stretch[s->stretches]; /* no more stretches than rows */
    set_stretch(s, t, i, next - i);
    if (counts)
      s->stretches++, s->count += next - i;
    else if (s->column == 0)
      for (size_t h = 0; h < role_heads(s->l, s->role); h++)
        for (size_t j = 0; j < next - i; j++)
          memset(r->to + h * r->head_step + j * s->gathered[s->stretches].to_row, 0, bytes);
  }
}

/* --- collecting rows --- */

/* Computes all rows in the strip, which is then empty. */
static void flush_strip(struct strip *s) {
  s->quantized = (struct gemm_input){0};
  for (s->role = s->step->role; s->parts > 0 && s->role <= s->last_role; s->role++) {
    s->needed = &s->part[0].call->space->needed[s->role];
    s->count = s->stretches = 0;
    if (s->role != ROLE_OUTPUT && s->needed->count == 0) continue; /* only for speed */
    for (size_t i = 0; i < s->parts; i++) add_stretches(s, &s->part[i]);
    const struct strip_layout at = layout_of(s->l, s->role);
    s->angle = s->scratch;
    s->frequency = (double *)(s->scratch + at.frequency);
    s->input = s->scratch + at.input;
    s->product = s->scratch + at.product;
    s->heads = s->scratch + at.heads;
    s->compared = s->scratch + at.compared;
    if (s->count > 0) compute_role(s);
  }
  s->rows = s->parts = 0;
}

/* Returns whether the rows of a unit may share a tile with those in the strip. */
static bool may_join(const struct strip *s, const struct unit *u) {
  const struct call *c = call_of(s->step, u->run);
  const struct needed *needed = c->space->needed;
  const struct needed *ours = s->part[0].call->space->needed;
  if (last_role_of(s->step, c, u) != s->last_role || u->column != s->column) return false;
  for (unsigned role = s->step->role; role <= s->last_role; role++)
    if (needed[role].slot != ours[role].slot || !s->l->rows_independent[role]) return false;
  return true;
}

/* Adds rows row .. end - 1 of one of the unit's items; computes whenever the strip is full. */
static void add_rows(struct strip *s, const struct unit *u, size_t item, size_t row, size_t end) {
  const size_t most = s->l->tile_rows[s->step->role];
  struct call *call = call_of(s->step, u->run);
  if (s->parts && !may_join(s, u)) flush_strip(s);
  s->number = u->step;
  s->last_role = last_role_of(s->step, call, u);
  s->column = u->column;
  s->columns = s->step->step.columns ? u->columns : 0;
  for (size_t rows; row < end; row += rows) {
    rows = size_min(end - row, most - s->rows);
    s->part[s->parts++] = (struct strip_part){call, item, row, rows};
    s->rows += rows;
    if (s->rows == most) flush_strip(s);
  }
}

static void compute_rows(const struct step *step, const struct span *span, void *scratch) {
  const struct layer_step *s = layer_step_of(step);
  const unsigned mode = kernel_enter();
  struct span left = *span;
  struct strip strip;
  struct unit u;
  strip.step = s;
  strip.l = s->at.layer;
  strip.scratch = scratch;
  strip.rows = strip.parts = 0;
  strip.by = NULL;
  while (run_next_unit(&left, &u)) {
    const struct call *c = call_of(s, u.run);
    for (size_t i = u.item; i < u.item + u.items; i++) {
      const size_t first = size_max(u.row, role_rows_there(c, i, s->role));
      const size_t all = role_rows(c, i, s->role);
      const size_t end = u.rows == 0 ? all : size_min(u.row + u.rows, all);
      if (first < end) add_rows(&strip, &u, i, first, end);
    }
  }
  flush_strip(&strip);
  kernel_leave(mode);
}

const struct step step_rows = {.unit = rows_unit,
                               .work = rows_unit_work,
                               .share = rows_share,
                               .least = rows_least,
                               .compute = compute_rows,
                               .fault = fault_of_row};
