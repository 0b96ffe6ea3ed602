/* attention_ref: the slow, readable twin of a layer: rows in, rows out. */
#include "core/reference/attention_ref.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/attention/sight.h"
#include "core/reference/attention_ref_parts.h"
#include "core/run/size.h"

/* --- projecting --- */

/* Rows of queries, keys or values: how wide they come in, and the heads they become. */
struct ref_role {
  size_t in, heads, size;
};

static struct ref_role role_of(const struct layer_shape *s, enum role role) {
  const struct ref_role of[] = {[ROLE_QUERY] = {s->query_size, s->heads, s->head_size},
                                [ROLE_KEY] = {s->key_size, s->kv_heads, s->key_head_size},
                                [ROLE_VALUE] = {s->value_size, s->kv_heads, s->value_head_size}};
  return of[role];
}

static bool head_is_masked(const struct ref_item *r, size_t head) {
  return r->c->head_mask && r->c->head_mask[head] == 0;
}

/* A masked head is not computed, unless its weights, pointers or measures are wanted. */
static bool head_counts(const struct ref_item *r, size_t head) {
  const struct call *c = r->c;
  return !head_is_masked(r, head) || c->want != WEIGHTS_NONE || c->want_pointers ||
         c->want_measures;
}

/* Does any head that counts use this head of the role? Values show in the outputs alone. */
static bool role_head_counts(const struct ref_item *r, enum role role, size_t of) {
  if (role == ROLE_QUERY) return head_counts(r, of);
  for (size_t head = 0; head < r->s->heads; head++) {
    const bool counts = role == ROLE_VALUE ? !head_is_masked(r, head) : head_counts(r, head);
    if (ref_key_head(r, head) == of && counts) return true;
  }
  return false;
}

/* One head of an input row: by its own rows of the matrix, and in a grouped layer from its own
 * slice of the row; without a matrix it is a slice of the row. */
static bool project_head(const struct ref_item *r, enum role role, size_t head, double *y) {
  const struct ref_role of = role_of(r->s, role);
  const struct layer_matrix *m = &r->matrix[role];
  if (!m->weight) {
    memcpy(y, r->wide + head * of.size, of.size * sizeof *y);
    return true;
  }
  const size_t in = r->s->grouped ? of.in / of.heads : of.in;
  const double *x = r->s->grouped ? r->wide + head * in : r->wide;
  return ref_product(m->weight + head * of.size * in, m->bias ? m->bias + head * of.size : NULL,
                     of.size, in, x, y);
}

/* x'[t] = x[t] cos pw - x[t + d/2] sin pw, x'[t + d/2] = x[t + d/2] cos pw + x[t] sin pw, with
 * w = base^(-2t/d): what position `p` makes of a head. */
static bool rotate_head(const struct layer_shape *s, double p, double *x) {
  const size_t d = s->head_size;
  bool finite = true;
  for (size_t t = 0; s->rope_base > 0 && t < d / 2; t++) {
    const double angle = p * pow(s->rope_base, -2.0 * (double)t / (double)d);
    const double a = x[t], b = x[t + d / 2];
    x[t] = a * cos(angle) - b * sin(angle);
    x[t + d / 2] = b * cos(angle) + a * sin(angle);
    finite = finite && ref_is_float(x[t]) && ref_is_float(x[t + d / 2]);
  }
  return finite;
}

static double position_of(const struct ref_item *r, enum role role, size_t row) {
  return (double)row + (role == ROLE_QUERY ? (double)r->item->offset : 0);
}

/* An input row becomes row `row` of the role, in all heads that count. */
static bool project_row(struct ref_item *r, enum role role, const float *input, size_t row) {
  const struct ref_role of = role_of(r->s, role);
  bool finite = true;
  for (size_t x = 0; x < of.in; x++) r->wide[x] = input[x];
  for (size_t head = 0; head < of.heads; head++) {
    if (!role_head_counts(r, role, head)) continue;
    const size_t at = row * of.heads + head;
    double *y = r->rows[role] + at * of.size;
    finite &= project_head(r, role, head, y);
    if (role != ROLE_VALUE) finite &= rotate_head(r->s, position_of(r, role, row), y);
    if (role == ROLE_QUERY)
      finite &= ref_query_side(r, y, r->sides[role] + at * ref_side_size(r->s));
    if (role == ROLE_KEY) finite &= ref_key_side(r, y, r->sides[role] + at * ref_side_size(r->s));
  }
  return finite;
}

/* In any head that counts. */
static bool pair_is_seen(const struct ref_item *r, size_t i, size_t j) {
  for (size_t head = 0; head < r->s->heads; head++)
    if ((head_counts(r, head) || !r->c->mask_per_head) && sight_allows(r->c, r->item, head, i, j))
      return true;
  return false;
}

static bool key_is_seen(const struct ref_item *r, size_t j) {
  for (size_t i = 0; i < r->item->q; i++)
    if (pair_is_seen(r, i, j)) return true;
  return false;
}

static bool query_sees(const struct ref_item *r, size_t i) {
  for (size_t j = 0; j < r->item->k; j++)
    if (pair_is_seen(r, i, j)) return true;
  return false;
}

/* Does the query see nothing in some head that counts? */
static bool query_is_blind(const struct ref_item *r, size_t i) {
  for (size_t head = 0; head < r->s->heads; head++) {
    bool sees = !head_counts(r, head);
    for (size_t j = 0; j < r->item->k; j++) sees |= sight_allows(r->c, r->item, head, i, j);
    if (!sees) return true;
  }
  return false;
}

/* Projects the rows that take part in anything. */
static bool project_item(struct ref_item *r) {
  const struct layer_shape *s = r->s;
  const struct call *c = r->c;
  bool blind = false, finite = true;
  for (size_t i = 0; i < r->item->q; i++) {
    blind = blind || query_is_blind(r, i);
    if (query_sees(r, i))
      finite &= project_row(r, ROLE_QUERY, c->queries + (r->item->q_row + i) * s->query_size, i);
  }
  for (size_t j = 0; j < r->item->k; j++) {
    const size_t row = r->item->k_row + j;
    const bool seen = key_is_seen(r, j);
    if (seen) finite &= project_row(r, ROLE_KEY, c->keys + row * s->key_size, j);
    if (seen || (blind && c->uniform_rows))
      finite &= project_row(r, ROLE_VALUE, c->values + row * s->value_size, j);
  }
  return finite;
}

/* --- one query after the other --- */

/* The sum of the values by their weights. On two levels it is the sum of the segments' values: a
 * weight is then the segment's times the key's within it. */
static void sum_values(struct ref_item *r, size_t head) {
  const size_t size = r->s->value_head_size;
  const double factor = r->c->head_mask ? r->c->head_mask[head] : 1;
  double *context = r->context + head * size;
  if (head_is_masked(r, head)) return; /* the context stays +0, whatever the values */
  for (size_t j = 0; j < r->item->k; j++) {
    if (r->weights[j] == 0) continue; /* a hidden key is not touched */
    const double *v = r->rows[ROLE_VALUE] + (j * r->s->kv_heads + ref_key_head(r, head)) * size;
    for (size_t x = 0; x < size; x++) context[x] += r->weights[j] * v[x];
  }
  for (size_t x = 0; x < size; x++) context[x] *= factor;
}

/* Query row `i` in one head, written to the item's part of the answer. */
static bool attend_row(struct ref_item *r, const struct ref_answer *answer, size_t head, size_t i) {
  const struct item *item = r->item;
  const size_t row = head * item->q + i;
  if (!ref_weigh(r, head, i)) return false;
  sum_values(r, head);
  if (answer->weights)
    memcpy(answer->weights + row * item->k, r->weights, item->k * sizeof *r->weights);
  if (answer->segment_weights)
    memcpy(answer->segment_weights + row * item->segments, r->segment_weights,
           item->segments * sizeof *r->segment_weights);
  if (answer->pointers) answer->pointers[row] = r->pointer;
  return true;
}

static bool project_output(const struct ref_item *r, double *y) {
  const struct layer_matrix *m = &r->matrix[ROLE_OUTPUT];
  const size_t wide = r->s->heads * r->s->value_head_size;
  if (m->weight) return ref_product(m->weight, m->bias, r->s->output_size, wide, r->context, y);
  bool finite = true;
  for (size_t x = 0; x < wide; x++) finite = finite && ref_is_float(y[x] = r->context[x]);
  return finite;
}

static bool attend_item(struct ref_item *r, const struct ref_answer *answer) {
  const struct layer_shape *s = r->s;
  const size_t wide = s->heads * s->value_head_size;
  if (!project_item(r)) return false;
  for (size_t i = 0; i < r->item->q; i++) {
    memset(r->context, 0, wide * sizeof *r->context);
    for (size_t head = 0; head < s->heads; head++)
      if (head_counts(r, head) && !attend_row(r, answer, head, i)) return false;
    if (answer->contexts) memcpy(answer->contexts + i * wide, r->context, wide * sizeof(double));
    if (!project_output(r, answer->outputs + i * s->output_size)) return false;
  }
  return true;
}

/* --- one item after the other --- */

static double *place_numbers(struct arena *a, size_t count, struct error *e) {
  return arena_alloc(a, count, sizeof(double), e);
}

static enum status place_buffers(struct ref_item *r, struct arena *a, struct error *e) {
  const struct layer_shape *s = r->s;
  const size_t q = r->item->q, k = r->item->k, side = ref_side_size(s);
  for (enum role role = ROLE_QUERY; role <= ROLE_VALUE; role++) {
    const struct ref_role of = role_of(s, role);
    const size_t rows = role == ROLE_QUERY ? q : k;
    r->rows[role] = place_numbers(a, rows * of.heads * of.size, e);
    if (role != ROLE_VALUE) r->sides[role] = place_numbers(a, rows * of.heads * side, e);
  }
  r->wide = place_numbers(a, size_max(s->query_size, size_max(s->key_size, s->value_size)), e);
  r->scores = place_numbers(a, k, e);
  r->weights = place_numbers(a, k, e);
  r->segment_scores = place_numbers(a, r->item->segments, e);
  r->segment_weights = place_numbers(a, r->item->segments, e);
  r->segment_key = place_numbers(a, s->key_head_size, e);
  r->segment_side = place_numbers(a, side, e);
  r->context = place_numbers(a, s->heads * s->value_head_size, e);
  return e->status;
}

/* Nothing is known of an item yet. */
static void clear_answer(const struct ref_item *r, const struct ref_answer *answer) {
  const size_t rows = r->s->heads * r->item->q;
  if (answer->weights) memset(answer->weights, 0, rows * r->item->k * sizeof *answer->weights);
  if (answer->segment_weights)
    memset(answer->segment_weights, 0, rows * r->item->segments * sizeof *answer->segment_weights);
  for (size_t i = 0; answer->pointers && i < rows; i++) answer->pointers[i] = -1;
}

/* Moves to where the answer of the next item lies. */
static void move_to_next_item(const struct ref_item *r, struct ref_answer *answer) {
  const size_t rows = r->s->heads * r->item->q;
  answer->outputs += r->item->q * r->s->output_size;
  if (answer->weights) answer->weights += rows * r->item->k;
  if (answer->segment_weights) answer->segment_weights += rows * r->item->segments;
  if (answer->pointers) answer->pointers += rows;
  if (answer->contexts) answer->contexts += rows * r->s->value_head_size;
  if (answer->chosen) answer->chosen += rows;
}

enum status attention_ref(const struct layer_shape *s, const struct layer_matrix matrix[ROLE_COUNT],
                          const struct call *c, const struct ref_answer *answer, struct error *e) {
  struct ref_answer at = *answer;
  for (size_t i = 0; i < c->items && e->status == STATUS_OK; i++) {
    struct ref_item r = {
        .s = s, .matrix = matrix, .c = c, .item = &c->item[i], .number = i, .chosen = at.chosen};
    struct arena room;
    arena_init(&room, NULL);
    clear_answer(&r, &at);
    if (place_buffers(&r, &room, e) == STATUS_OK && !attend_item(&r, &at))
      error_set(e, STATUS_NOT_FINITE, "item %zu is beyond float32", i);
    move_to_next_item(&r, &at);
    arena_free(&room);
  }
  return e->status;
}
