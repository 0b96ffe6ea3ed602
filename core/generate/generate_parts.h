/* generate_parts: what the files of a generating run share. Private to core/.
 *
 * A round of such a run: rounds.c says which tokens it takes; prefix_copy.c copies known keys and
 * values; the layers compute; logits.c and next.c choose tokens; beams.c (with search.c) takes the
 * step of each beam search; turn_keys.c lays keys out for later rounds; copy_out.c copies what is
 * shown; prefix_copy.c stores complete blocks in the prefix cache
 * (prefix.c); room.c releases the memory of keys and values. */
#ifndef CORE_GENERATE_PARTS_H
#define CORE_GENERATE_PARTS_H

#include "core/forward/forward.h"
#include "core/generate/generation.h"
#include "core/generate/search.h"

#define STACK_ASKS_NOT SIZE_MAX
#define STACK_NO_TWIN  SIZE_MAX

/* The source of the sequences of one prompt: its keys and values are made in the first round. */
struct stack_source {
  size_t rows;
  float *room; /* its keys and values; NULL: they are released */
  size_t room_bytes;
};

/* The beam search of a prompt. */
struct stack_beams {
  struct stack_searching search;
  int32_t *top_token; /* [most, beams, top_count] of each hypothesis in each step */
  float *top_log;
  int32_t *token; /* [beams, width] scratch for the tokens of candidates, and their logarithms */
  float *log;
  uint32_t *pass;  /* [beams, most] which hypothesis computed the pass that chose a token of a
                      result; NULL: nothing is shown of passes */
  size_t finished; /* the round in which it was finished; 0: it is not */
};

/* Memory for the keys and values of a sequence. */
struct stack_room {
  float *floats;
  size_t bytes;
};

/* The state of a generating run. */
struct stack_rounds {
  struct kept_pair **kept;     /* [attentions] of [items]; across of [sources] */
  struct stack_source *source; /* [sources], one for each prompt; NULL: there are none */
  struct stack_beams *beams;   /* [prompts] of a beam search; or NULL */
  int32_t *token;              /* [rows] the tokens of this round */
  size_t number;               /* rounds that have begun */
  size_t copied;               /* the last one that begins with a copy of rows */
  struct arena *arena;         /* of the run */
  struct stack_room *rooms;    /* [rooms_left] free ones */
  size_t rooms_left;
  size_t begun, at_once;      /* items that have begun; that continue at the same time, at most */
  size_t leaving;             /* items whose memory is released at the end of this round */
  size_t asks;                /* items that choose a token in this round */
  size_t *asking;             /* [asks] which */
  float *logits;              /* [asks, V] */
  double row_work, pair_work; /* operations for a row; for a query and a key */
  double cross_work, source_work; /* for a query and a key of a source; for a row of a source */
  bool *shows;                    /* [items] that choose a token, and the weights of that row are
                                     shown of some attention; NULL: of none */
  bool *shows_across; /* [sources] one of a prompt's items does; NULL where there are no sources */
};

/* Sequences of a prompt. */
static inline size_t stack_each(const struct stack_generation *g) { return g->each ? g->each : 1; }

/* Rows of a sequence whose keys and values are kept, at most: its last token is not fed. */
static inline size_t stack_kept_rows(const struct stack_generation *g, size_t item) {
  return g->sequence[item].text + g->sequence[item].most - 1;
}

/* Tokens of a sequence that were generated, in the response or of the hypothesis. */
static inline size_t stack_chosen(const struct stack_run *r, size_t item) {
  const struct stack_generation *g = r->generation;
  const struct stack_beams *beams = g->rounds->beams;
  return beams ? beams[item / stack_each(g)].search.steps
               : stack_sequence_count(&g->sequence[item]);
}

extern const struct stack_step stack_step_prefix_fetch, stack_step_logits, stack_step_next,
    stack_step_search, stack_step_turn_keys, stack_step_copy_out, stack_step_copy_results,
    stack_step_prefix_store, stack_step_release;

/* --- rounds.c --- */

enum {
  ROUND_ROWS_MOST = 512, /* rows of prompts in a round, and prompts that continue together */
  ROUND_ROWS_LEAST = 32  /* rows of a round, however much work they are */
};

/* The most rows of prompts in a round. It is the most prompts that continue together, too. */
static inline size_t rounds_rows(const struct stack_generation *g) {
  if (g->round_work == 0) return ROUND_ROWS_MOST;
  const double rows = g->round_work / g->rounds->row_work;
  return rows < ROUND_ROWS_LEAST  ? ROUND_ROWS_LEAST
         : rows > ROUND_ROWS_MOST ? ROUND_ROWS_MOST
                                  : (size_t)rows;
}

/* Reserves the memory of a generating run, and makes its geometry that of the largest round. */
enum status rounds_prepare(const struct stack_preparing *p);

/* Begins the first round, once everything else is prepared. */
void rounds_begin(const struct stack *s, struct stack_run *r);

/* Moves a run on to its next round; false: all its sequences are finished. */
bool rounds_next_round(const struct program *p, struct run *run);

/* --- room.c --- */

/* Reserves memory for the keys and values of all sources. */
enum status room_prepare_sources(const struct stack_preparing *p);

/* Reserves memory for the keys and values of the prompts that continue together: of fewer prompts
 * if the budget is too small for all, of one at least; it leaves enough for the rest of the run. */
enum status room_prepare(const struct stack_preparing *p);

/* Before a round: prompts begin for which there is memory now. */
void room_begin(const struct stack *s, struct stack_run *r);

/* --- prefix_copy.c --- */

/* Looks a prompt up in the prefix cache, before its keys and values have places. */
enum status prefix_copy_prepare(const struct stack_preparing *p, size_t item);

/* Operations for copying what is known of an item, about. */
double prefix_copy_work(const struct stack *s);

/* --- next.c --- */

/* Reports that every token is banned after the tokens of a sequence; returns the error's status. */
enum status next_fault_of_bans(const struct stack_run *r, size_t item, struct error *e);

/* --- beams.c --- */

/* Reserves the memory of beam searches, where there are any. */
enum status beams_prepare(const struct stack_preparing *p);

/* --- copy_out.c --- */

/* Reserves memory for what is shown of the tokens that will be generated. */
enum status copy_out_prepare(const struct stack_preparing *p);

#endif
