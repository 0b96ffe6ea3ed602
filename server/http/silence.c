/* silence: the streams of an I/O thread that wait for more to say. */
#include "server/http/silence.h"

#include <limits.h>
#include <stddef.h>

#include "core/base/clock.h"

void silence_begin(struct silence *s, struct silent *w, uint64_t now) {
  *w = (struct silent){.previous = s->last, .waits = true, .since = now};
  *(s->last ? &s->last->next : &s->first) = w;
  s->last = w;
}

void silence_end(struct silence *s, struct silent *w) {
  if (!w->waits) return;
  *(w->next ? &w->next->previous : &s->last) = w->previous;
  *(w->previous ? &w->previous->next : &s->first) = w->next;
  w->waits = false;
}

struct silent *silence_over(struct silence *s, uint64_t now) {
  struct silent *w = s->first;
  if (!w || now < w->since + s->most) return NULL;
  silence_end(s, w);
  w->over = true;
  return w;
}

int silence_left_ms(const struct silence *s, uint64_t now) {
  if (!s->first) return -1;
  const uint64_t end = s->first->since + s->most;
  const uint64_t ms = end > now ? (end - now) / CLOCK_MS + 1 : 0;
  return ms < INT_MAX ? (int)ms : INT_MAX;
}
