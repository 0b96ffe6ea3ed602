/* lobby: the line of requests that wait for a place in a full queue. */
#include "server/http/lobby.h"

#include "core/base/clock.h"

enum { TURN_MS = 50 };

bool lobby_is_needed(const struct lobby *l) { return l->first || pool_room(l->pool) == 0; }

void lobby_join(struct lobby *l, struct lobby_waiter *w, uint64_t now, uint64_t most_ms) {
  *w = (struct lobby_waiter){.previous = l->last, .waits = true, .until = now + most_ms * CLOCK_MS};
  *(l->last ? &l->last->next : &l->first) = w;
  l->last = w;
}

static void unlink_waiter(struct lobby *l, struct lobby_waiter *w) {
  *(w->next ? &w->next->previous : &l->last) = w->previous;
  *(w->previous ? &w->previous->next : &l->first) = w->next;
  w->waits = false;
}

void lobby_leave(struct lobby *l, struct lobby_waiter *w) {
  if (w->waits) unlink_waiter(l, w);
  if (w->enters && w->called == l->turn) l->entering--;
  w->enters = false;
}

struct lobby_waiter *lobby_call(struct lobby *l, uint64_t now) {
  struct lobby_waiter *w = l->first;
  if (!w) return NULL;
  if (now >= l->turn_ends) {
    l->turn++;
    l->turn_ends = now + TURN_MS * CLOCK_MS;
    l->entering = 0;
  }
  const bool place = l->entering * l->threads < pool_room(l->pool);
  if (!place && now < w->until) return NULL;
  unlink_waiter(l, w);
  w->enters = place;
  w->called = l->turn;
  l->entering += place;
  return w;
}

struct lobby_waiter *lobby_close(struct lobby *l) {
  struct lobby_waiter *w = l->first;
  if (w) unlink_waiter(l, w);
  return w;
}
