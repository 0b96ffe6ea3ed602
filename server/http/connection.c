/* connection: our record of each open connection. */
#include "server/http/connection_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/size.h"
#include "server/http/reply.h"

/* How often an end of stream is shown to libmicrohttpd, which may ignore it. */
enum { SHOWN_MAX = 4096 };

/* --- one connection, on its I/O thread --- */

static void wake_reaper(struct connections *all) {
  (void)!write(all->wake, &(uint64_t){1}, sizeof(uint64_t));
}

void connection_open(struct connections *all, struct connection *c, int fd) {
  *c = (struct connection){.fd = fd};
  atomic_init(&c->state, connection_state_now(CONNECTION_FRESH));
  pthread_mutex_lock(&all->lock);
  c->serial = ++all->serial;
  c->next = all->first;
  if (c->next) c->next->previous = c;
  all->first = c;
  bool sleeping = all->count++ == 0 && all->lingering == 0;
  pthread_mutex_unlock(&all->lock);
  if (sleeping) wake_reaper(all);
}

/* With the lock held. False: too many linger already. */
static bool add_lingering(struct connections *all, int fd) {
  if (all->lingering == LINGER_MAX) return false;
  all->leaving[all->lingering++] = (struct connection_leaving){
      .fd = fd, .until = connection_now_ms() + LINGER_MS, .bytes = LINGER_BYTES};
  return true;
}

void connection_close(struct connections *all, struct connection *c) {
  /* A copy of the descriptor outlives libmicrohttpd's close. Without it, bytes that the client
   * still sends would cause a reset, which may reach the client before it has read its response. */
  int copy = c->discard ? fcntl(c->fd, F_DUPFD_CLOEXEC, 0) : -1;
  pthread_mutex_lock(&all->lock);
  if (c->next) c->next->previous = c->previous;
  if (c->previous)
    c->previous->next = c->next;
  else
    all->first = c->next;
  all->count--;
  const bool lingers = copy >= 0 && add_lingering(all, copy);
  pthread_mutex_unlock(&all->lock);
  if (lingers)
    wake_reaper(all);
  else if (copy >= 0)
    close(copy);
}

void connections_linger(struct connections *all, int fd) {
  pthread_mutex_lock(&all->lock);
  const bool lingers = add_lingering(all, fd);
  pthread_mutex_unlock(&all->lock);
  if (lingers)
    wake_reaper(all);
  else
    close(fd);
}

bool connection_half_closed(struct connection *c) {
  c->half_closed = true;
  if (connection_phase(c) > CONNECTION_BODY || c->shown == SHOWN_MAX) return false;
  c->shown++;
  connection_show_end(c);
  return true;
}

enum connection_phase connection_enter(struct connection *c, enum connection_phase phase) {
  uint64_t was = atomic_load(&c->state);
  do {
    if (connection_is_ended(connection_state_phase(was))) break;
  } while (!atomic_compare_exchange_weak(&c->state, &was, connection_state_now(phase)));
  return connection_state_phase(was);
}

enum connection_phase connection_phase(struct connection *c) {
  return connection_state_phase(atomic_load_explicit(&c->state, memory_order_acquire));
}

/* --- the set --- */

struct connections *connections_new(const struct connection_times *t, struct metrics *m,
                                    struct keep *keep, struct error *e) {
  struct connections *all = calloc(1, sizeof *all);
  if (!all) {
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the connections");
    return NULL;
  }
  all->metrics = m;
  all->keep = keep;
  all->times = *t;
  uint64_t least = size_min(size_min(t->header_ms, t->body_ms), size_min(t->answer_ms, t->idle_ms));
  all->tick_ms = size_min(CONNECTION_TICK_MS, size_max(least / 8, 1));
  pthread_mutex_init(&all->lock, NULL);
  all->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  int failed = all->wake < 0 ? errno : pthread_create(&all->thread, NULL, connection_reaper, all);
  if (failed) {
    error_set(e, STATUS_SYSTEM, "reaper thread: %s", strerror(failed));
    connections_free(all);
    return NULL;
  }
  all->running = true;
  return all;
}

void connections_free(struct connections *all) {
  if (!all) return;
  if (all->running) {
    atomic_store(&all->stop, true);
    wake_reaper(all);
    pthread_join(all->thread, NULL);
  }
  for (size_t i = 0; i < all->lingering; i++) close(all->leaving[i].fd);
  if (all->wake >= 0) close(all->wake);
  pthread_mutex_destroy(&all->lock);
  free(all);
}

void connections_drain(struct connections *all) {
  atomic_store(&all->draining, size_max(connection_now_ms(), 1));
  wake_reaper(all);
}

void connections_ask(struct connections *all) {
  pulse_ask(&all->pulse);
  wake_reaper(all);
}

bool connections_answered(struct connections *all) { return pulse_answered(&all->pulse); }

void connections_make_room(struct connections *all, size_t most) {
  struct connection *first = NULL;
  uint64_t seen = 0, first_since = 0;
  bool first_receives = false;
  size_t open = 0;
  pthread_mutex_lock(&all->lock);
  for (struct connection *c = all->first; c; c = c->next) {
    const uint64_t state = atomic_load(&c->state), since = connection_state_since_ms(state);
    if (connection_state_phase(state) > CONNECTION_ANSWER) continue;
    open++;
    /* A connection that waits for (the rest of) a request is ended before one that waits for a
     * response, and of two of the same kind the older one. */
    const bool receives = connection_state_phase(state) <= CONNECTION_BODY;
    if (first && (first_receives != receives ? first_receives : first_since <= since)) continue;
    first = c;
    seen = state;
    first_since = since;
    first_receives = receives;
  }
  if (first && open >= most && connection_move(first, seen, CONNECTION_SLOW_READER))
    shutdown(first->fd, SHUT_RDWR);
  pthread_mutex_unlock(&all->lock);
}

size_t connections_busy(struct connections *all) {
  size_t n = 0;
  pthread_mutex_lock(&all->lock);
  for (struct connection *c = all->first; c; c = c->next) {
    enum connection_phase p = connection_state_phase(atomic_load(&c->state));
    n += p != CONNECTION_IDLE && p != CONNECTION_OVER_IDLE && !connection_is_ended(p);
  }
  pthread_mutex_unlock(&all->lock);
  return n;
}

size_t connections_queued(struct connections *all) {
  size_t n = 0;
  pthread_mutex_lock(&all->lock);
  for (struct connection *c = all->first; c; c = c->next)
    n += connection_state_phase(atomic_load(&c->state)) == CONNECTION_QUEUED;
  pthread_mutex_unlock(&all->lock);
  return n;
}

size_t connections_count(struct connections *all) {
  pthread_mutex_lock(&all->lock);
  size_t n = all->count;
  pthread_mutex_unlock(&all->lock);
  return n;
}

uint64_t connections_opened(struct connections *all) {
  pthread_mutex_lock(&all->lock);
  const uint64_t n = all->serial;
  pthread_mutex_unlock(&all->lock);
  return n;
}
