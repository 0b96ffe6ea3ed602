/* layer_program: the steps of a layer, for programs of one layer or several.
 *
 * A run of such a program holds a call for each of its layers, and the geometries of these calls. A
 * step knows where in the run its call lies. Of the layers over one geometry, the first one in the
 * program computes which keys the queries attend to. */
#ifndef CORE_LAYER_PROGRAM_H
#define CORE_LAYER_PROGRAM_H

#include "core/attention/layer.h"

/* The steps of a layer, in program order. The last two are for calls that request measures. */
enum layer_number {
  STEP_LOOK,  /* which keys each query attends to, and what else precedes all rows */
  STEP_QUERY, /* projections of rows, in the needed heads: all three at the same time */
  STEP_KEY,
  STEP_VALUE,
  STEP_ATTEND,
  STEP_TRACE, /* one query again, for calls that request a trace */
  STEP_OUTPUT,
  STEP_MEASURE, /* head measures, piece by piece */
  STEP_SUM,     /* the sums of all pieces */
  STEP_COUNT
};

/* A layer in a program. */
struct layer_place {
  const struct layer *layer;
  size_t call_at;    /* bytes from a run of the program to the layer's call */
  bool first;        /* whether it is the first layer over its geometry */
  bool measures;     /* whether the last two steps are listed: its calls may request measures */
  const char *where; /* prefix of error messages, as "layer 3: "; "" in a program of one layer */
};

struct layer_step {
  struct step step; /* the first member */
  struct layer_place at;
  unsigned role;       /* of a projection */
  double side_by_side; /* operations per row in all roles whose columns are shared out together */
};

/* Makes the steps of a layer and appends them to `list`; returns how many. The steps must stay in
 * place as long as the program is used. */
unsigned layer_list_steps(const struct layer_place *at, struct layer_step step[STEP_COUNT],
                          const struct step **list);

/* Prepares the call of these steps in a run of their program, as layer_prepare does, and adds the
 * call's work to the run's. The call's geometry is set. Calls are prepared in the order of their
 * layers: inputs may be an earlier call's outputs, and spare memory what an earlier call leaves.
 * Returns e->status. */
enum status layer_prepare_call(const struct layer_step step[STEP_COUNT], struct run *run,
                               struct arena *a, struct error *e);

/* Prepares a computed call to be computed again, with other inputs but the same geometry and
 * head_mask. */
void layer_renew_call(const struct call *c);

#endif
