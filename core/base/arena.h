/* arena: the memory of one request (or one load), charged to a budget and freed whole.
 *
 * An arena belongs to one thread at a time. What it hands out is aligned to 64 bytes, not cleared,
 * and lives until arena_free. A budget is shared by all arenas of the process and may be used from
 * any thread. */
#ifndef CORE_ARENA_H
#define CORE_ARENA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/base/keep.h"
#include "core/base/status.h"

struct budget {
  atomic_size_t used; /* bytes */
  size_t limit;       /* bytes; fixed after budget_init */
  struct keep *keep;  /* keeps large blocks between their uses, uncharged; NULL: only malloc */
  /* Gives back what is charged and not needed, so many bytes if there are as many: asked before an
   * arena gets nothing. False: there is nothing. NULL: nobody has such things. Any thread. */
  bool (*give_way)(void *of, size_t bytes);
  void *giving;
};

void budget_init(struct budget *b, size_t limit);

/* For what no arena holds. False: it would be too much, and nothing is charged. */
bool budget_charge(struct budget *b, size_t bytes);
void budget_return(struct budget *b, size_t bytes);

struct arena_block;

struct arena {
  struct budget *budget;     /* NULL: nothing is charged or kept */
  struct arena_block *block; /* newest first */
  char *next, *end;          /* what is left of the current small block */
  size_t bytes;              /* charged so far */
  size_t beside;             /* charged elsewhere for the same request */
};

void arena_init(struct arena *a, struct budget *budget);

enum {
  ARENA_KEPT_MOST = 64 << 20
}; /* bytes of a block that may be kept: a larger one is given
      back page by page */

/* `count` things of `size` bytes. NULL with an error: STATUS_OVERLOADED if the budget is full,
 * STATUS_OUT_OF_MEMORY if malloc fails, STATUS_TOO_LARGE if the product overflows or the request
 * alone exceeds the budget, so that trying again would not help. */
void *arena_alloc(struct arena *a, size_t count, size_t size, struct error *e);

/* The same for an array that grows: `old` is NULL or an earlier result of arena_grow, whose things
 * are kept. There is room for at least *count things, which must be more than `old` holds; *count
 * becomes the number that there is room for. Nothing is copied where the system can move pages. On
 * failure `old` stays valid. */
void *arena_grow(struct arena *a, void *old, size_t *count, size_t size, struct error *e);

/* Frees one of the things before the others, which is not used any more: the only one in a block of
 * its own, as a result of arena_alloc of so many bytes is if they are many. The others stay. */
void arena_release(struct arena *a, void *data, size_t bytes);

/* Frees everything and gives the bytes back; the arena is empty and usable again. */
void arena_free(struct arena *a);

/* The same a little at a time, for a thread that others wait for: giving pages back to the system
 * takes its time for each of them. arena_give moves all that `from` has, which is then empty, into
 * an arena of the same budget, to which it stays charged; arena_free_some frees 16 MiB of it, or up
 * to 80 where blocks are kept (ARENA_KEPT_MOST), and returns whether anything is left. */
void arena_give(struct arena *from, struct arena *to);
bool arena_free_some(struct arena *a);

#endif
