/* supervisor: the protocol of systemd, or of another supervisor that speaks it:
 *
 * - LISTEN_FDS: listening sockets that it has opened. It keeps them while the process is restarted,
 *   so that no connection is refused.
 * - NOTIFY_SOCKET: a Unix socket for the datagrams READY=1, RELOADING=1, STOPPING=1.
 * - WATCHDOG_USEC: it restarts a process that sends no WATCHDOG=1 for this time. A single thread
 *   that hangs is enough: WATCHDOG=1 is sent only if main still turns and every thread that has
 *   connections has turned since it was last asked.
 *
 * libsystemd is not used: the protocol is a few lines, and the library with its dependencies is a
 * megabyte in an image of about ten. The variables stay in the environment: a program that executes
 * itself again keeps its process id, so that they are still valid for it, and attend starts no
 * other program.
 *
 * All functions are for main's thread. */
#ifndef SERVER_SUPERVISOR_H
#define SERVER_SUPERVISOR_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "server/request/httpd.h"

enum { SUPERVISOR_NO_SOCKET = -1 };

/* Finds the descriptor for each door, or SUPERVISOR_NO_SOCKET. A socket with the name `admin` is
 * for the admin door, one with any other name for the main door. STATUS_CONFIG: there are two
 * sockets for one door, or the variable is not a number. */
enum status supervisor_sockets(int fd[DOOR_COUNT], struct error *e);

struct supervisor {
  int fd; /* -1: messages are not wanted */
  struct sockaddr_un to;
  socklen_t size;
  struct log *log;
  uint64_t watchdog_ns; /* the time allowed between two WATCHDOG=1; 0: any */
  struct httpd *http[DOOR_COUNT];
  uint64_t interval_ns; /* 0: without a watchdog */
  uint64_t next;        /* the time at which the threads are asked again */
};

/* An invalid address is a warning in the log, and no messages are sent then. */
void supervisor_open(struct supervisor *s, struct log *log);
void supervisor_close(struct supervisor *s); /* `s` may be zeroed and never opened */

/* Sends lines of NAME=VALUE. If they cannot be sent within half a second, they are lost, with a
 * warning in the log. */
void supervisor_send(const struct supervisor *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A reload begins. READY=1 must follow when it has ended. */
void supervisor_send_reloading(const struct supervisor *s);

/* The watchdog watches the threads of these doors from now on. A door may be NULL. */
void supervisor_watch(struct supervisor *s, struct httpd *const http[]);

/* Sends WATCHDOG=1 and asks the threads again if the time has come. Returns the time of the next
 * call, on clock_now; 0: never. */
uint64_t supervisor_beat(struct supervisor *s);

#endif
