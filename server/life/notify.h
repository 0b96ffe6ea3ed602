/* notify: what the supervisor is told, in systemd's protocol: a datagram of lines to the socket
 * that NOTIFY_SOCKET names.
 *
 * Not by libsystemd: the protocol is these few lines, and the library would bring others along, a
 * megabyte in all, into an image of some ten. The variables stay in the environment: a program that
 * starts itself again has the same process id and is still the one that is meant, and no other
 * program is ever started. */
#ifndef SERVER_NOTIFY_H
#define SERVER_NOTIFY_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "server/watch/log.h"

struct notify {
  int fd; /* -1: nobody is to be told */
  struct sockaddr_un to;
  socklen_t size;
  uint64_t watchdog_ns; /* how long we may be silent; 0: for ever */
  struct log *log;
};

/* Main's alone, as all that follows. An address that is none is told to the log, and nobody else is
 * told anything. */
void notify_open(struct notify *n, struct log *log);
void notify_close(struct notify *n); /* fine if it was never opened and is zeroed */

/* Lines of NAME=VALUE. What cannot be sent within a moment is lost, and the log is told. */
void notify_say(const struct notify *n, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A reload begins; READY=1 has to follow when it has ended. */
void notify_reloading(const struct notify *n);

#endif
