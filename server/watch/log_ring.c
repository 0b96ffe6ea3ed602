/* log_ring: lines on their way to a descriptor, and the thread that writes them. */
#include "server/watch/log_ring.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/thread.h"

enum {
  FLUSH_MS = 500, /* at the end, for a slow reader */
  HANG_MS = 250,  /* and then, for a write to return */
  COLLECT_MS = 1, /* after a write, so that the next one has more than one line */
  LOOK_MS = 100,  /* between two looks at the time, if lines will be due after some time */
  LOST_MS = 1000  /* between two lines about lost ones */
};

/* Line number n goes into slot n modulo `lines`. `turn` == n: the slot is free for it; n + 1: the
 * slot holds it. Many threads push, one removes lines, and none takes a lock. */
struct log_ring_slot {
  _Atomic uint64_t turn;
  unsigned size;
  char line[LOG_LINE_SIZE];
};

struct log_ring {
  int fd;
  int wake; /* eventfd on which the thread sleeps */
  size_t lines;
  struct log_ring_hooks hooks;
  struct log_ring_slot *slot; /* [lines] */
  pthread_t thread;
  _Alignas(64) _Atomic uint64_t pushed;  /* the number of the next line to be pushed */
  atomic_bool asleep, woken;             /* woken: by log_ring_wake */
  _Alignas(64) _Atomic uint64_t dropped; /* lines */
  atomic_bool stop, ended;
  /* Members of the thread alone. */
  uint64_t collected;             /* the number of the next line to be removed */
  uint64_t reported, reported_at; /* how many of `dropped` the last report counted, and its time */
  uint64_t give_up;               /* the time at which the thread stops writing; 0: not ending */
  size_t size;
  bool cut;            /* `text` begins with the rest of a line */
  bool reporting;      /* `text` is a report of lost lines, which does not count as lost itself */
  char text[PIPE_BUF]; /* [size] being written */
};

/* --- any thread --- */

static void count_dropped(struct log_ring *r, uint64_t lines) {
  atomic_fetch_add_explicit(&r->dropped, lines, memory_order_relaxed);
}

static void wake_thread(struct log_ring *r) {
  if (atomic_load(&r->asleep) && atomic_exchange(&r->asleep, false))
    (void)!write(r->wake, &(uint64_t){1}, sizeof(uint64_t));
}

void log_ring_wake(struct log_ring *r) {
  atomic_store(&r->woken, true);
  wake_thread(r);
}

void log_ring_push(struct log_ring *r, const char *line, size_t size) {
  uint64_t turn = atomic_load_explicit(&r->pushed, memory_order_relaxed);
  for (;;) {
    uint64_t at = atomic_load_explicit(&r->slot[turn % r->lines].turn, memory_order_acquire);
    if (at < turn) { /* the slot still holds the line of the round before: the ring is full */
      count_dropped(r, 1);
      return;
    }
    if (at > turn)
      turn = atomic_load_explicit(&r->pushed, memory_order_relaxed);
    else if (atomic_compare_exchange_weak(&r->pushed, &turn, turn + 1))
      break;
  }
  struct log_ring_slot *slot = &r->slot[turn % r->lines];
  memcpy(slot->line, line, size);
  slot->size = (unsigned)size;
  atomic_store(&slot->turn, turn + 1);
  wake_thread(r);
}

uint64_t log_ring_dropped(const struct log_ring *r) {
  return atomic_load_explicit(&r->dropped, memory_order_relaxed);
}

/* --- the thread --- */

/* The next line, or NULL. */
static struct log_ring_slot *first_slot(struct log_ring *r) {
  struct log_ring_slot *slot = &r->slot[r->collected % r->lines];
  return atomic_load(&slot->turn) == r->collected + 1 ? slot : NULL;
}

/* Waits until the descriptor accepts PIPE_BUF bytes. False: the ring is being freed, and the time
 * for its last lines is over. */
static bool wait_until_writable(struct log_ring *r) {
  struct pollfd p = {.fd = r->fd, .events = POLLOUT};
  for (;;) {
    if (r->give_up && clock_now() >= r->give_up) return false;
    if (poll(&p, 1, LOOK_MS) > 0) return true;
    if (!r->give_up && atomic_load(&r->stop))
      r->give_up = clock_now() + FLUSH_MS * (uint64_t)CLOCK_MS;
  }
}

/* The descriptor accepted only `done` bytes of r->text. Keeps the rest of the line that they end
 * in; the lines after it are lost. */
static void keep_rest_of_line(struct log_ring *r, size_t done) {
  uint64_t left = 0;
  for (size_t i = done; i < r->size; i++) left += r->text[i] == '\n';
  size_t size = 0;
  if (done) r->cut = r->text[done - 1] != '\n';
  if (r->cut) {
    size = (size_t)((char *)memchr(r->text + done, '\n', r->size - done) - r->text) + 1 - done;
    memmove(r->text, r->text + done, size);
    left--;
  }
  r->size = size;
  if (!r->reporting) count_dropped(r, left);
}

/* Writes r->text. False: the descriptor failed, and r->text is the rest of a line, which must be
 * written first next time. */
static bool write_text(struct log_ring *r) {
  for (size_t done = 0; done < r->size;) {
    if (!wait_until_writable(r)) {
      keep_rest_of_line(r, done);
      return false;
    }
    ssize_t n = write(r->fd, r->text + done, r->size - done);
    if (n > 0)
      done += (size_t)n;
    else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
      keep_rest_of_line(r, done);
      return false;
    }
  }
  r->size = 0;
  r->cut = false;
  return true;
}

/* Moves lines from the ring to r->text, as many as there are and fit. */
static void collect_lines(struct log_ring *r) {
  for (struct log_ring_slot *slot;
       (slot = first_slot(r)) && r->size + slot->size <= sizeof r->text;) {
    memcpy(r->text + r->size, slot->line, slot->size);
    r->size += slot->size;
    atomic_store_explicit(&slot->turn, r->collected + r->lines, memory_order_release);
    r->collected++;
  }
}

/* Writes a line that is not in the ring. */
static bool write_own_line(struct log_ring *r, const char *line, size_t size) {
  memcpy(r->text, line, size);
  r->size = size;
  return write_text(r);
}

/* Writes the lines of the hooks. True: there will be more, even if nothing is pushed. */
static bool write_own_lines(struct log_ring *r, bool end) {
  char line[LOG_LINE_SIZE];
  bool later = false;
  atomic_store(&r->woken, false);
  if (r->size) return true; /* the rest of a line must be written first */
  const uint64_t lost = log_ring_dropped(r), now = clock_now();
  if (lost != r->reported && (end || now >= r->reported_at + LOST_MS * (uint64_t)CLOCK_MS)) {
    r->reported_at = now;
    r->reporting = true;
    const size_t size = r->hooks.write_lost(r->hooks.of, lost - r->reported, line);
    if (write_own_line(r, line, size) || r->size) r->reported = lost;
    r->reporting = false;
  }
  while (!r->size && r->hooks.write_due) {
    const size_t size = r->hooks.write_due(r->hooks.of, end, &later, line);
    if (size == 0 || !write_own_line(r, line, size)) break;
  }
  return later || log_ring_dropped(r) != r->reported;
}

/* Sleeps until there is something to do, or for `wait` ms; -1: without a limit. */
static void sleep_until_woken(struct log_ring *r, int wait) {
  struct pollfd p = {.fd = r->wake, .events = POLLIN};
  uint64_t count;
  atomic_store(&r->asleep, true);
  if (!first_slot(r) && !atomic_load(&r->woken) && !atomic_load(&r->stop) && poll(&p, 1, wait) > 0)
    (void)!read(r->wake, &count, sizeof count);
  atomic_store(&r->asleep, false);
}

static void *log_ring_main(void *of) {
  static const struct timespec moment = {.tv_nsec = COLLECT_MS * (long)CLOCK_MS};
  struct log_ring *r = of;
  thread_name("attend-log");
  for (;;) {
    const bool end = atomic_load(&r->stop);
    const bool some = first_slot(r) != NULL;
    while (r->size || first_slot(r)) { /* r->size: the rest of a line, maybe with none after it */
      collect_lines(r);
      if (!write_text(r)) break;
    }
    const bool later = write_own_lines(r, end && !first_slot(r));
    if (end && !first_slot(r)) break;
    if (some && !end)
      nanosleep(&moment, NULL);
    else
      sleep_until_woken(r, later ? LOOK_MS : -1);
  }
  atomic_store(&r->ended, true);
  return NULL;
}

/* --- making and freeing --- */

static void release_ring(struct log_ring *r) {
  if (r->wake >= 0) close(r->wake);
  free(r->slot);
  free(r);
}

struct log_ring *log_ring_new(int fd, size_t lines, const struct log_ring_hooks *hooks,
                              struct error *e) {
  struct log_ring *r = aligned_alloc(_Alignof(struct log_ring), sizeof *r);
  if (!r) {
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the log");
    return NULL;
  }
  *r = (struct log_ring){.fd = fd, .lines = lines, .hooks = *hooks};
  r->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  r->slot = calloc(lines, sizeof *r->slot);
  for (uint64_t i = 0; r->slot && i < lines; i++) atomic_init(&r->slot[i].turn, i);
  if (r->wake < 0)
    error_set(e, STATUS_SYSTEM, "eventfd: %s", strerror(errno));
  else if (!r->slot)
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the log");
  else {
    int failed = pthread_create(&r->thread, NULL, log_ring_main, r);
    if (!failed) return r;
    error_set(e, STATUS_SYSTEM, "log thread: %s", strerror(failed));
  }
  release_ring(r);
  return NULL;
}

bool log_ring_free(struct log_ring *r) {
  static const struct timespec moment = {.tv_nsec = CLOCK_MS};
  if (!r) return true;
  atomic_store(&r->stop, true);
  (void)!write(r->wake, &(uint64_t){1}, sizeof(uint64_t));
  const uint64_t until = clock_now() + (FLUSH_MS + LOOK_MS + HANG_MS) * (uint64_t)CLOCK_MS;
  while (!atomic_load(&r->ended) && clock_now() < until) nanosleep(&moment, NULL);
  if (!atomic_load(&r->ended)) {
    pthread_detach(r->thread);
    return false;
  }
  pthread_join(r->thread, NULL);
  release_ring(r);
  return true;
}
