/* forward: what a stack is made of, and what the steps of its runs share. Private to core/.
 *
 * embed.c, join.c (residuals and norms), feed_forward.c, convolve.c, pooling.c and output.c (log
 * probabilities of given tokens) are the steps of a forward pass besides the attentions; rows.c is
 * what these have in common. core/stack lists them as a program, together with the steps of
 * core/inspect and core/generate. A stack is immutable once it is made, and shared by all threads;
 * a step writes to the rows of its unit and to the scratch of its thread alone. */
#ifndef CORE_FORWARD_H
#define CORE_FORWARD_H

#include "core/attention/layer_program.h"
#include "core/base/arena.h"
#include "core/forward/stack_form.h"
#include "core/forward/stack_run.h"
#include "core/kernel/gathered.h"

enum {
  STACK_NAME_SIZE = 40,  /* "encoder.9999.self: " */
  STACK_OUTPUT_ROWS = 16 /* of a unit that computes log probabilities */
};

/* --- a stack --- */

/* An attention of a layer. */
struct stack_attending {
  struct layer *layer;         /* NULL: there is none */
  char where[STACK_NAME_SIZE]; /* its name, which begins the messages of its faults */
  struct layer_step step[STEP_COUNT];
};

/* A layer that can be computed. */
struct stack_block {
  unsigned kind;
  bool repeats; /* what its pointers point to belongs to an earlier layer */
  struct stack_attending self, cross;
  struct gemm *gate, *up, *down; /* gate NULL: not gated */
  struct stack_norm norm_self, norm_cross, norm_forward, after_self, after_forward;
};

/* Places of residuals and norms. */
enum join_place {
  JOIN_ENTER,   /* before the first layer: pre-norm alone */
  JOIN_SELF,    /* after a layer's self-attention */
  JOIN_CROSS,   /* after its cross-attention */
  JOIN_FORWARD, /* after its feed-forward */
  JOIN_LAST     /* the last norm, where no other join includes it: post-norm alone */
};

struct stack_tile;

/* A step of a program. The file of a step describes its kind in a table `stack_step_...`; a list of
 * steps has copies of it, each with its place. */
struct stack_step {
  struct step step;                        /* the first member */
  size_t (*floats)(const struct stack *s); /* of scratch; NULL: none */
  /* Computes a unit, if `compute` is stack_compute or stack_compute_kernels. */
  void (*each)(const struct stack_step *s, const struct unit *u, void *scratch);
  /* Computes rows that go through a matrix together, if `compute` is stack_compute_tiles. */
  void (*tile)(struct stack_tile *t, float *scratch);
  const char *what; /* begins the message of stack_fault_of_row */
  const struct stack *stack;
  size_t layer;         /* L of a step that belongs to no layer */
  size_t attention;     /* the number of the attention that it belongs to */
  enum join_place join; /* of residuals and norms */
  bool down;            /* the second step of a feed-forward, and not the first */
  double row_work;      /* operations for a row, about */
  double tile_work;     /* operations for a row through all matrices of a feed-forward */
  size_t rows;          /* of a unit */
};

struct stack {
  uint64_t serial;        /* unique among all stacks of the process */
  struct stack_form form; /* its pointers are the stack's own copies, or NULL */
  void *token;            /* [V, d] the table of tokens; NULL where it is the output's matrix */
  enum kernel_form token_form;
  const struct kernel *kernel;
  double *turns;   /* [d] the angle of position 1 in each number of computed positions, or NULL */
  float *position; /* [position_rows, d] the first positions, computed or learned; or NULL */
  size_t position_rows;
  struct gemm *project; /* of the embedding; NULL: none, as the next ones */
  struct gemm *convolution;
  struct gemm *pooler;
  struct gemm *dense[STACK_DENSE_MOST], *skip[STACK_DENSE_MOST];
  struct gemm *first, *classes; /* of the classifier */
  struct gemm *transform;       /* of rows before the next one */
  struct gemm *output;          /* where it is tied, the table of tokens, too */
  struct stack_block *layer;    /* [L], the first `set` of them made */
  size_t set;
  unsigned kinds;           /* 1 and the greatest kind of a layer */
  size_t bytes;             /* of all numbers */
  unsigned forms;           /* a bit 1 << form for each form of its matrices */
  size_t tile;              /* rows that go through a feed-forward together */
  struct stack_step *own;   /* the steps of all programs that are no layer_step */
  const struct step **list; /* the steps of all programs */
  double row_work; /* operations for a row in all steps of a forward pass besides the attentions */
  struct program program;
  struct program rounds; /* of runs that generate; without steps where they cannot */
  struct program *again; /* [L + 1] of runs that measure heads: from layer l on; the last: all */
  size_t scratch;        /* bytes */
};

/* The attention of a number: L + l is the cross-attention of layer l. */
static inline struct stack_attending *stack_attending(const struct stack *s, size_t number) {
  const size_t layers = s->form.layers;
  return number < layers ? &s->layer[number].self : &s->layer[number - layers].cross;
}

static inline bool stack_is_across(const struct stack *s, size_t number) {
  return number >= s->form.layers;
}

static inline const struct stack_kind *stack_kind(const struct stack *s, size_t layer) {
  return &s->form.kind[s->layer[layer].kind];
}

static inline const struct layer_shape *stack_shape(const struct stack *s, size_t number) {
  return stack_is_across(s, number) ? &s->form.cross : &stack_kind(s, number)->self;
}

/* Floats from one row of the model to the next in a thread's scratch. */
static inline size_t stack_row_floats(const struct stack *s) {
  return (s->form.width + 15) / 16 * 16;
}

/* The same of the rows that the matrix of the logits reads. */
static inline size_t stack_read_floats(const struct stack *s) {
  return (stack_form_output(&s->form) + 15) / 16 * 16;
}

/* --- the memory of a run --- */

/* The rows of a layer, [rows, d] each. Flow L has two: `state`, the outputs of the last layer, and
 * `input`, the outputs of the stack. */
struct stack_flow {
  float *state;    /* the layer's inputs */
  float *input;    /* read by its self-attention */
  float *between;  /* the residual after it, where a cross-attention follows */
  float *asking;   /* read by the queries of the cross-attention */
  float *middle;   /* the residual after the attentions */
  float *entering; /* read by the feed-forward */
  float *forward;  /* written by it */
};

struct stack_space {
  size_t numbers;          /* of rows [rows, d] */
  float *work[2];          /* [rows, d] that the layers use in turn: see stack_prepare.c */
  struct spare room;       /* memory that the attentions use in turn */
  struct stack_flow *flow; /* [L + 1] */
  float *inner;            /* [rows, f] between the matrices of a feed-forward whose columns are
                              shared out; NULL: never, there are too many rows */
  float *transformed;      /* [rows, e] as the output's matrix reads them, for weights of tokens */
  size_t *target_at;       /* [rows] the number of a row's target, where there is a lens; or NULL */
};

/* A run that is being prepared. The functions that take one return e->status, and do nothing where
 * that is an error already. */
struct stack_preparing {
  const struct stack *s;
  struct stack_run *r;
  struct arena *a;
  struct error *e;
};

/* Memory of the run's arena, not cleared; NULL with an error. */
static inline void *stack_alloc(const struct stack_preparing *p, size_t count, size_t size) {
  return p->e->status ? NULL : arena_alloc(p->a, count, size, p->e);
}

/* --- steps --- */

_Static_assert(offsetof(struct stack_step, step) == 0, "a step is the first member of the stack's");
static inline const struct stack_step *stack_step_of(const struct step *s) {
  return (const struct stack_step *)s;
}

_Static_assert(offsetof(struct stack_run, run) == 0, "a run is the first member of its struct");
static inline struct stack_run *stack_run_of(const struct run *r) { return (struct stack_run *)r; }

extern const struct stack_step stack_step_embed, stack_step_join, stack_step_up, stack_step_down,
    stack_step_convolve, stack_step_pool, stack_step_match, stack_step_output,
    stack_step_own_tokens, stack_step_transform, stack_step_weigh, stack_step_sparse;

/* Computes a span unit by unit, by the step's `each`: stack_compute_kernels as kernels need it (see
 * kernel_enter), stack_compute without. */
void stack_compute(const struct step *step, const struct span *span, void *scratch);
void stack_compute_kernels(const struct step *step, const struct span *span, void *scratch);

/* Rows of one run or several, of units with the same columns. */
struct stack_tile {
  const struct stack_step *step;
  unsigned number;        /* of the step in its program */
  size_t column, columns; /* 0, 0: all */
  size_t rows, parts;
  struct gathered_part part[GATHERED_ROWS]; /* with their runs and rows */
};

/* Computes a span by the step's `tile`, as many rows at a time as go through a matrix together. */
void stack_compute_tiles(const struct step *step, const struct span *span, void *scratch);

/* Units of the rows of a run, `rows` of the step each; and their work by its `row_work`. */
bool stack_rows_unit(const struct step *step, struct cursor *at, struct unit *u);
double stack_rows_work(const struct step *step, const struct unit *u);

/* The functions of a step that computes rows by its `each`; `units` is its `unit`. */
#define STACK_ROWS_STEP(units)                                                \
  {                                                                           \
    .unit = units, .work = stack_rows_work, .compute = stack_compute_kernels, \
    .fault = stack_fault_of_row                                               \
  }

/* How many columns of a step's matrix make a unit, where `rows` rows of a batch go through it,
 * whose products are `work` operations a row; at least `least` times as many as are worth a unit.
 * 0: there are too many rows, or there is too little work, to share columns out. */
size_t stack_share_columns(const struct step *step, size_t rows, double work, size_t least);

/* Gives the geometries of further kinds of layers the rows of the run's. */
void stack_share_rows(const struct stack *s, struct stack_run *r);

/* The item that a row belongs to. */
size_t stack_item_of(const struct geometry *g, size_t row);

/* The number of an item in messages: of a run that generates, the prompt's. */
static inline size_t stack_named(const struct stack_run *r, size_t item) { return item / r->each; }

/* A norm, of a kind that the form names, of rows [rows, d] from `x` to `y`, which may be the same.
 */
struct kernel_norm stack_norm_rows(const struct stack *s, const struct stack_norm *norm,
                                   size_t rows, const float *x, float *y);

/* Records the first row of a unit with a number that is not finite. The rows begin at `row`, and
 * `top` is the greatest magnitude among them, as kernels return it. */
void stack_record_rows(const struct stack *s, const struct unit *u, const float *row, uint32_t top);

/* Reports that `what` of a row exceeds the float32 range; returns the error's status. */
enum status stack_fault(const struct stack_step *s, const struct run *r, const char *what,
                        uint64_t row, struct error *e);

/* The same of the step's own `what`; the place of the fault is a row. */
enum status stack_fault_of_row(const struct step *step, const struct run *r, uint64_t row,
                               struct error *e);

/* Hidden state l [rows, d]: the inputs of layer l; for l = L see stack_form.last_aside. */
float *stack_hidden_rows(const struct stack *s, const struct stack_run *r, size_t l);

/* The rows [rows, d] that an attention's queries read; without cross, its keys and values, too. */
float *stack_input_rows(const struct stack *s, const struct stack_run *r, size_t number);

/* Writes position p to `row` [d]. */
void stack_compute_position(const struct stack *s, size_t p, float *row);

/* Can weights of tokens be requested? */
static inline bool stack_weighs(const struct stack *s) {
  return s->output || s->form.sparse.row.weight;
}

/* Do logits make the weights of tokens that a run is asked for? */
static inline bool stack_weighs_logits(const struct stack *s, const struct stack_run *r) {
  return r->want_sparse && !s->form.sparse.row.weight;
}

/* Operations for the weights of tokens of a run, about. */
double stack_sparse_work(const struct stack *s, const struct stack_run *r);

/* Operations for pooling a run, about. */
double stack_pool_work(const struct stack *s, const struct stack_run *r);

/* The same for the similarities. */
double stack_match_work(const struct stack_run *r);

#endif
