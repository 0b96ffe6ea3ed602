/* prefix: the prefix cache: keys and values of prompts, for prompts that begin the same.
 *
 * A prefix is a chain of blocks of STACK_PREFIX_ROWS tokens. A block is found by the block before
 * it and by its tokens, which are compared: so a prompt gets the numbers that its own tokens would
 * make, to the last bit. Stacks share nothing. The least recently used blocks make room for new
 * ones. Any thread may call these functions. */
#ifndef CORE_PREFIX_H
#define CORE_PREFIX_H

#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/status.h"

enum { STACK_PREFIX_ROWS = 64 };

/* Tokens, and the keys and values that were made of them. A block that was found is not freed until
 * it is given back. */
struct prefix_block {
  uint64_t id;     /* never reused */
  uint64_t parent; /* the id of the block before; of the first one the root */
  int32_t token[STACK_PREFIX_ROWS];
  size_t bytes;
  float *number; /* the stack's own */

  /* The cache's own. */
  struct prefix_block *chained;       /* the next one in the same place of the table */
  struct prefix_block *newer, *older; /* by use */
  size_t users;
};

struct prefixes;

/* A cache of at most `most` bytes. They are charged to the budget as they are used, and released
 * when others need them there. NULL with an error. */
struct prefixes *prefixes_new(size_t most, struct budget *budget, struct error *e);
void prefixes_free(struct prefixes *p); /* NULL is fine; no block is in use */

size_t prefixes_bytes(const struct prefixes *p);

/* Finds the longest chain from the root on that has these tokens, of at most `most` blocks; returns
 * how many it has. Each is then in use, until it is given back. */
size_t prefixes_find(struct prefixes *p, uint64_t root, const int32_t *token, size_t most,
                     struct prefix_block **found);
void prefixes_give_back(struct prefixes *p, struct prefix_block *block);

/* The id of the block after `parent` that has these tokens; 0: there is none. */
uint64_t prefixes_behind(struct prefixes *p, uint64_t parent, const int32_t *token);

/* Makes a block with room for `numbers` floats, to be filled and added. NULL: there is no room. */
struct prefix_block *prefixes_make(struct prefixes *p, uint64_t parent, const int32_t *token,
                                   size_t numbers);

/* Adds a block, and returns its id. If an equal one was added meanwhile, that one stays, and the
 * new one is freed. */
uint64_t prefixes_add(struct prefixes *p, struct prefix_block *block);

#endif
