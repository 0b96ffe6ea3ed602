/* layer_parts: what the files of the layer share. Private to them.
 *
 * layer.c makes layers, layer_prepare.c prepares calls, layer_program.c is the program: it knows
 * the order of the work, which layer_rows.c, layer_attend.c and layer_measure.c do.
 * layer_measure_cut.c cuts the measuring. layer_fault.c keeps what went wrong. layer_rotary.c and
 * layer_relative.c know what positions do. */
#ifndef CORE_LAYER_PARTS_H
#define CORE_LAYER_PARTS_H

#include "core/attention/layer.h"
#include "core/attention/needed.h"
#include "core/attention/sight.h"
#include "core/kernel/kernel.h"

enum layer_phase {
  PHASE_LOOK,    /* which keys each query may see */
  PHASE_PROJECT, /* queries, keys and values, in the heads that are needed */
  PHASE_ATTEND,
  PHASE_OUTPUT,
  PHASE_MEASURE, /* the heads, tile by tile, where that is wanted */
  PHASE_SUM,     /* the measures of all tiles */
  PHASE_COUNT
};

enum { TILE_ROWS_MAX = 128 };

struct layer {
  /* Of the layer's calls: a copy of layer_program, so that its address tells calls of this layer
   * from those of others. The first member: the program finds its layer by it. */
  struct program program;
  struct layer_shape shape;
  const struct kernel *kernel;
  struct gemm *matrix[ROLE_PROJECTIONS]; /* NULL: the role is not projected */
  /* What scores compare is made of the heads of queries and keys by these, shared by the heads:
   * W_q and W_k of the additive score, W of the bilinear one; NULL: the heads as they are. */
  struct gemm *compare[ROLE_KEY + 1];
  size_t compare_size;       /* of what is compared */
  float *vector;             /* [compare_size] of the additive score, or NULL */
  double score_bound;        /* no additive score exceeds it */
  double *rotary;            /* [head size / 2] by how much a position turns each pair, or NULL */
  struct relative *relative; /* of relative positions, or NULL */
  size_t tile_rows[ROLE_PROJECTIONS];      /* rows of a unit of work */
  size_t queries;                          /* query rows of a unit of attention */
  bool rows_independent[ROLE_PROJECTIONS]; /* may a tile take rows of several units? */
};

extern const struct program layer_program; /* layer_program.c */

/* What the projections were found to hold, per item: bits of the greatest magnitude. */
struct item_tops {
  _Atomic uint32_t role[3];
  float bias; /* of the bias itself */
};

/* What is kept for measuring, where that is wanted; see layer_measure.h. */
struct measuring {
  float *top, *factor, *greatest;      /* per item at H q_row: [H, q], see struct kernel_tile */
  float *segment_top, *segment_factor; /* the same; with segments */
  size_t pieces, group, groups;        /* pieces of the call; of a group; groups */
  size_t rounds;                       /* the turns of the longest group */
  size_t *piece_at;                    /* [items + 1] how many pieces lie before an item's first */
  size_t *turn_at;                     /* [pieces + 1] how many turns lie before a piece's first */
  double *sums;                        /* [groups] of struct measure_sums */
  double *gradient;                    /* [pieces, H] sums of <contribution, gradient>, or NULL */
};

/* Projected rows lie head by head: item i's head h is [rows, head size], row after row. Where each
 * lies, and until when it is whole: layer_prepare.c, place_rows. */
struct call_space {
  struct sight sight;
  struct item_tops *tops;                 /* [items] */
  struct needed needed[ROLE_PROJECTIONS]; /* of queries [H], of keys and values [G]; of the output:
                                             the heads whose context it takes [H] */
  float *projected[3];                    /* [H, q, compare size], [G, k, compare size] and
                                             [G, k, d_v] of each item */
  float *context;                         /* [q_rows, H d_v] */
  float *relative;                        /* see layer_relative.c; or NULL */
  struct measuring measuring;
};

/* One tile of work, as the walk hands it out. */
struct unit {
  struct call *call;
  enum layer_phase phase;
  unsigned role, last_role; /* of rows: usually one; all three of self-attention */
  size_t item;
  size_t head;  /* PHASE_ATTEND: first head */
  size_t heads; /* PHASE_ATTEND: how many; all where the weights are averaged */
  size_t row, rows;
  size_t turn; /* PHASE_MEASURE: which, of the group `row` */
  double work; /* floating-point operations, about */
};

/* The unit at the cursor, which moves on; false at the end of the phase. */
bool unit_next(const struct layer *l, struct cursor *at, struct unit *u);

/* Is there nothing left to do for this call in this phase? */
bool call_is_over(const struct call *c, enum layer_phase phase);

/* --- sizes --- */

static inline size_t role_in(const struct layer *l, unsigned role) {
  const struct layer_shape *s = &l->shape;
  const size_t in[ROLE_PROJECTIONS] = {s->query_size, s->key_size, s->value_size,
                                       s->heads * s->value_head_size};
  return in[role];
}

static inline size_t role_heads(const struct layer *l, unsigned role) {
  return role == ROLE_QUERY ? l->shape.heads : role == ROLE_OUTPUT ? 1 : l->shape.kv_heads;
}

/* Of a head as it is projected. */
static inline size_t role_head_size(const struct layer *l, unsigned role) {
  const struct layer_shape *s = &l->shape;
  const size_t size[ROLE_PROJECTIONS] = {s->head_size, s->key_head_size, s->value_head_size,
                                         s->output_size};
  return size[role];
}

/* Of a head as it is kept: queries and keys as they are compared. */
static inline size_t role_kept_size(const struct layer *l, unsigned role) {
  return role <= ROLE_KEY ? l->compare_size : role_head_size(l, role);
}

/* The leading rows of an item that take part in a role. */
static inline size_t role_rows(const struct call *c, size_t item, unsigned role) {
  const struct sight_item *s = &c->space->sight.item[item];
  if (role == ROLE_QUERY || role == ROLE_OUTPUT) return c->item[item].q;
  if (role == ROLE_VALUE && s->some_blind && c->uniform_rows) return c->item[item].k;
  return s->key_end;
}

/* --- the work, in floating-point operations, about --- */

/* Of one query in one head, over `keys` keys and the item's segments: each of these takes its time,
 * empty or not. */
double query_work(const struct layer *l, const struct call *c, const struct item *item,
                  size_t keys);

/* Of finding out what an item's queries may see: bound by memory, so that a number read is as much
 * as tens of operations. */
double look_work(const struct layer *l, const struct call *c, const struct item *item);

/* Of `rows` rows of a role, in the heads that the call needs. */
double rows_work(const struct layer *l, const struct call *c, unsigned role, size_t rows);

/* --- positions --- */

/* By how much a position turns each pair of a head; layer_free frees it. */
void rotary_make(struct layer *l, struct error *e);

/* The cosines, then the sines, of what position `p` turns the pairs by: [head size]. */
void rotary_angles(const struct layer *l, int64_t p, float *angle);

/* The table of relative positions, and what it adds to the scores of a call: memory of its own for
 * each item, in the heads that the call needs; filled in PHASE_LOOK. */
void relative_make(struct layer *l, const float *table, struct error *e);
void relative_free(struct relative *r);
double relative_bound(const struct layer *l); /* the greatest magnitude of what is added */
enum status relative_prepare(const struct layer *l, struct call *c, struct arena *a,
                             struct error *e);
double relative_work(const struct layer *l, const struct call *c, const struct item *item);
void relative_fill(const struct layer *l, const struct call *c, size_t item);

/* From query row `row` of an item on, in a needed head: as a kernel_tile has it. */
const float *relative_row(const struct call *c, size_t item, size_t head, size_t row);

/* --- attention --- */

void compute_look(const struct layer *l, const struct unit *u);
void compute_attention(const struct layer *l, const struct unit *u, float *scratch);

/* The tile of a unit's query rows, for attention and measures: first without the inputs of a head,
 * which tile_set_inputs adds. */
struct kernel_tile tile_of(const struct layer *l, const struct unit *u);
void tile_set_inputs(struct kernel_tile *t, const struct layer *l, const struct unit *u,
                     size_t head);

/* --- measures --- */

/* A call without want_measures has no memory, no units and no work for them. */
enum status measure_prepare(const struct layer *l, struct call *c, struct arena *a,
                            struct error *e);
double measure_work(const struct layer *l, const struct call *c); /* as if all pairs were seen */
size_t measure_rounds(const struct call *c);                      /* of PHASE_MEASURE */
size_t measure_scratch_floats(const struct layer *l);
bool measure_unit(const struct layer *l, struct cursor *at, struct unit *u);     /* PHASE_MEASURE */
bool measure_sum_unit(const struct layer *l, struct cursor *at, struct unit *u); /* PHASE_SUM */
void compute_measure(const struct layer *l, const struct unit *u, void *scratch);
void compute_measure_sum(const struct layer *l, const struct unit *u);

/* --- faults --- */

/* The first place of a call that was not finite: by stage, then by row. */
enum fault_stage {
  FAULT_QUERY = 1,
  FAULT_KEY,
  FAULT_VALUE,
  FAULT_SCORE,
  FAULT_OUTPUT,
  FAULT_MEASURE
};

/* Notes a place that is not finite; the first one is kept, whatever the order of the notes. */
void fault_note(struct call *c, enum fault_stage stage, size_t row);
enum status fault_describe(const struct run *run, struct error *e);

#endif
