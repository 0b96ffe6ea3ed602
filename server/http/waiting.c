/* waiting: the requests of an I/O thread that wait, each until a time. */
#include "server/http/waiting.h"

#include <limits.h>

#include "core/base/clock.h"

enum { TURN_MS = 50 };

static void add_waiter(struct waiting *line, struct waiter *w, uint64_t until) {
  *w = (struct waiter){.previous = line->last, .until = until, .waits = true};
  *(line->last ? &line->last->next : &line->first) = w;
  line->last = w;
}

static void remove_waiter(struct waiting *line, struct waiter *w) {
  if (!w->waits) return;
  *(w->next ? &w->next->previous : &line->last) = w->previous;
  *(w->previous ? &w->previous->next : &line->first) = w->next;
  w->waits = false;
}

/* --- the lobby --- */

bool lobby_is_needed(const struct lobby *l) { return l->line.first || pool_room(l->pool) == 0; }

void lobby_join(struct lobby *l, struct lobby_waiter *w, uint64_t now, uint64_t most_ms) {
  *w = (struct lobby_waiter){0};
  add_waiter(&l->line, &w->line, now + most_ms * CLOCK_MS);
}

void lobby_leave(struct lobby *l, struct lobby_waiter *w) {
  remove_waiter(&l->line, &w->line);
  if (w->enters && w->called == l->turn) l->entering--;
  w->enters = false;
}

struct lobby_waiter *lobby_call(struct lobby *l, uint64_t now) {
  struct lobby_waiter *w = (struct lobby_waiter *)l->line.first;
  if (!w) return NULL;
  if (now >= l->turn_ends) {
    l->turn++;
    l->turn_ends = now + TURN_MS * CLOCK_MS;
    l->entering = 0;
  }
  const bool place = l->entering * l->threads < pool_room(l->pool);
  if (!place && now < w->line.until) return NULL;
  remove_waiter(&l->line, &w->line);
  w->enters = place;
  w->called = l->turn;
  l->entering += place;
  return w;
}

struct lobby_waiter *lobby_close(struct lobby *l) {
  struct waiter *w = l->line.first;
  if (w) remove_waiter(&l->line, w);
  return (struct lobby_waiter *)w;
}

/* --- the silence --- */

void silence_begin(struct silence *s, struct silent *w, uint64_t now) {
  *w = (struct silent){0};
  add_waiter(&s->line, &w->line, now + s->most);
}

void silence_end(struct silence *s, struct silent *w) { remove_waiter(&s->line, &w->line); }

struct silent *silence_over(struct silence *s, uint64_t now) {
  struct silent *w = (struct silent *)s->line.first;
  if (!w || now < w->line.until) return NULL;
  remove_waiter(&s->line, &w->line);
  w->over = true;
  return w;
}

int silence_left_ms(const struct silence *s, uint64_t now) {
  if (!s->line.first) return -1;
  const uint64_t end = s->line.first->until;
  const uint64_t ms = end > now ? (end - now) / CLOCK_MS + 1 : 0;
  return ms < INT_MAX ? (int)ms : INT_MAX;
}
