/* whole_pieces: lists the blocks of a model in the order in which data flows. */
#ifndef CONFIG_WHOLE_PIECES_H
#define CONFIG_WHOLE_PIECES_H

#include "config/build/plan/whole_plan.h"
#include "config/build/whole.h"

/* Sets w->block and w->blocks from a complete plan. Together the blocks have as many parameters as
 * the plan has numbers. STATUS_OUT_OF_MEMORY; whole_free frees what there is. */
enum status whole_pieces_list(struct whole *w, const struct whole_plan *p, struct error *e);

#endif
