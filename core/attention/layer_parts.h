/* layer_parts: what the files of the layer share. Private to them.
 *
 * layer.c makes layers and the lists of their steps, layer_prepare.c prepares calls, layer_work.c
 * estimates their work. layer_look.c, layer_rows.c, layer_attend.c, layer_trace.c and
 * layer_measure.c compute the steps. layer_kept.c knows where keys and values lie, layer_rotary.c,
 * layer_relative.c and layer_disentangled.c compute positions, layer_fault.c describes faults. */
#ifndef CORE_LAYER_PARTS_H
#define CORE_LAYER_PARTS_H

#include "core/attention/layer_program.h"
#include "core/attention/sight.h"
#include "core/base/size.h"
#include "core/kernel/gathered.h"

struct layer {
  struct layer_shape shape;
  const struct kernel *kernel;
  struct gemm *matrix[ROLE_PROJECTIONS]; /* NULL: the role is not projected */
  /* Matrices from the heads of queries and keys to the operands of a score, shared by the heads:
   * W_q and W_k of the additive score, W of the bilinear one; NULL: the heads themselves. */
  struct gemm *compare[ROLE_KEY + 1];
  size_t compare_size;                /* numbers of an operand of a score */
  float *vector;                      /* [compare_size] of the additive score, or NULL */
  double score_bound;                 /* greatest magnitude of an additive score */
  float *norm[ROLE_KEY + 1];          /* [head size] factors of the norm of a head, or NULL */
  double *rotary;                     /* [head size / 2] angle per position of each pair, or NULL */
  struct relative *relative;          /* relative positions, or NULL */
  struct disentangled *disentangled;  /* disentangled positions, or NULL */
  size_t tile_rows[ROLE_PROJECTIONS]; /* rows of a unit of a projection */
  size_t queries;                     /* query rows of a unit of attention */
  bool rows_independent[ROLE_PROJECTIONS]; /* whether a tile may have rows of several units */

  struct layer_step step[STEP_COUNT];
  const struct step *list[STEP_COUNT];
  struct program plain, measured; /* of runs of one call, without and with measures */
};

/* The columns of a role's matrix if threads may share them out; else 0. */
size_t rows_columns(const struct layer *l, unsigned role);
/* Operations per row in all roles whose columns are shared out together with this one's. */
double rows_side_by_side(const struct layer *l, unsigned role);

/* Marks keys and values that are read in place, whose magnitudes are unknown. No magnitude has
 * these bits. */
#define TOP_IN_PLACE UINT32_MAX

/* Bits of the greatest magnitude of an item's projected rows, or TOP_IN_PLACE. */
struct item_tops {
  _Atomic uint32_t role[3];
};

/* Intermediate results of measures; see layer_measure.c. */
struct measuring {
  float *top, *factor, *greatest;      /* per item at H q_row: [H, q], see struct kernel_tile */
  float *segment_top, *segment_factor; /* the same, with segments */
  size_t pieces, group, groups;        /* pieces of the call, pieces of a group, groups */
  size_t passes;                       /* turns of the longest group */
  size_t *piece_at;                    /* [items + 1] how many pieces precede an item's first */
  size_t *turn_at;                     /* [pieces + 1] how many turns precede a piece's first */
  double *sums;                        /* [groups] of struct measure_sums */
  double *gradient;                    /* [pieces, H] sums of <contribution, gradient>, or NULL */
};

/* Projected rows lie head by head: item i's head h is [rows, head size], row after row. place_rows
 * in layer_prepare.c says where each array lies, and how long it is valid. */
struct call_space {
  struct item_tops *tops;                 /* [items] */
  struct needed needed[ROLE_PROJECTIONS]; /* of queries [H], of keys and values [G]; of the output:
                                             heads whose context it sums [H] */
  float *projected[3];                    /* per item [H, q, compare size] of queries; and without
                                             a KV cache [G, k, compare size] and [G, k, d_v] of
                                             keys and values */
  bool in_place;                          /* whether items may read their inputs in place */
  bool of_itself; /* whether queries are keys and values, too: rows go through all three matrices
                     while they are in cache */
  size_t bunch;   /* how many items are a unit, if all are small; 1: an item, or a part of it */
  double look_work, attend_work; /* per item, the mean of all */
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

/* Faults of rows: the place is a row, counted over all items. */
enum status fault_of_row(const struct step *step, const struct run *run, uint64_t row,
                         struct error *e);

/* Faults of attention: the place is a row of keys or values that was read in place, or with
 * ATTEND_SCORE the query row of a score. */
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

/* Numbers of a projected head. */
static inline size_t role_head_size(const struct layer *l, unsigned role) {
  const struct layer_shape *s = &l->shape;
  const size_t size[ROLE_PROJECTIONS] = {s->head_size, s->key_head_size, s->value_head_size,
                                         s->output_size};
  return size[role];
}

/* Numbers of a head as attention reads it: queries and keys are operands of scores. */
static inline size_t role_kept_size(const struct layer *l, unsigned role) {
  return role <= ROLE_KEY ? l->compare_size : role_head_size(l, role);
}

/* An item's keys or values in the KV cache of a call that has one. */
static inline struct kept *role_kept(const struct call *c, size_t item, unsigned role) {
  struct kept_pair *pair = &c->kept[item];
  return role == ROLE_KEY ? &pair->key : &pair->value;
}

/* Bits of the greatest magnitude of an item's rows; in the KV cache if these rows are. */
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

/* How many leading rows of an item take part in a role. */
static inline size_t role_rows(const struct call *c, size_t item, unsigned role) {
  const struct geometry *g = c->geometry;
  const struct sight_item *s = &g->sight.item[item];
  if (role == ROLE_QUERY || role == ROLE_OUTPUT) return g->item[item].q;
  if (c->kept || (role == ROLE_VALUE && s->some_blind && c->uniform_rows)) return g->item[item].k;
  return s->key_end;
}

/* How many of these need not be computed: they are in the KV cache, or read in place. */
static inline size_t role_rows_there(const struct call *c, size_t item, unsigned role) {
  if (role != ROLE_KEY && role != ROLE_VALUE) return 0;
  if (c->kept) return role_kept(c, item, role)->count;
  return item_is_in_place(c, item) ? c->geometry->item[item].k : 0;
}

/* --- keys and values: layer_kept.c --- */

/* The place of an item's keys or values. */
struct kept_rows kept_rows_of(const struct layer *l, const struct call *c, size_t item,
                              unsigned role);

/* Whether keys and values may be read in place in the inputs: as far as the call tells, and for an
 * item, once it has been looked at. Memory for copies is reserved in any case. */
bool may_be_in_place(const struct layer *l, const struct call *c);
bool could_be_in_place(const struct call *c, size_t item);

/* Records the first row of a unit's item that was read in place and is not finite; false: none. */
bool record_bad_inputs(const struct layer_step *s, const struct unit *u);

/* --- work, in floating-point operations --- */

/* One query in one head, over `keys` keys and the item's segments; an empty segment counts, too. */
double query_work(const struct layer *l, const struct call *c, const struct item *item,
                  size_t keys);

/* `rows` rows of a role, in the heads that the call needs. */
double rows_work(const struct layer *l, const struct call *c, unsigned role, size_t rows);

size_t strip_floats(const struct layer *l, unsigned role); /* scratch of a projection */

/* --- positions --- */

/* Sets l->rotary; e->status on failure. layer_free frees it. */
void rotary_make(struct layer *l, struct error *e);

/* Numbers of a row of frequencies: a kernel reads whole vectors of them. */
static inline size_t rotary_pairs(const struct layer *l) {
  return size_round_up(l->shape.head_size / 2, KERNEL_LANES_MAX) + 1;
}

/* The length that the frequencies of an item with so many keys depend on; 0: they are those of all
 * items. */
size_t rotary_length(const struct layer *l, size_t keys);

/* The frequencies of that length, [rotary_pairs]: the layer's, or made in `room`. */
const double *rotary_frequencies(const struct layer *l, size_t length, double *room);

/* Computes the cosines, then the sines, of a position's angles: [head size]. */
void rotary_angles(const struct layer *l, const double *frequencies, int64_t position,
                   float *angle);

/* Relative positions: the layer's table or slopes, and for each call a line of numbers per item, in
 * the heads that the call needs, which STEP_LOOK fills. relative_make sets e->status on failure. */
void relative_make(struct layer *l, const float *table, struct error *e);
void relative_free(struct relative *r);
double relative_bound(const struct layer *l); /* greatest magnitude of what is added to scores */
enum status relative_prepare(const struct layer *l, struct call *c, struct arena *a,
                             struct error *e);
double relative_work(const struct layer *l, const struct call *c, const struct item *item);
void relative_fill(const struct layer *l, const struct call *c, size_t item);

/* The numbers of query row `row` of an item and the rows after it, in a needed head, as struct
 * kernel_tile reads them. */
const float *relative_row(const struct call *c, size_t item, size_t head, size_t row);

/* Disentangled positions: the layer's position keys and queries, which are projected when it is
 * made. disentangled_make sets e->status on failure. */
void disentangled_make(struct layer *l, const struct layer_matrix matrix[ROLE_COUNT],
                       enum gemm_engine engine, struct error *e);
void disentangled_free(struct disentangled *d);
size_t disentangled_bytes(const struct layer *l);

/* The greatest magnitude of what is added to a score, given those of the query and the key. */
double disentangled_bound(const struct layer *l, double query, double key);

/* The positions of a tile whose first query is row `row` of an item, in one head. */
struct kernel_disentangled disentangled_tile(const struct layer *l, const struct item *item,
                                             size_t row, size_t head);

/* The sum that positions add to the score of the tile's first query and key j, in double. */
double disentangled_score(const struct kernel_tile *t, const float *query, const float *key,
                          size_t j);

/* --- tiles, for attention, traces and measures: layer_attend.c --- */

/* The places of the keys and values of a unit's item, in all heads. */
struct tile_kept {
  struct kept_rows keys, values;
  const struct kept_pair *shared; /* rows shared with other items, or NULL */
  struct kernel_blocks blocks;    /* of one head of these */
  float *gathered;                /* [lineage_floats] the rows after its complete blocks */
};
struct tile_kept tile_kept_of(const struct layer_step *s, const struct unit *u, float *gathered);

size_t lineage_floats(const struct layer *l);

/* Sets the keys and values of a tile to shared rows, in one head. The rows after the complete
 * blocks are copied to kept->gathered. (layer_kept.c) */
void lineage_set_inputs(struct kernel_tile *t, struct tile_kept *kept, size_t head);

/* Sets the tile of a unit's query rows without the inputs of a head, which tile_set_inputs sets. */
void tile_begin(struct kernel_tile *t, const struct layer_step *s, const struct unit *u);
void tile_set_inputs(struct kernel_tile *t, const struct layer_step *s, const struct unit *u,
                     struct tile_kept *kept, size_t head);

/* Computes a random number in [0, 1) for each query of the tile, for SELECT_SAMPLE. */
void tile_draw_chances(const struct call *c, const struct unit *u, size_t head, float *chance);

/* With uniform_rows: queries of a tile that attend to no key get equal weights for all of the
 * item's keys, and the mean of its values. `scratch` is that of attention. */
void tile_fill_uniform(const struct kernel_tile *t, const struct layer_step *s,
                       const struct unit *u, void *scratch);

/* --- traces --- */

/* A call without a trace has no memory, no unit and no work for it. */
enum status trace_prepare(const struct layer *l, const struct call *c, struct arena *a,
                          struct error *e);
double trace_work(const struct layer *l, const struct call *c);

/* --- measures --- */

/* A call without want_measures has no memory, no units and no work for them. */
enum status measure_prepare(const struct layer *l, struct call *c, struct arena *a,
                            struct error *e);
double measure_work(const struct layer *l, const struct call *c); /* as if nothing was masked */
size_t measure_scratch_floats(const struct layer *l);

#endif
