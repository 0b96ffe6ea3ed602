/* arena: the memory of one request (or one load), charged to a budget and freed whole.
 *
 * An arena belongs to one thread at a time. What it hands out is aligned to 64 bytes, not cleared,
 * and lives until arena_free. A budget is shared by all arenas of the process and may be used from
 * any thread. */
#ifndef CORE_ARENA_H
#define CORE_ARENA_H

#include <stdatomic.h>
#include <stddef.h>

#include "core/run/keep.h"
#include "core/run/status.h"

struct budget {
  atomic_size_t used; /* bytes */
  size_t limit;       /* bytes; fixed after budget_init */
  struct keep *keep;  /* where large blocks go to and come from, uncharged meanwhile; NULL: to and
                         from malloc */
};

void budget_init(struct budget *b, size_t limit);

struct arena_block;

struct arena {
  struct budget *budget;     /* NULL: not charged to anyone, nothing kept */
  struct arena_block *block; /* newest first */
  char *next, *end;          /* what is left of the current small block */
  size_t bytes;              /* charged so far */
  size_t beside;             /* what the same request has charged elsewhere */
};

void arena_init(struct arena *a, struct budget *budget);

/* `count` things of `size` bytes. NULL with an error: STATUS_OVERLOADED if the budget is full,
 * STATUS_OUT_OF_MEMORY if malloc fails, STATUS_TOO_LARGE if the product overflows or the request
 * alone would go over the budget, whatever others hold: to try again would not help. */
void *arena_alloc(struct arena *a, size_t count, size_t size, struct error *e);

/* The same for an array that grows: `old` is NULL or what an earlier arena_grow returned, whose
 * things stay as they are. At least *count, more than `old` holds; *count becomes how many there is
 * room for. Costs no copy where the system can move pages. On failure `old` stays valid. */
void *arena_grow(struct arena *a, void *old, size_t *count, size_t size, struct error *e);

/* Frees everything and gives the bytes back; the arena is empty and usable again. */
void arena_free(struct arena *a);

#endif
