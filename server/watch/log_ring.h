/* log_ring: lines on their way to a descriptor, and the thread that writes them.
 *
 * Memory and time are bounded: a full ring drops the line and counts it, and so does a descriptor
 * that accepts no bytes, so that a log without a reader delays no thread of the server. When the
 * descriptor accepts bytes again, a line says how many lines were lost. A line is written whole or
 * not at all: writes hold whole lines and at most PIPE_BUF bytes, which a pipe accepts in one
 * piece. If a full disk accepted half a line, its rest is written first once there is room.
 *
 * Any thread may call all functions except log_ring_new and log_ring_free. */
#ifndef SERVER_LOG_RING_H
#define SERVER_LOG_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

enum { LOG_LINE_SIZE = 2048 };

struct log_ring;

/* Lines that the ring's thread adds by itself; only this thread calls them. Each writes one line
 * and returns its length. */
struct log_ring_hooks {
  void *of;
  size_t (*write_lost)(void *of, uint64_t lines, char line[LOG_LINE_SIZE]);
  /* A line that is due now, or in any case at the `end`; 0: none. Sets `*later` if one will be due
   * after some time, without a push. NULL: there are no such lines. */
  size_t (*write_due)(void *of, bool end, bool *later, char line[LOG_LINE_SIZE]);
};

/* `lines` is a power of two. NULL with an error. */
struct log_ring *log_ring_new(int fd, size_t lines, const struct log_ring_hooks *hooks,
                              struct error *e);

/* Writes the lines in the ring, for a bounded time, and frees. False: the thread hangs in a write
 * and keeps the ring and the object at `of`. `r` may be NULL. */
bool log_ring_free(struct log_ring *r);

void log_ring_push(struct log_ring *r, const char *line, size_t size); /* at most LOG_LINE_SIZE */

void log_ring_wake(struct log_ring *r); /* write_due has something new */

uint64_t log_ring_dropped(const struct log_ring *r); /* lines lost so far */

#endif
