/* notify: what the supervisor is told, in systemd's protocol. */
#include "server/life/notify.h"

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
#include "core/run/clock.h"

enum { LINES_SIZE = 1024, PATIENCE_US = 500000 };

/* A path, or @ and a name that is in no file system. False: neither. */
static bool address_of(const char *text, struct sockaddr_un *to, socklen_t *size) {
  const size_t length = strlen(text);
  *to = (struct sockaddr_un){.sun_family = AF_UNIX};
  if ((*text != '/' && *text != '@') || length < 2 || length >= sizeof to->sun_path) return false;
  memcpy(to->sun_path, text, length);
  if (*text == '@') to->sun_path[0] = '\0';
  /* Of an abstract name every byte counts; that of a path ends with a NUL. */
  *size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (*text == '/'));
  return true;
}

/* How long the supervisor lets this process be silent, in nanoseconds. */
static uint64_t watchdog_of(void) {
  const char *us = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
  uint64_t value, who;
  if (!us || !text_decimal(us, &value) || value > UINT64_MAX / 1000) return 0;
  if (pid && (!text_decimal(pid, &who) || who != (uint64_t)getpid())) return 0;
  return value * 1000;
}

void notify_open(struct notify *n, struct log *log) {
  const struct timeval patience = {.tv_usec = PATIENCE_US};
  const char *text = getenv("NOTIFY_SOCKET");
  *n = (struct notify){.fd = -1, .log = log};
  if (!text || !*text) return;
  if (!address_of(text, &n->to, &n->size)) {
    log_line(log, LOG_WARNING, "NOTIFY_SOCKET: \"%.120s\" is no address of a Unix socket", text);
    return;
  }
  n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (n->fd < 0) {
    log_line(log, LOG_WARNING, "NOTIFY_SOCKET: %s", strerror(errno));
    return;
  }
  setsockopt(n->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  n->watchdog_ns = watchdog_of();
}

void notify_close(struct notify *n) {
  if (n->fd > 0) close(n->fd);
  n->fd = -1;
}

void notify_say(const struct notify *n, const char *format, ...) {
  char text[LINES_SIZE];
  va_list args;
  if (n->fd <= 0) return;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (sendto(n->fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&n->to, n->size) < 0)
    log_line(n->log, LOG_WARNING, "the supervisor cannot be told \"%.40s\": %s", text,
             strerror(errno));
}

void notify_reloading(const struct notify *n) {
  notify_say(n, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\nSTATUS=reloading the models",
             clock_now() / 1000);
}
