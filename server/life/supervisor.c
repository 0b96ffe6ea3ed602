/* supervisor: sockets from systemd, messages to it, and its watchdog. */
#include "server/life/supervisor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "config/document/text.h"
#include "core/base/clock.h"
#include "core/base/size.h"

enum {
  FIRST_SOCKET = 3, /* a descriptor; the others follow it */
  MESSAGE_SIZE = 1024,
  SEND_US = 500000, /* for a message to be taken */
  /* The watchdog's time is cut into intervals: a thread has one of them to answer, and two more may
   * pass before the time is over. */
  INTERVALS = 4
};

/* Whether the variable is the id of this process, not of one that has started it; `unset` if there
 * is no such variable. */
static bool names_this_process(const char *variable, bool unset) {
  const char *text = getenv(variable);
  uint64_t pid;
  return text ? text_decimal(text, &pid) && pid == (uint64_t)getpid() : unset;
}

/* --- sockets --- */

enum status supervisor_sockets(int fd[DOOR_COUNT], struct error *e) {
  fd[DOOR_MAIN] = fd[DOOR_ADMIN] = SUPERVISOR_NO_SOCKET;
  const char *text = getenv("LISTEN_FDS"), *names = getenv("LISTEN_FDNAMES");
  uint64_t count;
  if (!text || !names_this_process("LISTEN_PID", false)) return STATUS_OK;
  if (!text_decimal(text, &count))
    return error_set(e, STATUS_CONFIG, "LISTEN_FDS: \"%.40s\" is not a number of sockets", text);
  if (count > DOOR_COUNT)
    return error_set(e, STATUS_CONFIG,
                     "LISTEN_FDS: %llu sockets, expected one, and optionally another one "
                     "named admin (FileDescriptorName=admin)",
                     (unsigned long long)count);
  if (!names) names = "";
  for (int i = 0; i < (int)count; i++) {
    const size_t length = strcspn(names, ":"); /* ':' separates the names */
    const bool admin = length == strlen("admin") && memcmp(names, "admin", length) == 0;
    const enum door_kind kind = admin ? DOOR_ADMIN : DOOR_MAIN;
    names += length + (names[length] == ':');
    if (fd[kind] != SUPERVISOR_NO_SOCKET)
      return error_set(e, STATUS_CONFIG,
                       "LISTEN_FDS: two sockets for the same purpose: name one of them admin "
                       "(FileDescriptorName=admin)");
    fd[kind] = FIRST_SOCKET + i;
  }
  return STATUS_OK;
}

/* --- messages --- */

/* Reads a path, or @ and a name that is in no file system. False: `text` is neither. */
static bool parse_unix_address(const char *text, struct sockaddr_un *to, socklen_t *size) {
  const size_t length = strlen(text);
  *to = (struct sockaddr_un){.sun_family = AF_UNIX};
  if ((*text != '/' && *text != '@') || length < 2 || length >= sizeof to->sun_path) return false;
  memcpy(to->sun_path, text, length);
  if (*text == '@') to->sun_path[0] = '\0';
  /* A path ends with a NUL, which is part of the address; a name has no NUL. */
  *size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (*text == '/'));
  return true;
}

void supervisor_open(struct supervisor *s, struct log *log) {
  const struct timeval limit = {.tv_usec = SEND_US};
  const char *text = getenv("NOTIFY_SOCKET"), *us = getenv("WATCHDOG_USEC");
  uint64_t watchdog;
  *s = (struct supervisor){.fd = -1, .log = log};
  if (!text || !*text) return;
  if (!parse_unix_address(text, &s->to, &s->size)) {
    log_line(log, LOG_WARNING, "NOTIFY_SOCKET: \"%.120s\" is not the address of a Unix socket",
             text);
    return;
  }
  s->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (s->fd < 0) {
    log_line(log, LOG_WARNING, "NOTIFY_SOCKET: %s", strerror(errno));
    return;
  }
  setsockopt(s->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (us && text_decimal(us, &watchdog) && watchdog <= UINT64_MAX / 1000 &&
      names_this_process("WATCHDOG_PID", true))
    s->watchdog_ns = watchdog * 1000;
}

void supervisor_close(struct supervisor *s) {
  if (s->fd > 0) close(s->fd);
  s->fd = -1;
}

void supervisor_send(const struct supervisor *s, const char *format, ...) {
  char text[MESSAGE_SIZE];
  va_list args;
  if (s->fd <= 0) return;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (sendto(s->fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&s->to, s->size) < 0)
    log_line(s->log, LOG_WARNING, "cannot notify the supervisor (\"%.40s\"): %s", text,
             strerror(errno));
}

void supervisor_send_reloading(const struct supervisor *s) {
  supervisor_send(s, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\nSTATUS=reloading the models",
                  clock_now() / 1000);
}

/* --- the watchdog --- */

void supervisor_watch(struct supervisor *s, struct httpd *const http[]) {
  if (!s->watchdog_ns) return;
  s->interval_ns = size_max(s->watchdog_ns / INTERVALS, CLOCK_MS); /* main has other work, too */
  s->next = clock_now() + s->interval_ns;
  for (unsigned i = 0; i < DOOR_COUNT; i++) {
    s->http[i] = http[i];
    httpd_ask(http[i]);
  }
}

uint64_t supervisor_beat(struct supervisor *s) {
  const uint64_t now = clock_now();
  bool answered = true;
  if (!s->interval_ns) return 0;
  if (now < s->next) return s->next;
  for (unsigned i = 0; i < DOOR_COUNT; i++) answered = answered && httpd_answered(s->http[i]);
  if (answered) {
    supervisor_send(s, "WATCHDOG=1");
    for (unsigned i = 0; i < DOOR_COUNT; i++) httpd_ask(s->http[i]);
  }
  return s->next = now + s->interval_ns;
}
