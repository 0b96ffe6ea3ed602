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

#include "core/run/clock.h"
#include "core/run/thread.h"

enum {
  FLUSH_MS = 500, /* for a reader that is slow at the end */
  HANG_MS = 250,  /* and then for a write to return */
  GATHER_MS = 1,  /* after a write, so that the next one has more than one line */
  TICK_MS = 100,  /* how often is looked when something is due later */
  LOST_MS = 1000  /* how often is told that lines were lost */
};

/* A slot is free for the writer of turn `t` when turn == t, and full for the reader of that turn
 * when turn == t + 1: many writers, one reader, no lock. */
struct line {
  _Atomic uint64_t turn;
  unsigned size;
  char text[LOG_LINE_SIZE];
};

struct log_ring {
  int fd;
  int wake; /* eventfd on which the thread sleeps */
  size_t lines;
  struct log_voice voice;
  struct line *line; /* [lines] */
  pthread_t thread;
  _Alignas(64) _Atomic uint64_t tail;
  atomic_bool asleep, poked;
  _Alignas(64) _Atomic uint64_t dropped;
  atomic_bool stop, ended;
  /* The thread's own. */
  uint64_t head;
  uint64_t told, told_at; /* of `dropped`: so many, and when */
  uint64_t give_up;       /* when the end is not waited for any more; 0: not ending */
  size_t size;
  bool cut;            /* `text` begins with the rest of a line */
  bool own;            /* `text` is the word of lost lines, which is none of them */
  char text[PIPE_BUF]; /* being written */
};

/* --- any thread --- */

static void count_dropped(struct log_ring *r, uint64_t lines) {
  atomic_fetch_add_explicit(&r->dropped, lines, memory_order_relaxed);
}

static void rouse(struct log_ring *r) {
  if (atomic_load(&r->asleep) && atomic_exchange(&r->asleep, false))
    (void)!write(r->wake, &(uint64_t){1}, sizeof(uint64_t));
}

void log_ring_wake(struct log_ring *r) {
  atomic_store(&r->poked, true);
  rouse(r);
}

void log_ring_push(struct log_ring *r, const char *text, size_t size) {
  uint64_t turn = atomic_load_explicit(&r->tail, memory_order_relaxed);
  for (;;) {
    uint64_t at = atomic_load_explicit(&r->line[turn % r->lines].turn, memory_order_acquire);
    if (at < turn) { /* a full round behind: the ring is full */
      count_dropped(r, 1);
      return;
    }
    if (at > turn)
      turn = atomic_load_explicit(&r->tail, memory_order_relaxed);
    else if (atomic_compare_exchange_weak(&r->tail, &turn, turn + 1))
      break;
  }
  struct line *line = &r->line[turn % r->lines];
  memcpy(line->text, text, size);
  line->size = (unsigned)size;
  atomic_store(&line->turn, turn + 1);
  rouse(r);
}

uint64_t log_ring_dropped(const struct log_ring *r) {
  return atomic_load_explicit(&r->dropped, memory_order_relaxed);
}

/* --- the thread --- */

static struct line *front(struct log_ring *r) {
  struct line *line = &r->line[r->head % r->lines];
  return atomic_load(&line->turn) == r->head + 1 ? line : NULL;
}

/* Waits until the descriptor takes PIPE_BUF bytes. False: the log is to end, and the time for that
 * is over. */
static bool writable(struct log_ring *r) {
  struct pollfd p = {.fd = r->fd, .events = POLLOUT};
  for (;;) {
    if (r->give_up && clock_now() >= r->give_up) return false;
    if (poll(&p, 1, TICK_MS) > 0) return true;
    if (!r->give_up && atomic_load(&r->stop))
      r->give_up = clock_now() + FLUSH_MS * (uint64_t)CLOCK_MS;
  }
}

/* After `done` bytes no more could be written: the rest of a line that has begun stays, the lines
 * behind it are lost. */
static void keep_rest(struct log_ring *r, size_t done) {
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
  if (!r->own) count_dropped(r, left);
}

/* Writes r->text. False: it could not, and r->text holds what must come first next time. */
static bool flush(struct log_ring *r) {
  for (size_t done = 0; done < r->size;) {
    if (!writable(r)) {
      keep_rest(r, done);
      return false;
    }
    ssize_t n = write(r->fd, r->text + done, r->size - done);
    if (n > 0)
      done += (size_t)n;
    else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
      keep_rest(r, done);
      return false;
    }
  }
  r->size = 0;
  r->cut = false;
  return true;
}

/* Moves as many lines as there are and fit from the ring to r->text. */
static void gather(struct log_ring *r) {
  for (struct line *line; (line = front(r)) && r->size + line->size <= sizeof r->text;) {
    memcpy(r->text + r->size, line->text, line->size);
    r->size += line->size;
    atomic_store_explicit(&line->turn, r->head + r->lines, memory_order_release);
    r->head++;
  }
}

/* Writes one line of the thread's own. */
static bool say(struct log_ring *r, const char *text, size_t size) {
  memcpy(r->text, text, size);
  r->size = size;
  return flush(r);
}

/* Tells what there is to tell beside the lines. True: there will be more later. */
static bool speak(struct log_ring *r, bool end) {
  char text[LOG_LINE_SIZE];
  bool later = false;
  atomic_store(&r->poked, false);
  if (r->size) return true; /* half a line stands before it */
  const uint64_t lost = log_ring_dropped(r), now = clock_now();
  if (lost != r->told && (end || now >= r->told_at + LOST_MS * (uint64_t)CLOCK_MS)) {
    r->told_at = now;
    r->own = true;
    if (say(r, text, r->voice.lost(r->voice.of, lost - r->told, text)) || r->size) r->told = lost;
    r->own = false;
  }
  size_t size;
  while (!r->size && r->voice.due && (size = r->voice.due(r->voice.of, end, &later, text)) > 0)
    if (!say(r, text, size)) break;
  return later || log_ring_dropped(r) != r->told;
}

/* Until there is something to do, or `wait` ms long; -1: without an end. */
static void sleep_well(struct log_ring *r, int wait) {
  struct pollfd p = {.fd = r->wake, .events = POLLIN};
  uint64_t count;
  atomic_store(&r->asleep, true);
  if (!front(r) && !atomic_load(&r->poked) && !atomic_load(&r->stop) && poll(&p, 1, wait) > 0)
    (void)!read(r->wake, &count, sizeof count);
  atomic_store(&r->asleep, false);
}

static void *ring_main(void *of) {
  static const struct timespec moment = {.tv_nsec = GATHER_MS * (long)CLOCK_MS};
  struct log_ring *r = of;
  thread_name("attend-log");
  for (;;) {
    const bool end = atomic_load(&r->stop);
    const bool some = front(r) != NULL;
    while (r->size || front(r)) { /* the rest of a line, too, with nothing behind it */
      gather(r);
      if (!flush(r)) break;
    }
    const bool later = speak(r, end && !front(r));
    if (end && !front(r)) break;
    if (some && !end)
      nanosleep(&moment, NULL);
    else
      sleep_well(r, later ? TICK_MS : -1);
  }
  atomic_store(&r->ended, true);
  return NULL;
}

/* --- life --- */

static void ring_release(struct log_ring *r) {
  if (r->wake >= 0) close(r->wake);
  free(r->line);
  free(r);
}

struct log_ring *log_ring_new(int fd, size_t lines, const struct log_voice *voice,
                              struct error *e) {
  struct log_ring *r = aligned_alloc(_Alignof(struct log_ring), sizeof *r);
  if (!r) {
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the log");
    return NULL;
  }
  *r = (struct log_ring){.fd = fd, .lines = lines, .voice = *voice};
  r->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  r->line = calloc(lines, sizeof *r->line);
  for (uint64_t i = 0; r->line && i < lines; i++) atomic_init(&r->line[i].turn, i);
  if (r->wake < 0)
    error_set(e, STATUS_SYSTEM, "eventfd: %s", strerror(errno));
  else if (!r->line)
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the log");
  else {
    int failed = pthread_create(&r->thread, NULL, ring_main, r);
    if (!failed) return r;
    error_set(e, STATUS_SYSTEM, "log thread: %s", strerror(failed));
  }
  ring_release(r);
  return NULL;
}

bool log_ring_free(struct log_ring *r) {
  static const struct timespec step = {.tv_nsec = CLOCK_MS};
  if (!r) return true;
  atomic_store(&r->stop, true);
  (void)!write(r->wake, &(uint64_t){1}, sizeof(uint64_t));
  const uint64_t until = clock_now() + (FLUSH_MS + TICK_MS + HANG_MS) * (uint64_t)CLOCK_MS;
  while (!atomic_load(&r->ended) && clock_now() < until) nanosleep(&step, NULL);
  if (!atomic_load(&r->ended)) {
    pthread_detach(r->thread);
    return false;
  }
  pthread_join(r->thread, NULL);
  ring_release(r);
  return true;
}
