/* layer_program: the steps of a layer, for programs of one layer or several.
 *
 * A run of such a program holds a call for each of its layers, and the geometries of these calls. A
 * step knows where in the run its call lies. Of the layers over one geometry the first one in the
 * program works out what the queries see. */
#ifndef CORE_LAYER_PROGRAM_H
#define CORE_LAYER_PROGRAM_H

#include "core/attention/layer.h"

/* The steps of a layer, in their order in the program. The last two are for calls that measure. */
enum layer_number {
  STEP_LOOK,  /* which keys each query may see, and what else is worked out before any row */
  STEP_QUERY, /* rows through matrices, in the heads that are needed: all three side by side */
  STEP_KEY,
  STEP_VALUE,
  STEP_ATTEND,
  STEP_TRACE, /* one query once more, of calls that want a trace */
  STEP_OUTPUT,
  STEP_MEASURE, /* the heads, piece by piece */
  STEP_SUM,     /* the measures of all pieces */
  STEP_COUNT
};

/* A layer in a program. */
struct layer_place {
  const struct layer *layer;
  size_t call_at;    /* bytes from a run of the program to the layer's call */
  bool first;        /* over its geometry */
  bool measures;     /* with the last two steps: its calls may measure */
  const char *where; /* before the words of a fault, as "layer 3: "; "" where there is one layer */
};

struct layer_step {
  struct step step; /* the first member */
  struct layer_place at;
  unsigned role;       /* of rows */
  double side_by_side; /* operations for a row, in all roles whose columns are shared out with it */
};

/* Makes the steps of a layer and lists them; returns how many these are. They must stay where they
 * are, as long as the program does. */
unsigned layer_list_steps(const struct layer_place *at, struct layer_step step[STEP_COUNT],
                          const struct step **list);

/* Prepares the call to the layer whose steps these are, in a run of their program, as layer_prepare
 * does, and adds the call's work to the run's. The call knows its geometry; calls are prepared in
 * the order of their layers. Inputs may be what an earlier call puts out, and spare memory what it
 * leaves. */
enum status layer_prepare_call(const struct layer_step step[STEP_COUNT], struct run *run,
                               struct arena *a, struct error *e);

/* Makes a call that was computed ready to be computed once more: with other inputs, but the same
 * geometry and head_mask. */
void layer_renew_call(const struct call *c);

#endif
