/* silence: the streams of an I/O thread that wait for more to say, in the order in which they fell
 * silent. One that has been silent for so long says that it is there: whoever passes it on would
 * give it up, or never learn that its reader has left. The thread's own. */
#ifndef SERVER_SILENCE_H
#define SERVER_SILENCE_H

#include <stdbool.h>
#include <stdint.h>

struct silent {
  struct silent *next, *previous;
  bool waits;     /* it is among them */
  bool over;      /* it was taken out by silence_over */
  uint64_t since; /* clock_now */
};

struct silence {
  uint64_t most; /* nanoseconds; set before the first call */
  struct silent *first, *last;
};

void silence_begin(struct silence *s, struct silent *w, uint64_t now);
void silence_end(struct silence *s,
                 struct silent *w); /* fine at any time, also where it is zeroed */

/* Takes out the first one that has been silent for long enough; NULL: none has. */
struct silent *silence_over(struct silence *s, uint64_t now);

/* Milliseconds until one will have been; -1: there is none. */
int silence_left_ms(const struct silence *s, uint64_t now);

#endif
