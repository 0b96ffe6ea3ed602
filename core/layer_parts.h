/* layer_parts: what the files of the layer share and nobody else sees.
 *
 * layer.c makes layers and prepares calls, layer_walk.c knows the order of the work, layer_run.c
 * does it; layer_measure.c does all three for the measures of the heads. */
#ifndef CORE_LAYER_PARTS_H
#define CORE_LAYER_PARTS_H

#include "core/kernel.h"
#include "core/layer.h"
#include "core/visible.h"

enum { TILE_ROWS_MAX = 128 };

struct layer {
  struct layer_shape shape;
  const struct kernel *kernel;
  struct gemm *matrix[ROLE_PROJECTIONS];   /* NULL: the role is not projected */
  size_t tile_rows[ROLE_PROJECTIONS];      /* rows of a unit of work */
  size_t queries;                          /* query rows of a unit of attention */
  bool rows_independent[ROLE_PROJECTIONS]; /* may a tile take rows of several units? */
};

/* What the projections were found to hold, per item: bits of the greatest magnitude. */
struct item_tops {
  _Atomic uint32_t role[3];
  float bias; /* of the bias itself */
};

/* What is kept for measuring, where that is wanted. The query rows of every item are cut into
 * pieces; a unit is so many pieces one after the other, whichever items they are of, and writes
 * sums of its own: added in order they are the same whoever ran the units. */
struct measuring {
  float *top, *factor; /* per item at H q_row: [H, q], see struct kernel_tile */
  size_t *piece_at;    /* [items + 1] how many pieces lie before an item's first */
  size_t group;        /* pieces of a unit */
  size_t units;
  double *sums;     /* [units] runs of doubles, see layer_measure.c */
  double *gradient; /* [pieces, H] sums of <contribution, gradient>, or NULL */
};

/* Projected rows lie head by head: item i's head h is [rows, head size], row after row. */
struct call_space {
  struct visible visible;
  struct item_tops *tops; /* [items] */
  float *projected[3];    /* query [H, q, d], key [G, k, d], value [G, k, d_v] of each item */
  float *context;         /* [q_rows, H d_v] */
  struct measuring measuring;
};

/* One tile of work, as the walk hands it out. */
struct unit {
  struct call *call;
  enum phase phase;
  unsigned role;
  size_t item;
  size_t head;  /* PHASE_ATTEND: first head */
  size_t heads; /* PHASE_ATTEND: one, or all where the weights are averaged */
  size_t row, rows;
  size_t pieces; /* PHASE_MEASURE: how many, from `item` and `row` on */
  double work;   /* floating-point operations, about */
};

/* The unit at the cursor, which moves on; false at the end of the phase. */
bool unit_next(const struct layer *l, struct cursor *at, struct unit *u);

/* Is there nothing to do any more for this call in this phase? */
bool call_is_over(const struct call *c, enum phase phase);

static inline size_t role_in(const struct layer *l, unsigned role) {
  const struct layer_shape *s = &l->shape;
  const size_t in[ROLE_PROJECTIONS] = {s->query_size, s->key_size, s->value_size,
                                       s->heads * s->value_head_size};
  return in[role];
}

static inline size_t role_heads(const struct layer *l, unsigned role) {
  return role == ROLE_QUERY ? l->shape.heads : role == ROLE_OUTPUT ? 1 : l->shape.kv_heads;
}

static inline size_t role_head_size(const struct layer *l, unsigned role) {
  return role == ROLE_OUTPUT  ? l->shape.output_size
         : role == ROLE_VALUE ? l->shape.value_head_size
                              : l->shape.head_size;
}

/* Rows of an item that a role has to do with. */
static inline size_t role_rows(const struct call *c, size_t item, unsigned role) {
  const struct visible_item *v = &c->space->visible.item[item];
  if (role == ROLE_QUERY || role == ROLE_OUTPUT) return c->item[item].q;
  if (role == ROLE_VALUE && v->some_blind && c->uniform_rows) return c->item[item].k;
  return v->key_end;
}

/* Operations for one query and one key in one head: two products, and the softmax, which weighs as
 * much as some forty operations whatever the head size. */
static inline double pair_work(const struct layer *l) {
  return 2.0 * (double)(l->shape.head_size + l->shape.value_head_size) + 40.0;
}

/* A fault's first place: stage above row; the least one is told. */
enum fault_stage {
  FAULT_QUERY = 1,
  FAULT_KEY,
  FAULT_VALUE,
  FAULT_SCORE,
  FAULT_OUTPUT,
  FAULT_MEASURE
};

void fault_at(struct call *c, enum fault_stage stage, size_t row);

/* The tile of an item's query rows, all but one head's own places; and these. */
struct kernel_tile tile_of(const struct layer *l, const struct unit *u);
void tile_set_head(struct kernel_tile *t, const struct layer *l, const struct unit *u, size_t head);

/* Measuring, by layer_measure.c. Without want_measures it has no memory, no units and no work. */
enum status measure_prepare(const struct layer *l, struct call *c, struct arena *a,
                            struct error *e);
double measure_work(const struct layer *l, const struct call *c); /* as if all pairs were seen */
size_t measure_scratch_floats(const struct layer *l);
bool measure_unit(const struct layer *l, struct cursor *at, struct unit *u);     /* PHASE_MEASURE */
bool measure_sum_unit(const struct layer *l, struct cursor *at, struct unit *u); /* PHASE_SUM */
void run_measure(const struct layer *l, const struct unit *u, void *scratch);
void run_measure_sum(const struct layer *l, const struct unit *u);

#endif
