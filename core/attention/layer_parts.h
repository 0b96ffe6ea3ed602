/* layer_parts: what the files of the layer share. Private to them.
 *
 * layer.c makes layers, layer_prepare.c prepares calls, layer_program.c makes the lists of steps,
 * which layer_look.c, layer_rows.c, layer_attend.c, layer_trace.c and layer_measure.c compute;
 * layer_rows_cut.c and layer_measure_cut.c cut the work of two of them. layer_kept.c knows where
 * keys and values lie, layer_rotary.c and layer_relative.c what positions do, layer_fault.c what
 * the places of faults say. */
#ifndef CORE_LAYER_PARTS_H
#define CORE_LAYER_PARTS_H

#include "core/attention/layer_program.h"
#include "core/attention/needed.h"
#include "core/attention/sight.h"
#include "core/kernel/kernel.h"

enum { TILE_ROWS_MAX = 128 };

struct layer {
  struct layer_shape shape;
  const struct kernel *kernel;
  struct gemm *matrix[ROLE_PROJECTIONS]; /* NULL: the role is not projected */
  /* What scores compare is made of the heads of queries and keys by these, shared by the heads:
   * W_q and W_k of the additive score, W of the bilinear one; NULL: the heads as they are. */
  struct gemm *compare[ROLE_KEY + 1];
  size_t compare_size;       /* of what is compared */
  float *vector;             /* [compare_size] of the additive score, or NULL */
  double score_bound;        /* no additive score exceeds it */
  float *norm[ROLE_KEY + 1]; /* [head size] factors of the norm of a head, or NULL */
  double *rotary;            /* [head size / 2] by how much a position turns each pair, or NULL */
  struct relative *relative; /* of relative positions, or NULL */
  size_t tile_rows[ROLE_PROJECTIONS];      /* rows of a unit of work */
  size_t queries;                          /* query rows of a unit of attention */
  bool rows_independent[ROLE_PROJECTIONS]; /* may a tile take rows of several units? */

  struct layer_step step[STEP_COUNT];
  const struct step *list[STEP_COUNT];
  struct program plain, measured; /* of runs of one call, which does not measure or does */
};

/* Columns of a role's matrix, where threads may share them out; else 0. */
size_t rows_columns(const struct layer *l, unsigned role);
double rows_side_by_side(const struct layer *l, unsigned role);

/* Makes the steps and the programs of a layer that is ready otherwise. */
void program_make(struct layer *l);

/* Of keys and values that are read where they came in, whose magnitudes are not known. No magnitude
 * has these bits. */
#define TOP_IN_PLACE UINT32_MAX

/* What an item was found to hold: bits of the greatest magnitude of its projected rows, or
 * TOP_IN_PLACE. */
struct item_tops {
  _Atomic uint32_t role[3];
};

/* What is kept for measuring, where that is wanted; see layer_measure.h. */
struct measuring {
  float *top, *factor, *greatest;      /* per item at H q_row: [H, q], see struct kernel_tile */
  float *segment_top, *segment_factor; /* the same; with segments */
  size_t pieces, group, groups;        /* pieces of the call; of a group; groups */
  size_t passes;                       /* the turns of the longest group */
  size_t *piece_at;                    /* [items + 1] how many pieces lie before an item's first */
  size_t *turn_at;                     /* [pieces + 1] how many turns lie before a piece's first */
  double *sums;                        /* [groups] of struct measure_sums */
  double *gradient;                    /* [pieces, H] sums of <contribution, gradient>, or NULL */
};

/* Projected rows lie head by head: item i's head h is [rows, head size], row after row. Where each
 * lies, and until when it is whole: layer_prepare.c, place_rows. */
struct call_space {
  struct item_tops *tops;                 /* [items] */
  struct needed needed[ROLE_PROJECTIONS]; /* of queries [H], of keys and values [G]; of the output:
                                             the heads whose context it takes [H] */
  float *projected[3];                    /* of each item [H, q, compare size] of queries, and
                                             [G, k, compare size] and [G, k, d_v] of keys and
                                             values, where the caller does not keep these */
  bool in_place;                          /* may items read their inputs in place? */
  bool of_itself; /* queries are keys and values, too: rows go through all three matrices while
                     they are at hand */
  size_t bunch;   /* so many items make a unit, since all are small; 1: an item, or a part of it */
  double look_work, attend_work; /* of an item, the mean of all */
  float *context;                /* [q_rows, H d_v] */
  float *relative;               /* see layer_relative.c; or NULL */
  struct measuring measuring;
};

/* --- steps --- */

_Static_assert(offsetof(struct layer_step, step) == 0, "a step is the first member of its layer's");
static inline const struct layer_step *layer_step_of(const struct step *s) {
  return (const struct layer_step *)s;
}

/* The call of a step's layer in a run of its program. */
static inline struct call *call_of(const struct layer_step *s, struct run *run) {
  return (struct call *)((char *)run + s->at.call_at);
}
static inline const struct call *call_of_const(const struct layer_step *s, const struct run *run) {
  return (const struct call *)((const char *)run + s->at.call_at);
}
static inline struct run *run_of(const struct layer_step *s, struct call *c) {
  return (struct run *)((char *)c - s->at.call_at);
}

extern const struct step step_look, step_rows, step_attend, step_trace, step_measure, step_sum;

/* What a place that a step has noted says. Of rows it is a row, counted over all items; of measures
 * and of a trace nothing. */
enum status fault_of_row(const struct step *step, const struct run *run, uint64_t row,
                         struct error *e);
enum status fault_of_trace(const struct step *step, const struct run *run, uint64_t place,
                           struct error *e);
enum status fault_of_measures(const struct step *step, const struct run *run, uint64_t place,
                              struct error *e);

/* Of attention a place is a row of keys or values that were read in place, or the query row of a
 * score. */
enum { ATTEND_SCORE = ROLE_OUTPUT };
uint64_t attend_fault(unsigned role, size_t row);
enum status fault_of_attend(const struct step *step, const struct run *run, uint64_t place,
                            struct error *e);

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

/* An item's keys or values in a call whose caller keeps them. */
static inline struct kept *role_kept(const struct call *c, size_t item, unsigned role) {
  struct kept_pair *pair = &c->kept[item];
  return role == ROLE_KEY ? &pair->key : &pair->value;
}

/* The bits of the greatest magnitude of an item's rows: kept with them where the caller keeps them.
 */
static inline _Atomic uint32_t *role_top(const struct call *c, size_t item, unsigned role) {
  if (role != ROLE_QUERY && c->kept) {
    const struct kept_lineage *lineage = role_kept(c, item, role)->lineage;
    return &role_kept(c, lineage ? item - lineage->own : item, role)->top;
  }
  return &c->space->tops[item].role[role];
}

static inline bool item_is_in_place(const struct call *c, size_t item) {
  const _Atomic uint32_t *top = &c->space->tops[item].role[ROLE_KEY];
  return atomic_load_explicit(top, memory_order_relaxed) == TOP_IN_PLACE;
}

/* The leading rows of an item that take part in a role. */
static inline size_t role_rows(const struct call *c, size_t item, unsigned role) {
  const struct geometry *g = c->geometry;
  const struct sight_item *s = &g->sight.item[item];
  if (role == ROLE_QUERY || role == ROLE_OUTPUT) return g->item[item].q;
  if (c->kept || (role == ROLE_VALUE && s->some_blind && c->uniform_rows)) return g->item[item].k;
  return s->key_end;
}

/* Of these, so many need not be made: the caller has kept them, or they are read in place. */
static inline size_t role_rows_there(const struct call *c, size_t item, unsigned role) {
  if (role != ROLE_KEY && role != ROLE_VALUE) return 0;
  if (c->kept) return role_kept(c, item, role)->count;
  return item_is_in_place(c, item) ? c->geometry->item[item].k : 0;
}

/* --- memory --- */

/* Floats in memory that is spare, if there is enough of it, or in the arena. */
float *place_in(struct spare *spare, size_t count, struct arena *a, struct error *e);

/* --- keys and values --- */

/* Where those of an item lie. */
struct kept_rows kept_rows_of(const struct layer *l, const struct call *c, size_t item,
                              unsigned role);

/* May inputs be read in place: as far as the call tells, and of an item, once it has been looked
 * at? Memory for copies is there in any case. */
bool may_be_in_place(const struct layer *l, const struct call *c);
bool could_be_in_place(const struct call *c, size_t item);

/* Notes the first row of a unit's item that was read in place and is not finite; false: none. */
bool note_bad_inputs(const struct layer_step *s, const struct unit *u);

/* --- the work, in floating-point operations, about --- */

/* Of one query in one head, over `keys` keys and the item's segments: each of these takes its time,
 * empty or not. */
double query_work(const struct layer *l, const struct call *c, const struct item *item,
                  size_t keys);

/* Of `rows` rows of a role, in the heads that the call needs. */
double rows_work(const struct layer *l, const struct call *c, unsigned role, size_t rows);

/* --- positions --- */

/* By how much a position turns each pair of a head; layer_free frees it. */
void rotary_make(struct layer *l, struct error *e);

/* The cosines, then the sines, of what position `p` turns the pairs by: [head size]. */
void rotary_angles(const struct layer *l, int64_t p, float *angle);

/* The table of relative positions, and what it adds to the scores of a call: memory of its own for
 * each item, in the heads that the call needs; filled in STEP_LOOK. */
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

/* Where the keys and values of a unit's item lie, in all heads. */
struct tile_kept {
  struct kept_rows keys, values;
  const struct kept_pair *shared; /* with other items, or NULL */
  struct kernel_blocks blocks;    /* of one head of these, ... */
  float *gathered;                /* ... whose last rows go here: [lineage_floats] */
};
struct tile_kept tile_kept_of(const struct layer_step *s, const struct unit *u, float *gathered);

/* --- keys and values that items share: layer_lineage.c --- */

size_t lineage_floats(const struct layer *l);

/* Sets what a tile reads of them, in one head: the rows behind the whole blocks are laid end to
 * end. */
void lineage_set_inputs(struct kernel_tile *t, struct tile_kept *kept, size_t head);

/* The tile of a unit's query rows, for attention and measures: first without the inputs of a head,
 * which tile_set_inputs adds. */
void tile_begin(struct kernel_tile *t, const struct layer_step *s, const struct unit *u);
void tile_set_inputs(struct kernel_tile *t, const struct layer_step *s, const struct unit *u,
                     struct tile_kept *kept, size_t head);

/* One number in [0, 1) for each query of the tile, where keys are drawn. */
void tile_draw_chances(const struct call *c, const struct unit *u, size_t head, float *chance);

/* Gives every one of the item's keys alike to the queries of a tile that see nothing, where the
 * call wants that. `scratch` is that of attention. */
void tile_fill_uniform(const struct kernel_tile *t, const struct layer_step *s,
                       const struct unit *u, void *scratch);

/* --- a trace --- */

/* A call without a trace has no memory, no unit and no work for it. */
enum status trace_prepare(const struct layer *l, const struct call *c, struct arena *a,
                          struct error *e);
double trace_work(const struct layer *l, const struct call *c);

/* --- measures --- */

/* A call without want_measures has no memory, no units and no work for them. */
enum status measure_prepare(const struct layer *l, struct call *c, struct arena *a,
                            struct error *e);
double measure_work(const struct layer *l, const struct call *c); /* as if all pairs were seen */
size_t measure_scratch_floats(const struct layer *l);
#endif
