/* io: a thread that runs a daemon of libmicrohttpd, and how connections reach it.
 *
 * Not libmicrohttpd's own threads: these lose wake-ups. They take at most 128 events at once, and
 * when it was exactly so many they wait for more before they look at what they have: with hundreds
 * of clients that wait for their answers nothing moves any more. (So it is from release 0.9.75 to
 * 1.0 at least.) Here the thread waits by itself, and libmicrohttpd never does. */
#ifndef SERVER_IO_H
#define SERVER_IO_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "core/run/status.h"
#include "server/http/lobby.h"
#include "server/watch/pulse.h"

struct MHD_Connection;
struct MHD_Daemon;

struct io {
  struct MHD_Daemon *daemon; /* run by the thread, stopped when it has ended */
  int arrivals[2];           /* pipe of descriptors; its end is the thread's end */
  int events;                /* becomes readable when the daemon has something to do */
  bool running;
  int wake; /* eventfd: something was resumed while the thread slept */
  atomic_bool asleep, resumed;
  bool opened; /* the thread's own: has the connection being added been reported as open? */
  pthread_t thread;
  struct pulse pulse;
  int ends;               /* epoll of all connections: whose client sends no more? */
  void (*lost)(void *of); /* a connection could not be taken, and was never reported */
  void *of;
  void (*ended)(void *watched);    /* the client sends no more */
  struct lobby lobby;              /* of this thread's requests */
  void (*called)(struct waiter *); /* it is somebody's turn: to be resumed */
};

/* Of each, at most: five of ours (the pipe has two, the eventfd, and two epolls, one of them the
 * daemon's), two more for what releases behind 0.9.75 wake their daemon by. */
enum { IO_DESCRIPTORS = 7 };

/* Starts the thread; takes the daemon, which is NULL if it could not be started. `lost`, `of`,
 * `ended`, `called` and the lobby's pool and threads are set before. After a failure, too, io_stop
 * has to follow. */
enum status io_start(struct io *io, struct MHD_Daemon *daemon, struct error *e);

/* Hands a connection on, from another thread. False, and errno: the system had no memory for that;
 * the descriptor is still the caller's. */
bool io_add(struct io *io, int fd, const struct sockaddr *from, socklen_t size);

/* Wakes a suspended connection, from any thread. The connection may be gone before this returns. */
void io_resume(struct io *io, struct MHD_Connection *c);

/* Has the thread pass its pulse. */
void io_ask(struct io *io);

/* The thread's own: `ended` is told, once, when the client has closed its half of the connection,
 * or reset it; behind what libmicrohttpd does. It waits for edges, and misses an end that came
 * together with the last bytes: it would keep the connection until its deadline. Where memory runs
 * out nothing is told; the reaper looks, too. */
void io_watch(struct io *io, int fd, void *watched);
void io_watch_again(struct io *io, int fd, void *watched); /* after it was told */
void io_unwatch(struct io *io, int fd);                    /* before the descriptor is closed */

/* Ends the thread, then closes all its connections. Fine if it was never started and is zeroed. */
void io_stop(struct io *io);

#endif
