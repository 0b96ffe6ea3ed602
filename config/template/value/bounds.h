/* bounds: the memory, steps and depth that one template may use, and the place of its failure.
 *
 * A template is foreign data: what reads or renders one allocates, counts and fails through here.
 * Memory belongs to the arena and is freed with it. One thread at a time. */
#ifndef CONFIG_BOUNDS_H
#define CONFIG_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/patience.h"

struct bounds {
  struct arena *arena;
  char *next, *end;          /* the rest of a block of the arena for small things */
  size_t bytes;              /* that may still be allocated */
  uint64_t steps;            /* that may still be taken */
  size_t part;               /* bytes of texts that are not yet a step */
  uint64_t ask_at;           /* steps left at which the caller's patience is asked next */
  struct patience *patience; /* of the caller; or NULL */
  unsigned depth;            /* levels that may still be entered */
  const char *source;        /* of the template, which the place of a failure refers to */
  size_t at;                 /* byte of the source that is read or evaluated */
  struct error *e;           /* gets the first failure */
};

/* Allocates memory that is not cleared, aligned to 8 bytes. NULL after a failure. */
void *bounds_alloc(struct bounds *b, size_t bytes);
char *bounds_copy(struct bounds *b, const char *text, size_t length); /* a zero follows */

/* Grows an array, of which `*room` things of `size` bytes are allocated, to hold `count`. */
bool bounds_grow(struct bounds *b, void *array, size_t *room, size_t count, size_t size);

/* Takes as many steps, before the work that they stand for. False after a failure: there are too
 * many, or the caller's patience has ended. */
bool bounds_step(struct bounds *b, size_t steps);

/* Takes the steps of work on as many bytes of texts, before it; a rest counts for the next one.
 * False after a failure. */
bool bounds_text(struct bounds *b, size_t bytes);

/* Enters a level, of recursion in this program, and leaves it again. False: there are too many. */
bool bounds_enter(struct bounds *b);
void bounds_leave(struct bounds *b);

/* Fails with STATUS_INVALID_REQUEST, "line L, column C: " and the message. Returns false. */
bool bounds_fail(struct bounds *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
