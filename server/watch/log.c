/* log: lines to standard error (what happens) and standard output (who asked for what). */
#include "server/watch/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/run/clock.h"
#include "server/watch/log_text.h"

enum { LINES_ERR = 512, LINES_OUT = 2048 };

enum access { ACCESS_OFF, ACCESS_ERRORS, ACCESS_ALL };

struct repeated {
  _Atomic uint64_t next; /* from then on, one is said again; 0: none was yet */
  _Atomic uint64_t more; /* since the last line about it */
};

struct log {
  enum log_level level;
  enum access access;
  bool journal;
  uint64_t slow_ns, repeat_ns;
  struct repeated repeated[COMPLAINT_COUNT];
  _Atomic uint64_t suppressed;
  struct log_ring *out, *err; /* out is NULL if nobody wants it */
};

static const struct {
  enum log_level level;
  const char *what;
} complaints[COMPLAINT_COUNT] = {
    [COMPLAINT_ACCEPT] = {LOG_WARNING, "cannot accept"},
    [COMPLAINT_LOST] = {LOG_WARNING, "a connection could not be taken"},
    [COMPLAINT_FULL] = {LOG_WARNING, "a connection was refused"},
    [COMPLAINT_HTTP] = {LOG_DEBUG, "libmicrohttpd"},
};

static const char *const levels[] = {"error", "warning", "info", "debug"};

/* --- lines of standard error --- */

static size_t line_text(const struct log *l, enum log_level level, const char *said,
                        char text[LOG_LINE_SIZE]) {
  static const char *const priority[] = {"<3>", "<4>", "<6>", "<7>"}; /* sd-daemon(3) */
  struct log_text t = {text, text + LOG_LINE_SIZE};
  if (l->journal) {
    log_text_word(&t, priority[level]);
  } else {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    log_text_word(&t, "time=");
    log_text_time(&t, &now);
    log_text_bytes(&t, " ", 1);
  }
  log_text_word(&t, "level=");
  log_text_word(&t, levels[level]);
  log_text_word(&t, " msg=\"");
  log_text_plain(&t, said, (size_t)(t.end - t.at) - 2);
  log_text_bytes(&t, "\"\n", 2);
  return (size_t)(t.at - text);
}

static void say(struct log *l, enum log_level level, const char *format, va_list args) {
  char said[1024], text[LOG_LINE_SIZE];
  vsnprintf(said, sizeof said, format, args);
  log_ring_push(l->err, text, line_text(l, level, said, text));
}

bool log_wants(const struct log *l, enum log_level level) { return level <= l->level; }

void log_line(struct log *l, enum log_level level, const char *format, ...) {
  if (!log_wants(l, level)) return;
  va_list args;
  va_start(args, format);
  say(l, level, format, args);
  va_end(args);
}

/* --- what is repeated --- */

/* Who moves `next` on says it. While there are some that were not told of, all are counted, and the
 * thread of the log moves on. */
void log_complain(struct log *l, enum complaint kind, const char *format, ...) {
  struct repeated *r = &l->repeated[kind];
  if (!log_wants(l, complaints[kind].level)) return;
  const uint64_t now = clock_now();
  uint64_t next = atomic_load(&r->next);
  if (now < next || atomic_load(&r->more) ||
      !atomic_compare_exchange_strong(&r->next, &next, now + l->repeat_ns)) {
    atomic_fetch_add_explicit(&l->suppressed, 1, memory_order_relaxed);
    if (atomic_fetch_add(&r->more, 1) == 0) log_ring_wake(l->err);
    return;
  }
  va_list args;
  va_start(args, format);
  say(l, complaints[kind].level, format, args);
  va_end(args);
}

/* The ring's thread: is it time to tell of a kind? */
static size_t due(void *of, bool end, bool *later, char text[LOG_LINE_SIZE]) {
  struct log *l = of;
  const uint64_t now = clock_now();
  for (unsigned i = 0; i < COMPLAINT_COUNT; i++) {
    struct repeated *r = &l->repeated[i];
    if (!atomic_load(&r->more)) continue;
    if (!end && now < atomic_load(&r->next)) {
      *later = true;
      continue;
    }
    char said[128];
    atomic_store(&r->next, now + l->repeat_ns);
    snprintf(said, sizeof said, "%s: %llu more like this", complaints[i].what,
             (unsigned long long)atomic_exchange(&r->more, 0));
    return line_text(l, complaints[i].level, said, text);
  }
  return 0;
}

static size_t lost_lines(void *of, uint64_t lines, char text[LOG_LINE_SIZE]) {
  char said[128];
  snprintf(said, sizeof said, "%llu lines of this log were lost", (unsigned long long)lines);
  return line_text(of, LOG_WARNING, said, text);
}

static size_t lost_requests(void *of, uint64_t lines, char text[LOG_LINE_SIZE]) {
  (void)of;
  return log_access_lost(lines, text);
}

/* --- requests --- */

bool log_wants_request(const struct log *l, bool probe, unsigned code, bool whole,
                       uint64_t nanoseconds) {
  if (l->access == ACCESS_OFF) return false;
  if (l->access == ACCESS_ALL && !probe) return true;
  return code >= 400 || !whole || nanoseconds > l->slow_ns;
}

void log_request(struct log *l, const struct log_request *r) {
  char text[LOG_LINE_SIZE];
  log_ring_push(l->out, text, log_access_text(r, text));
}

/* --- the log --- */

bool log_is_journal(int fd) {
  const char *said = getenv("JOURNAL_STREAM");
  unsigned long long device, inode;
  struct stat about;
  return said && sscanf(said, "%llu:%llu", &device, &inode) == 2 && !fstat(fd, &about) &&
         about.st_dev == device && about.st_ino == inode;
}

struct log *log_new(const struct log_options *options, struct error *e) {
  struct log *l = calloc(1, sizeof *l);
  if (!l) {
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the log");
    return NULL;
  }
  l->level = LOG_INFO;
  for (unsigned i = 0; i < 4; i++)
    if (!strcmp(options->level, levels[i])) l->level = (enum log_level)i;
  l->access = !strcmp(options->access, "all")      ? ACCESS_ALL
              : !strcmp(options->access, "errors") ? ACCESS_ERRORS
                                                   : ACCESS_OFF;
  l->journal = options->journal;
  l->slow_ns = options->slow_ms * CLOCK_MS;
  l->repeat_ns = options->repeat_ms * CLOCK_MS;
  const struct log_voice err = {.of = l, .lost = lost_lines, .due = due};
  const struct log_voice out = {.lost = lost_requests};
  l->err = log_ring_new(STDERR_FILENO, LINES_ERR, &err, e);
  if (l->err && l->access != ACCESS_OFF) l->out = log_ring_new(STDOUT_FILENO, LINES_OUT, &out, e);
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
