/* log: the log of events, on standard error, and the access log, on standard output. */
#include "server/watch/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"

enum { ERR_LINES = 512, OUT_LINES = 2048 }; /* lines that a ring holds */

enum log_access { ACCESS_OFF, ACCESS_ERRORS, ACCESS_ALL };

struct log_repeated {
  _Atomic uint64_t next;    /* the time of the next line at the earliest; 0: there was none yet */
  _Atomic uint64_t counted; /* complaints since the last line */
};

struct log {
  enum log_level level;
  enum log_access access;
  bool journal;
  uint64_t slow_ns, repeat_ns;
  struct log_repeated repeated[COMPLAINT_COUNT];
  _Atomic uint64_t suppressed;
  struct log_ring *out, *err; /* out: NULL if access_log is off */
};

static const struct {
  enum log_level level;
  const char *what; /* the beginning of its lines */
} complaints[COMPLAINT_COUNT] = {
    [COMPLAINT_ACCEPT] = {LOG_WARNING, "cannot accept"},
    [COMPLAINT_LOST] = {LOG_WARNING, "a connection could not be taken"},
    [COMPLAINT_FULL] = {LOG_WARNING, "a connection was refused"},
    [COMPLAINT_HTTP_2] = {LOG_WARNING, "a client spoke HTTP/2"},
    [COMPLAINT_HTTP] = {LOG_DEBUG, "libmicrohttpd"},
};

/* --- lines of standard error --- */

static void write_message(struct log *l, enum log_level level, const char *format, va_list args) {
  char message[1024], line[LOG_LINE_SIZE];
  vsnprintf(message, sizeof message, format, args);
  log_ring_push(l->err, line, log_text_message(l->journal, level, message, line));
}

bool log_wants(const struct log *l, enum log_level level) { return level <= l->level; }

void log_line(struct log *l, enum log_level level, const char *format, ...) {
  if (!log_wants(l, level)) return;
  va_list args;
  va_start(args, format);
  write_message(l, level, format, args);
  va_end(args);
}

/* --- complaints that are repeated --- */

/* The thread that advances `next` writes the line. Once one is counted, all are, until the ring's
 * thread has written their number and advances `next` itself. */
void log_complain(struct log *l, enum log_complaint kind, const char *format, ...) {
  struct log_repeated *r = &l->repeated[kind];
  if (!log_wants(l, complaints[kind].level)) return;
  const uint64_t now = clock_now();
  uint64_t next = atomic_load(&r->next);
  if (now < next || atomic_load(&r->counted) ||
      !atomic_compare_exchange_strong(&r->next, &next, now + l->repeat_ns)) {
    atomic_fetch_add_explicit(&l->suppressed, 1, memory_order_relaxed);
    if (atomic_fetch_add(&r->counted, 1) == 0) log_ring_wake(l->err);
    return;
  }
  va_list args;
  va_start(args, format);
  write_message(l, complaints[kind].level, format, args);
  va_end(args);
}

/* Writes the number of one complaint, if it is due (struct log_ring_hooks). */
static size_t write_counted_complaint(void *of, bool end, bool *later, char line[LOG_LINE_SIZE]) {
  struct log *l = of;
  const uint64_t now = clock_now();
  for (unsigned i = 0; i < COMPLAINT_COUNT; i++) {
    struct log_repeated *r = &l->repeated[i];
    if (!atomic_load(&r->counted)) continue;
    if (!end && now < atomic_load(&r->next)) {
      *later = true;
      continue;
    }
    char message[128];
    atomic_store(&r->next, now + l->repeat_ns);
    snprintf(message, sizeof message, "%s: %llu more like this", complaints[i].what,
             (unsigned long long)atomic_exchange(&r->counted, 0));
    return log_text_message(l->journal, complaints[i].level, message, line);
  }
  return 0;
}

/* --- lines that were dropped --- */

static size_t write_lost_messages(void *of, uint64_t lines, char line[LOG_LINE_SIZE]) {
  const struct log *l = of;
  char message[128];
  snprintf(message, sizeof message, "log overflow: %llu lines dropped", (unsigned long long)lines);
  return log_text_message(l->journal, LOG_WARNING, message, line);
}

static size_t write_lost_requests(void *of, uint64_t lines, char line[LOG_LINE_SIZE]) {
  (void)of;
  return log_text_lost(lines, line);
}

/* --- requests --- */

bool log_wants_request(const struct log *l, bool probe, unsigned code, bool whole,
                       uint64_t nanoseconds) {
  if (l->access == ACCESS_OFF) return false;
  if (l->access == ACCESS_ALL && !probe) return true;
  return code >= 400 || !whole || nanoseconds > l->slow_ns;
}

void log_request(struct log *l, const struct log_request *r) {
  char line[LOG_LINE_SIZE];
  log_ring_push(l->out, line, log_text_request(r, line));
}

/* --- the log --- */

bool log_is_journal(int fd) {
  const char *stream = getenv("JOURNAL_STREAM");
  unsigned long long device, inode;
  struct stat about;
  return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && !fstat(fd, &about) &&
         about.st_dev == device && about.st_ino == inode;
}

struct log *log_new(const struct log_options *options, struct error *e) {
  struct log *l = calloc(1, sizeof *l);
  if (!l) {
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the log");
    return NULL;
  }
  l->level = LOG_INFO;
  for (enum log_level i = 0; i < LOG_LEVELS; i++)
    if (!strcmp(options->level, log_text_level(i))) l->level = i;
  l->access = !strcmp(options->access, "all")      ? ACCESS_ALL
              : !strcmp(options->access, "errors") ? ACCESS_ERRORS
                                                   : ACCESS_OFF;
  l->journal = options->journal;
  l->slow_ns = options->slow_ms * CLOCK_MS;
  l->repeat_ns = options->repeat_ms * CLOCK_MS;
  const struct log_ring_hooks err = {.of = l,
                                     .write_lost = write_lost_messages,
                                     .write_due = write_counted_complaint};
  const struct log_ring_hooks out = {.write_lost = write_lost_requests};
  l->err = log_ring_new(STDERR_FILENO, ERR_LINES, &err, e);
  if (l->err && l->access != ACCESS_OFF) l->out = log_ring_new(STDOUT_FILENO, OUT_LINES, &out, e);
  if (l->err && (l->out || l->access == ACCESS_OFF)) return l;
  log_free(l);
  return NULL;
}

void log_free(struct log *l) {
  if (!l) return;
  log_ring_free(l->out);
  if (log_ring_free(l->err)) free(l);
}

uint64_t log_dropped(const struct log *l) {
  return log_ring_dropped(l->err) + (l->out ? log_ring_dropped(l->out) : 0);
}

uint64_t log_suppressed(const struct log *l) {
  return atomic_load_explicit(&l->suppressed, memory_order_relaxed);
}
