/* prefix: keys and values of the beginnings of texts, kept for texts that begin the same.
 *
 * A beginning is a chain of blocks of STACK_PREFIX_ROWS tokens. A block is found by what comes
 * before it and by its tokens, which are compared: so a text gets what its own tokens would make,
 * to the last bit. A stack shares nothing with another one. What was used longest ago makes room
 * for what is new. For any thread. */
#ifndef CORE_PREFIX_H
#define CORE_PREFIX_H

#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/status.h"

enum { STACK_PREFIX_ROWS = 64 };

/* So many tokens, and the numbers that were made of them. What is found is not freed until it is
 * given back. */
struct prefix_block {
  uint64_t id;     /* no other block ever has it */
  uint64_t parent; /* the id of the one before; of the first one the root */
  int32_t token[STACK_PREFIX_ROWS];
  size_t bytes;
  float *number; /* the stack's own */

  /* The set's own. */
  struct prefix_block *chained;       /* in the same place of the table */
  struct prefix_block *newer, *older; /* by use */
  size_t users;
};

struct prefixes;

/* Of at most so many bytes, which are charged to the budget as they come, and give way to what else
 * needs them there. */
struct prefixes *prefixes_new(size_t most, struct budget *budget, struct error *e);
void prefixes_free(struct prefixes *p); /* no block is in use; NULL is fine */

size_t prefixes_bytes(const struct prefixes *p);

/* Finds the longest chain from the root on that has these tokens, of at most so many blocks;
 * returns how many it has. */
size_t prefixes_find(struct prefixes *p, uint64_t root, const int32_t *token, size_t most,
                     struct prefix_block **found);
void prefixes_give_back(struct prefixes *p, struct prefix_block *block);

/* The id of the block behind this one that has these tokens; 0: there is none. */
uint64_t prefixes_behind(struct prefixes *p, uint64_t parent, const int32_t *token);

/* A block for some numbers, to be filled and added, or to be dropped. NULL: there is no room. */
struct prefix_block *prefixes_make(struct prefixes *p, uint64_t parent, const int32_t *token,
                                   size_t numbers);

/* Adds it, and returns its id; another one that has come meanwhile stays instead. */
uint64_t prefixes_add(struct prefixes *p, struct prefix_block *block);

#endif
