/* stack_positions: which tokens of a request to fill are predicted, as they were read. */
#ifndef SERVER_STACK_POSITIONS_H
#define SERVER_STACK_POSITIONS_H

#include <stdint.h>

#include "server/body/contract.h"

enum stack_filled {
  STACK_FILL_MASKS, /* those that are the mask token */
  STACK_FILL_ALL,
  STACK_FILL_LISTED
};

/* The lists, one after the other. */
struct stack_positions {
  enum stack_filled which;
  bool batch;              /* whether there is a list for each item; else one list */
  size_t lists;            /* 1 without a batch */
  const size_t *end;       /* [lists] */
  const int32_t *position; /* ascending in each list */
};

/* Reader of "positions": "masks", "all", a list of positions, or a list for each item. */
enum status stack_read_positions(const struct json_t *value, const struct contract_field *field,
                                 void *values, struct error *e);

#endif
