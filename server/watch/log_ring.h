/* log_ring: lines on their way to a descriptor, and the thread that writes them.
 *
 * Bounded: a full ring drops the line and counts it, and so does a descriptor that takes none, so
 * that nobody waits for whoever reads the log. When lines are taken again, one of them says how
 * many were lost. A line leaves whole or not at all: writes hold whole lines and are at most
 * PIPE_BUF long, and where a disk took half a line, the rest of it comes first once there is room.
 *
 * log_ring_push and the looks at it: any thread. */
#ifndef SERVER_LOG_RING_H
#define SERVER_LOG_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/run/status.h"

enum { LOG_LINE_SIZE = 2048 };

struct log_ring;

/* What the thread says by itself; called there alone. Each writes a line to `text` and returns its
 * length. */
struct log_voice {
  void *of;
  size_t (*lost)(void *of, uint64_t lines, char text[LOG_LINE_SIZE]);
  /* A line that is due by now, or at the `end` in any case; 0: none. `*later` is set if one will be
   * due without any push. NULL: never any. */
  size_t (*due)(void *of, bool end, bool *later, char text[LOG_LINE_SIZE]);
};

/* `lines` is a power of two. NULL with an error. */
struct log_ring *log_ring_new(int fd, size_t lines, const struct log_voice *voice, struct error *e);

/* Writes what is there, for a bounded time, and frees. False: the thread hangs in a write and keeps
 * what it uses, to which `of` belongs. NULL is fine. */
bool log_ring_free(struct log_ring *r);

void log_ring_push(struct log_ring *r, const char *text, size_t size); /* at most LOG_LINE_SIZE */

void log_ring_wake(struct log_ring *r); /* there is something new for `due` */

uint64_t log_ring_dropped(const struct log_ring *r); /* lines lost so far */

#endif
