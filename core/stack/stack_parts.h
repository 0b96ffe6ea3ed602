/* stack_parts: what the files of the stack share. Private to them.
 *
 * stack.c makes stacks, stack_program.c lists their steps, stack_prepare.c places the memory of a
 * run. What the steps of attention do not compute, these files do: stack_embed.c, stack_join.c
 * (residuals and norms), stack_forward.c, stack_show.c (thumbnails), stack_pool.c, stack_output.c
 * (how likely given tokens are to come), stack_lens.c (what each layer would say of them) and
 * stack_ablation.c (what heads are worth). Of a run that generates, stack_rounds.c says what each
 * round takes; before the layers stands stack_recall.c (the beginnings of texts), and behind them
 * stack_logits.c and stack_next.c (what comes next), stack_beams.c with stack_search.c and
 * stack_settle.c (searches), stack_turn.c (keys as steps read them), stack_reveal.c (what is shown)
 * and stack_room.c (where keys and values lie). */
#ifndef CORE_STACK_PARTS_H
#define CORE_STACK_PARTS_H

#include "core/attention/layer_program.h"
#include "core/kernel/kernel.h"
#include "core/stack/stack.h"
#include "core/stack/stack_search.h"

enum {
  STACK_NAME_SIZE = 40,    /* "encoder.9999.self: " */
  STACK_TILE_ROWS = 128,   /* that go through a matrix together, at most */
  STACK_SHARED_ROWS = 128, /* of a batch: with more, no columns are shared out */
  STACK_OUTPUT_ROWS = 16,  /* of a unit that asks for tokens to come */
  STACK_POOL_ITEMS = 16    /* of a unit of pooling: these share the reading of its matrices */
};

/* An attention of a layer. */
struct stack_attending {
  struct layer *layer;         /* NULL: there is none */
  char where[STACK_NAME_SIZE]; /* its name, before what is said of its faults */
  struct layer_step step[STEP_COUNT];
};

/* A layer that can be computed. */
struct stack_block {
  struct stack_attending self, cross;
  struct gemm *gate, *up, *down; /* gate NULL: not gated */
  struct stack_norm norm_self, norm_cross, norm_forward;
};

/* Where residuals and norms stand. */
enum join_place {
  JOIN_ENTER,   /* before the first layer: pre-norm alone */
  JOIN_SELF,    /* behind a layer's attention to its own rows */
  JOIN_CROSS,   /* behind the one to the source's */
  JOIN_FORWARD, /* behind its feed-forward */
  JOIN_LAST     /* the last norm, where nothing else stands before it: post-norm alone */
};

struct stack_step {
  struct step step; /* the first member */
  const struct stack *stack;
  size_t layer;         /* L of what belongs to no layer */
  size_t attention;     /* the number of one, of what belongs to it */
  enum join_place join; /* of residuals and norms */
  bool down;            /* of the two of a feed-forward the second */
  double row_work;      /* operations of a row, about */
  double tile_work;     /* of a row through both matrices of a feed-forward */
  size_t rows;          /* of a unit */
};

struct stack {
  uint64_t serial;        /* no other stack has it */
  struct stack_form form; /* its pointers are the stack's own copies, or NULL */
  void *token;            /* [V, d] where the output is not the table of tokens; or NULL */
  enum kernel_form token_form;
  const struct kernel *kernel;
  double *turns;   /* [d] by how much a position turns each number of computed positions, or NULL */
  float *position; /* [position_rows, d] the first positions, computed or learned; or NULL */
  size_t position_rows;
  struct gemm *pooler; /* or NULL, as these */
  struct gemm *dense[STACK_DENSE_MOST], *skip[STACK_DENSE_MOST];
  struct gemm *first, *classes; /* of the classifier; NULL: it is the pooler, there is none */
  struct gemm *output;          /* or NULL; where it is tied the table of tokens, too */
  struct stack_block *layer;    /* [L], the first `set` of them made */
  size_t set;
  size_t bytes;             /* of all numbers */
  unsigned forms;           /* of its matrices, a bit 1 << form each */
  size_t tile;              /* rows that go through a feed-forward together */
  struct stack_step *own;   /* the steps that are the stack's own */
  const struct step **list; /* of all */
  size_t owns;
  double row_work; /* operations of a row in all of these that take rows, about */
  struct program program;
  struct program rounds; /* of runs that generate; without steps where there is no output */
  struct program *again; /* [L + 1] of runs that measure heads: from a layer on; the last: all */
  size_t scratch;        /* bytes */
};

/* The rows of a layer, [rows, d] each. Of flow L only the first two mean anything: what the last
 * layer gives, and the outputs. */
struct stack_flow {
  float *state;    /* what enters the layer */
  float *input;    /* what its attention reads */
  float *between;  /* behind it, where one to a source follows: what that is added to */
  float *asking;   /* what the queries of that are made of */
  float *middle;   /* behind the attentions: what the feed-forward is added to */
  float *entering; /* what the feed-forward reads */
  float *forward;  /* what it gives */
};

struct stack_space {
  struct stack_flow *flow; /* [L + 1] */
  float *inner;            /* [rows, f] between the matrices of a feed-forward where their columns
                              are shared out; NULL: never, there are too many rows */
  float *pooled;           /* [items, output_size] or NULL */
  float *logs, *top_logs;  /* as in the run, where there are targets */
  float *logits;           /* as in the run */
  int32_t *top_tokens;
  struct stack_lens *lens; /* as in the run */
  size_t *target_at;    /* [rows] which of all targets a row has, where there is a lens; or NULL */
  uint8_t **thumbnails; /* [attentions] as in stack_shown, or NULL */
};

/* --- generating --- */

#define STACK_ASKS_NOT SIZE_MAX
#define STACK_NO_TWIN  SIZE_MAX

/* How far a sequence has come. */
struct stack_advance {
  int32_t *token; /* [text + most] the text, and what was chosen behind it */
  size_t text;
  size_t kept;   /* rows whose keys and values are there: those of the rounds that are over */
  size_t turned; /* of these, so many have their keys turned (kernel_tile), whole blocks; ... */
  size_t turns;  /* ... so many once this round is over. A block is turned when a row behind it is
                    there: a twin takes all rows of a text but the last */
  size_t asks;   /* where its logits lie among those of this round; STACK_ASKS_NOT: its text goes on
                    in the next round, or it is finished */
  size_t first;  /* the first of the items in a row that have this text; STACK_NO_TWIN: itself */
  size_t twin;   /* the one of these whose rows it copies; STACK_NO_TWIN: none */
  size_t copies; /* the round that begins with a copy: of its twin's rows, or of known blocks; 0: no
                    round does */
  float *room;   /* of its keys and values; NULL: it has not begun, or they are given back */
  size_t room_bytes;
  bool leaves; /* it was finished before this round, and gives them back behind it */
  /* Of a way of a search, whose sequences share rows: */
  struct kept_lineage lineage; /* whose rows it has, in one of these: */
  struct stack_way {
    uint32_t *block, *row; /* [blocks], [KERNEL_KEYS] */
  } way[2];
  int32_t *other; /* like `token`, to which it goes over in the next step */
  bool opens;     /* the rows of its text are to be had by the others from now on */
  bool weaves;    /* its last rows make a block in this round, ... */
  size_t woven;   /* ... which this member makes */
  /* Of the beginning of the text: */
  struct prefix_block **recalled; /* [recalls] what is known of it */
  size_t recalls, held;           /* so many of these are not given back yet */
  uint64_t known; /* the last block that is kept, or the root; 0: nothing behind is to be kept */
};

/* What a run that generates shows of an attention, as stack_shown has it; NULL: not asked for. */
struct stack_revealed {
  float *hidden, *input, *weights;
  uint8_t *thumbnails;
};

/* What the sequences of one text attend to across: keys and values are made in the first round. */
struct stack_source {
  size_t rows;
  float *room; /* of them; NULL: they are given back */
  size_t room_bytes;
};

/* A search of the ways on from a text. */
struct stack_beams {
  struct stack_searching search;
  int32_t *top_token; /* [most, beams, top_count] of each way in each step */
  float *top_log;
  int32_t *token; /* [beams, width] room for the tokens of candidates, and their logarithms */
  float *log;
  uint32_t *pass; /* [beams, most] of each token of what was found the way whose pass chose it;
                     NULL: nothing is shown of them */
  size_t settled; /* the round in which it was over; 0: it is not */
};

/* Memory for the keys and values of a sequence. */
struct stack_room {
  float *floats;
  size_t bytes;
};

/* What a run that generates has beside its space. */
struct stack_rounds {
  struct stack_advance *advance; /* [items] */
  struct kept_pair **kept;       /* [attentions] of [items]; across of [sources] */
  struct stack_source *source;   /* [sources], one for each text; NULL: there are none */
  struct stack_beams *beams;     /* [texts] of a search; NULL: there is none */
  int32_t *token;                /* [rows] that this round takes */
  size_t number;                 /* rounds that have begun */
  size_t copied;                 /* the last one that begins with a copy of rows */
  struct arena *arena;           /* of the run */
  struct stack_room *rooms;      /* [rooms_left] for texts that have not begun */
  size_t rooms_left;
  size_t begun, at_once;           /* items that have begun; that go on at the same time, at most */
  size_t leaving;                  /* items that leave behind this round */
  size_t asks;                     /* items that ask for a token in this round */
  size_t *asking;                  /* [asks] which */
  float *logits;                   /* [asks, V] */
  double row_work, pair_work;      /* of a row; of a query and a key */
  double cross_work, source_work;  /* of a query and a key of a source; of a source's row */
  struct stack_revealed *revealed; /* [attentions]; NULL where there are no wishes */
  float *embedding;                /* [rows of all sequences, d] or NULL */
  bool *shows;        /* [items] ask for a token, and the weights of that row are wanted
                         of some attention; NULL: of none */
  bool *shows_across; /* [sources] one of a text's items does; NULL where there are no sources */
};

/* Sequences of a text. */
static inline size_t stack_each(const struct stack_generation *g) { return g->each ? g->each : 1; }

/* What words call an item of a run: of one that generates the text of the sequence. */
static inline size_t stack_named(const struct stack_run *r, size_t item) {
  return r->generation ? item / stack_each(r->generation) : item;
}

/* Reserves what a run that generates needs, and makes its geometry that of the largest round. */
enum status stack_rounds_prepare(const struct stack *s, struct stack_run *r, struct arena *a,
                                 struct error *e);

/* The most rows of texts in a round. It is the most texts that continue at the same time, too. */
size_t stack_rounds_rows(const struct stack_generation *g);

/* A place for every key and value of an item that is to come. The last token is not fed. */
static inline size_t stack_kept_rows(const struct stack_generation *g, size_t item) {
  return g->rounds->advance[item].text + g->sequence[item].most - 1;
}

/* Reserves memory for the keys and values of all sources. */
enum status stack_sources_prepare(const struct stack *s, struct stack_run *r, struct arena *a,
                                  struct error *e);

/* Reserves memory for the keys and values of the texts that continue at the same time: of fewer
 * texts if the budget is too small for all, of one at least. What the run reserves later has room
 * then, too. */
enum status stack_rooms_prepare(const struct stack *s, struct stack_run *r, struct arena *a,
                                struct error *e);

/* Before a round: texts begin for which there is memory now. */
void stack_rooms_begin(const struct stack *s, struct stack_run *r);

/* Looks for what is known of the beginning of a text, before its keys and values have places. */
enum status stack_recall_prepare(const struct stack *s, struct stack_generation *g, size_t item,
                                 struct arena *a, struct error *e);
double stack_recall_work(const struct stack *s); /* of copying what is known of an item, about */

/* What comes before the first block of a text: no id of a block, and of no other stack. */
static inline uint64_t stack_prefix_root(const struct stack *s) { return UINT64_MAX - s->serial; }

/* Memory for searches, where there are any. */
enum status stack_beams_prepare(const struct stack *s, struct stack_run *r, struct arena *a,
                                struct error *e);

/* Lists the candidates of a way. `log_sum` makes log probabilities of its logits. */
void stack_beams_choose(const struct stack *s, const struct stack_run *r, size_t item,
                        const float *logit, double log_sum, float *scratch);

/* The search of a text is over: its sequences become what was found. False: the listener failed. */
bool stack_settle(struct stack_run *r, size_t text);

/* What the next token of a sequence depends on. */
struct stack_past stack_past_of(const struct stack_run *r, size_t item);

/* Tokens of a sequence that were chosen, in the answer or on the way to it. */
static inline size_t stack_chosen(const struct stack_run *r, size_t item) {
  const struct stack_generation *g = r->generation;
  const struct stack_beams *beams = g->rounds->beams;
  return beams ? beams[item / stack_each(g)].search.steps
               : stack_sequence_count(&g->sequence[item]);
}

/* Says that behind the text of a sequence no token may come. */
enum status stack_fault_of_bans(const struct stack_run *r, size_t item, struct error *e);

/* Where the rows of a sequence lie in what is shown of an attention, or of the first hidden state,
 * whose number is that behind all attentions: lists of rows of one size. */
struct stack_shown_rows {
  float *row;              /* NULL: not asked for */
  size_t size;             /* numbers of a row */
  size_t lists, list_step; /* lists, and numbers from one to the next */
};
enum stack_shown_kind { STACK_SHOWN_HIDDEN, STACK_SHOWN_INPUT, STACK_SHOWN_WEIGHTS };
struct stack_shown_rows stack_shown_rows(const struct stack *s, const struct stack_run *r,
                                         size_t number, enum stack_shown_kind kind, size_t item);

/* Makes the thumbnails of a sequence that is over, of so many rows; none: not asked for. */
void stack_reveal_thumbnails(const struct stack *s, const struct stack_run *r, size_t number,
                             size_t item, size_t rows);

/* Memory for what is shown of the tokens that are to come. */
enum status stack_reveal_prepare(const struct stack *s, struct stack_run *r, struct arena *a,
                                 struct error *e);

/* The first round, once everything else is prepared. */
void stack_rounds_begin(const struct stack *s, struct stack_run *r);

/* Moves a run on to its next round; false: all its sequences are finished. */
bool stack_rounds_again(const struct program *p, struct run *run);

/* --- what heads are worth --- */

/* Does a round of the run begin at this layer? Then the rows that enter it are to stay. */
bool stack_ablation_begins(const struct stack *s, const struct stack_run *r, size_t layer);

/* Is a head of the list, by its number, one of this run, and not of its source? */
bool stack_ablation_cuts(const struct stack_run *r, size_t i);

/* Once all else of such a run is prepared, the work of whose layers is `layers`. */
enum status stack_ablation_prepare(struct stack_run *r, double layers, struct arena *a,
                                   struct error *e);

/* Moves the run on to the round without the next head; false: that begins in its source, which is
 * what comes then, or there is none. */
bool stack_ablation_again(const struct program *p, struct run *run);

/* --- making --- */

/* Lists the steps, once all layers are made. */
enum status stack_list_steps(struct stack *s, struct error *e);

extern const struct step stack_step_embed, stack_step_join, stack_step_up, stack_step_down,
    stack_step_show, stack_step_pool, stack_step_output, stack_step_lens, stack_step_ablation,
    stack_step_recall, stack_step_logits, stack_step_next, stack_step_search, stack_step_settle,
    stack_step_turn, stack_step_reveal, stack_step_keep, stack_step_release;

/* Scratch floats that the steps need. */
size_t stack_embed_floats(const struct stack *s);
size_t stack_forward_floats(const struct stack *s);
size_t stack_pool_floats(const struct stack *s);
size_t stack_output_floats(const struct stack *s);
size_t stack_logits_floats(const struct stack *s);
size_t stack_next_floats(const struct stack *s);
size_t stack_turn_floats(const struct stack *s);
size_t stack_settle_floats(const struct stack *s);

/* Numbers of position p to `row` [d]. */
void stack_compute_position(const struct stack *s, size_t p, float *row);

/* --- steps --- */

_Static_assert(offsetof(struct stack_step, step) == 0, "a step is the first member of the stack's");
static inline const struct stack_step *stack_step_of(const struct step *s) {
  return (const struct stack_step *)s;
}

_Static_assert(offsetof(struct stack_run, run) == 0, "a run is the first member of its struct");
static inline struct stack_run *stack_run_of(const struct run *r) { return (struct stack_run *)r; }

/* The attention of a number: L + l is that of layer l to a source. */
static inline struct stack_attending *stack_attending(const struct stack *s, size_t number) {
  const size_t layers = s->form.layers;
  return number < layers ? &s->layer[number].self : &s->layer[number - layers].cross;
}

static inline bool stack_is_across(const struct stack *s, size_t number) {
  return number >= s->form.layers;
}

static inline const struct layer_shape *stack_shape(const struct stack *s, size_t number) {
  return stack_is_across(s, number) ? &s->form.cross : &s->form.self;
}

static inline struct stack_flow *stack_flow_of(const struct run *r, size_t layer) {
  return &stack_run_of(r)->space->flow[layer];
}

/* Hidden state l: what enters layer l, and behind the last one what the form says. */
const float *stack_hidden_rows(const struct stack *s, const struct stack_run *r, size_t l);

/* What an attention's queries are made of; of one that is not across its keys and values, too. */
const float *stack_input_rows(const struct stack *s, const struct stack_run *r, size_t number);

/* A picture of weights [rows, columns]: the greatest one of each block. */
struct stack_picture {
  const float *weights;
  size_t row_step, rows, columns;
  size_t most; /* rows and columns of the picture, at most */
};

static inline size_t stack_picture_high(const struct stack_picture *p) {
  return p->rows < p->most ? p->rows : p->most;
}
static inline size_t stack_picture_wide(const struct stack_picture *p) {
  return p->columns < p->most ? p->columns : p->most;
}

/* A byte for each block. */
void stack_picture_write(const struct stack_picture *p, uint8_t *to);

/* The work of a row that has a target. */
double stack_output_work(const struct stack *s);

/* A row of the outputs as the output's matrix reads it, to `to` [d]. */
void stack_output_row(const struct stack *s, const struct stack_run *r, size_t row, float *to);

/* The work of pooling a run. */
double stack_pool_work(const struct stack *s, const struct stack_run *r);

/* Rows of a run, as many as the step says. */
bool stack_rows_unit(const struct step *step, struct cursor *at, struct unit *u);
double stack_rows_work(const struct step *step, const struct unit *u);

/* How many columns of a step's matrix make a unit, where `rows` rows of a batch go through it,
 * whose products are `work` operations a row; at least `least` times as many as are worth a unit.
 * 0: there are so many rows, or so little work, that no columns are shared out. */
size_t stack_share_columns(const struct step *step, size_t rows, double work, size_t least);

/* Floats from one row of the model to the next in a thread's scratch. */
static inline size_t stack_row_floats(const struct stack *s) {
  return (s->form.width + 15) / 16 * 16;
}

/* The item that a row belongs to. */
size_t stack_item_of(const struct geometry *g, size_t row);

/* Notes the first row of a unit that holds a number beyond float32: the rows begin at `row`, and
 * `top` is the greatest magnitude among them, as kernels tell it. */
void stack_note_rows(const struct stack *s, const struct unit *u, const float *row, uint32_t top);

/* Says that `what` of a row exceeds the float32 range. */
enum status stack_fault(const struct stack_step *s, const struct run *r, const char *what,
                        uint64_t row, struct error *e);

#endif
