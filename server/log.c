/* log: lines to standard error (what happens) and standard output (who asked for what). */
#include "server/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"

/* A line fits in PIPE_BUF, so that a pipe that is ready takes it without blocking. */
enum { LINE_SIZE = 1000, LINES = 2048, FIELD_MAX = 256, FLUSH_MS = 500 };

/* A slot is free for the writer of turn `t` when turn == t, and full for the reader of that turn
 * when turn == t + 1: many writers, one reader, no lock. */
struct line {
  _Atomic uint64_t turn;
  unsigned size;
  char text[LINE_SIZE];
};

struct stream {
  int fd;
  int wake; /* eventfd on which the thread sleeps */
  _Alignas(64) _Atomic uint64_t tail;
  atomic_bool asleep;
  _Alignas(64) uint64_t head; /* the thread's own */
  _Atomic uint64_t dropped;
  atomic_bool stop;
  bool running;
  pthread_t thread;
  struct line *line; /* [LINES] */
};

struct log {
  enum log_level level;
  enum log_access access;
  struct stream out, err;
};

/* --- the ring --- */

static void push(struct stream *s, const char *text, size_t size) {
  uint64_t turn = atomic_load_explicit(&s->tail, memory_order_relaxed);
  for (;;) {
    uint64_t at = atomic_load_explicit(&s->line[turn % LINES].turn, memory_order_acquire);
    if (at < turn) { /* a full round behind: the ring is full */
      atomic_fetch_add_explicit(&s->dropped, 1, memory_order_relaxed);
      return;
    }
    if (at > turn)
      turn = atomic_load_explicit(&s->tail, memory_order_relaxed);
    else if (atomic_compare_exchange_weak(&s->tail, &turn, turn + 1))
      break;
  }
  struct line *line = &s->line[turn % LINES];
  memcpy(line->text, text, size);
  line->size = (unsigned)size;
  atomic_store(&line->turn, turn + 1);
  if (atomic_exchange(&s->asleep, false)) (void)!write(s->wake, &(uint64_t){1}, sizeof(uint64_t));
}

static struct line *front(struct stream *s) {
  struct line *line = &s->line[s->head % LINES];
  return atomic_load(&line->turn) == s->head + 1 ? line : NULL;
}

/* Waits until the stream takes more. False: the log is to end and the time for that is over. */
static bool writable(struct stream *s, uint64_t *give_up) {
  struct pollfd p = {.fd = s->fd, .events = POLLOUT};
  for (;;) {
    if (*give_up && clock_now() >= *give_up) return false;
    if (poll(&p, 1, 100) > 0) return true;
    if (!*give_up && atomic_load(&s->stop)) *give_up = clock_now() + FLUSH_MS * (uint64_t)CLOCK_MS;
  }
}

static void write_line(struct stream *s, const struct line *line, uint64_t *give_up) {
  for (size_t done = 0; done < line->size;) {
    ssize_t n = -1;
    if (writable(s, give_up))
      n = write(s->fd, line->text + done, line->size - done);
    else
      errno = ETIMEDOUT;
    if (n > 0)
      done += (size_t)n;
    else if (n < 0 && errno != EINTR && errno != EAGAIN) {
      atomic_fetch_add_explicit(&s->dropped, 1, memory_order_relaxed);
      return;
    }
  }
}

static void *stream_main(void *of) {
  struct stream *s = of;
  uint64_t give_up = 0, count;
  for (;;) {
    struct line *line = front(s);
    if (line) {
      write_line(s, line, &give_up);
      atomic_store_explicit(&line->turn, s->head + LINES, memory_order_release);
      s->head++;
      continue;
    }
    if (atomic_load(&s->stop)) return NULL;
    atomic_store(&s->asleep, true);
    if (!front(s) && !atomic_load(&s->stop)) (void)!read(s->wake, &count, sizeof count);
    atomic_store(&s->asleep, false);
  }
}

static enum status stream_start(struct stream *s, int fd, struct error *e) {
  *s = (struct stream){.fd = fd, .wake = eventfd(0, EFD_CLOEXEC)};
  if (s->wake < 0) return error_set(e, STATUS_SYSTEM, "eventfd: %s", strerror(errno));
  s->line = calloc(LINES, sizeof *s->line);
  if (!s->line) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the log");
  for (uint64_t i = 0; i < LINES; i++) atomic_init(&s->line[i].turn, i);
  int failed = pthread_create(&s->thread, NULL, stream_main, s);
  if (failed) return error_set(e, STATUS_SYSTEM, "log thread: %s", strerror(failed));
  s->running = true;
  return STATUS_OK;
}

static void stream_stop(struct stream *s) {
  if (s->running) {
    atomic_store(&s->stop, true);
    (void)!write(s->wake, &(uint64_t){1}, sizeof(uint64_t));
    pthread_join(s->thread, NULL);
  }
  if (s->wake >= 0) close(s->wake);
  free(s->line);
}

/* --- the log --- */

struct log *log_new(const char *level, const char *access, struct error *e) {
  static const char *const levels[] = {"error", "warning", "info", "debug"};
  struct log *l = aligned_alloc(_Alignof(struct log), sizeof *l);
  if (!l) {
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the log");
    return NULL;
  }
  *l = (struct log){.level = LOG_INFO, .out.wake = -1, .err.wake = -1};
  for (unsigned i = 0; i < 4; i++)
    if (!strcmp(level, levels[i])) l->level = (enum log_level)i;
  l->access = !strcmp(access, "all")      ? ACCESS_ALL
              : !strcmp(access, "errors") ? ACCESS_ERRORS
                                          : ACCESS_OFF;
  if (stream_start(&l->err, STDERR_FILENO, e) == STATUS_OK &&
      (l->access == ACCESS_OFF || stream_start(&l->out, STDOUT_FILENO, e) == STATUS_OK))
    return l;
  log_free(l);
  return NULL;
}

void log_free(struct log *l) {
  if (!l) return;
  stream_stop(&l->err);
  stream_stop(&l->out);
  free(l);
}

bool log_wants(const struct log *l, enum log_level level) { return level <= l->level; }

bool log_wants_access(const struct log *l, unsigned code) {
  return l->access == ACCESS_ALL || (l->access == ACCESS_ERRORS && code >= 400);
}

uint64_t log_dropped(const struct log *l) {
  return atomic_load_explicit(&l->err.dropped, memory_order_relaxed) +
         atomic_load_explicit(&l->out.dropped, memory_order_relaxed);
}

/* Copies `from` as the inside of a string in quotes: one line, ASCII, at most FIELD_MAX characters
 * of the source. `hex` is how an odd byte begins: \x for the log, \u00 for JSON. */
static char *quoted(char *out, const char *end, const char *from, const char *hex) {
  for (size_t n = 0; *from && n < FIELD_MAX && end - out > 8; from++, n++) {
    unsigned char c = (unsigned char)*from;
    if (c == '"' || c == '\\') *out++ = '\\';
    if (c >= 0x20 && c < 0x7f)
      *out++ = (char)c;
    else
      out += snprintf(out, 8, "%s%02x", hex, c);
  }
  *out = 0;
  return out;
}

void log_line(struct log *l, enum log_level level, const char *format, ...) {
  static const char *const names[] = {"error", "warning", "info", "debug"};
  if (!log_wants(l, level)) return;
  char said[512], text[LINE_SIZE];
  va_list args;
  va_start(args, format);
  vsnprintf(said, sizeof said, format, args);
  va_end(args);
  char *at = text + snprintf(text, sizeof text, "level=%s msg=\"", names[level]);
  const char *end = text + sizeof text - 4;
  for (const char *from = said; *from && end - at > 16; from += strnlen(from, FIELD_MAX))
    at = quoted(at, end, from, "\\x");
  memcpy(at, "\"\n", 2);
  push(&l->err, text, (size_t)(at + 2 - text));
}

void log_request(struct log *l, const struct log_request *r) {
  char text[LINE_SIZE], *at = text, *end = text + sizeof text;
  struct timespec now;
  struct tm day;
  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &day);
  at += strftime(at, 32, "{\"time\":\"%Y-%m-%dT%H:%M:%S", &day);
  at += snprintf(at, (size_t)(end - at), ".%03ldZ\",\"id\":\"%s\",\"client\":\"%s\",\"method\":\"",
                 now.tv_nsec / 1000000, r->id, r->client);
  at = quoted(at, at + 40, r->method, "\\u00");
  at += snprintf(at, (size_t)(end - at), "\",\"status\":%u,\"in\":%llu,\"out\":%llu,\"ms\":%.3f",
                 r->code, (unsigned long long)r->bytes_in, (unsigned long long)r->bytes_out,
                 (double)r->nanoseconds / 1e6);
  at += snprintf(at, (size_t)(end - at), ",\"path\":\"");
  at = quoted(at, at + (end - at) * 2 / 3, r->path, "\\u00");
  if (r->agent) {
    at += snprintf(at, (size_t)(end - at), "\",\"agent\":\"");
    at = quoted(at, end - 4, r->agent, "\\u00");
  }
  memcpy(at, "\"}\n", 3);
  push(&l->out, text, (size_t)(at + 3 - text));
}
