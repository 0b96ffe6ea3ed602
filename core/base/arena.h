/* arena: the memory of one request (or of loading a model), charged to a budget and freed whole.
 *
 * An arena belongs to one thread at a time. Its memory is aligned to 64 bytes, not cleared, and
 * valid until arena_free. A budget is shared by all arenas of the process and may be used by any
 * thread. */
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
  struct keep *keep;  /* cache of freed large blocks, uncharged; NULL: only malloc */
  /* Returns up to `bytes` of charged memory that is not needed, such as a prefix cache, to the
   * budget; false: there is none. Called before an allocation fails, on any thread. NULL: none. */
  bool (*give_way)(void *of, size_t bytes);
  void *giving;
};

void budget_init(struct budget *b, size_t limit);

/* Charge and return memory outside of arenas. False: the budget is full, and nothing is charged. */
bool budget_charge(struct budget *b, size_t bytes);
void budget_return(struct budget *b, size_t bytes);

struct arena_block;

struct arena {
  struct budget *budget;     /* NULL: nothing is charged or kept */
  struct arena_block *block; /* newest first */
  char *next, *end;          /* the rest of the current small block */
  size_t bytes;              /* charged so far */
  size_t beside;             /* charged outside of it for the same request */
};

void arena_init(struct arena *a, struct budget *budget);

/* Bytes of a block that may be cached; larger ones are returned to the system page by page. */
enum { ARENA_KEPT_MOST = 64 << 20 };

/* Allocates `count` things of `size` bytes. NULL with an error: STATUS_OVERLOADED if the budget is
 * full, STATUS_OUT_OF_MEMORY if malloc fails, STATUS_TOO_LARGE if the product overflows or the
 * request alone exceeds the budget, so that a retry would not help. */
void *arena_alloc(struct arena *a, size_t count, size_t size, struct error *e);

/* Grows an array: `old` is NULL or an earlier result of arena_grow, whose contents are kept. The
 * result has room for at least *count things, which must be more than `old` has; *count becomes the
 * actual number. Nothing is copied if the system can move pages. On failure `old` stays valid. */
void *arena_grow(struct arena *a, void *old, size_t *count, size_t size, struct error *e);

/* Frees one result of arena_alloc, of `bytes` bytes, before the others, if it is large enough to
 * have its own block; else it stays until arena_free. */
void arena_release(struct arena *a, void *data, size_t bytes);

/* Charge and return memory outside of it for the same request. False with the error that
 * arena_alloc has. */
bool arena_charge_beside(struct arena *a, size_t bytes, struct error *e);
void arena_return_beside(struct arena *a, size_t bytes);

/* Frees everything and returns the bytes to the budget; the arena is empty and usable again. */
void arena_free(struct arena *a);

/* Free everything a little at a time, on a thread that others wait for: returning pages to the
 * system takes time for each page. arena_give moves all memory of `from`, which is then empty, into
 * an arena of the same budget, where it stays charged. arena_free_some frees 16 MiB, or up to 80
 * MiB if blocks are cached (ARENA_KEPT_MOST), and returns whether anything is left. */
void arena_give(struct arena *from, struct arena *to);
bool arena_free_some(struct arena *a);

#endif
