/* io: a thread that runs a daemon of libmicrohttpd, and how connections reach it.
 *
 * libmicrohttpd's own threads lose wake-ups: such a thread reads at most 128 events at once, and
 * after exactly 128 it waits for more before it handles them. With hundreds of clients waiting for
 * their answers everything stops. (Releases 0.9.75 to 1.0, at least.) So the thread here does the
 * waiting, and libmicrohttpd never waits. */
#ifndef SERVER_IO_H
#define SERVER_IO_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/base/arena.h"
#include "core/base/status.h"
#include "server/http/waiting.h"
#include "server/watch/pulse.h"

struct MHD_Connection;
struct MHD_Daemon;

/* An accepted connection on its way through the pipe; small enough to be written whole. */
struct io_arrival {
  int fd;
  socklen_t size;
  struct sockaddr_storage from;
  uint64_t until; /* when the thread stops waiting for its first bytes */
  bool begun;     /* some of them have arrived */
};

/* Results of meeting a connection, that is of looking at its first bytes. */
enum io_met {
  IO_MET_NOTHING, /* none have arrived: the thread waits for them for a moment */
  IO_MET_PART,    /* too few have arrived: the same */
  IO_MET_WELCOME, /* it is added */
  IO_MET_ENDED    /* the owner has ended it */
};

enum { IO_MET_MAX = 8 }; /* connections whose first bytes a thread waits for */

struct io {
  struct MHD_Daemon *daemon; /* run by the thread, stopped after the thread has ended */
  int arrivals[2];           /* pipe of accepted descriptors; its end ends the thread */
  int events;                /* the daemon's epoll: readable when the daemon has something to do */
  bool running;
  int wake; /* eventfd: written when a connection is resumed while the thread sleeps */
  atomic_bool asleep, resumed;
  pthread_t thread;
  struct pulse pulse;
  int ends; /* epoll of all connections, readable when a client has closed its half */
  _Atomic uint64_t *longest_turn; /* the owner's: nanoseconds, raised by each longer turn */

  /* Members of the thread alone. */
  struct arena leaving; /* memory of requests that have ended; a little is freed in each turn */
  struct lobby lobby;
  struct silence silence;
  size_t answers;                    /* responses being sent; counted by the owner */
  struct io_arrival met[IO_MET_MAX]; /* [met_count] connections that are not added yet */
  size_t met_count;
  unsigned quiet_turns; /* in a row, without an event, a body or a response to send */
  bool opened;          /* the connection that is being added was reported as open */

  /* Set by the owner before io_start; called on the thread. */
  void *owner;
  enum io_met (*connection_met)(void *owner, int fd); /* of a connection that is not added yet */
  void (*connection_lost)(void *owner);               /* not added, and never reported as open */
  void (*client_ended)(void *watched);                /* the client sends no more */
  void (*wait_ended)(struct lobby_waiter *released);  /* out of the lobby: to be resumed */
  void (*silence_over)(struct silent *stream);        /* the stream has to send something */
};

/* The most descriptors that one io needs: five of its own (the pipe has two, the eventfd, and two
 * epolls, one of them the daemon's), and two with which releases after 0.9.75 wake their daemon. */
enum { IO_DESCRIPTORS = 7 };

/* Starts the thread and owns the daemon, which is NULL if it could not be started. The lobby's pool
 * and threads, the longest silence and the callbacks are set before. io_stop has to follow, also
 * after a failure. */
enum status io_start(struct io *io, struct MHD_Daemon *daemon, struct error *e);

/* Gives a new connection to the thread, from another thread. False, and errno: the system had no
 * memory for it; the descriptor is still the caller's. */
bool io_add(struct io *io, int fd, const struct sockaddr *from, socklen_t size);

/* Resumes a suspended connection, from any thread. The connection may be gone before this
 * returns. */
void io_resume(struct io *io, struct MHD_Connection *c);

/* Asks the thread's pulse, and wakes the thread to answer. */
void io_ask(struct io *io);

/* On the thread only: client_ended is called once when the client has closed its half of the
 * connection or reset it. libmicrohttpd waits for edges and misses an end of stream that comes
 * together with the last bytes: it would keep the connection until a deadline. Without memory
 * for the watch nothing is called; the reaper looks at the sockets, too. */
void io_watch(struct io *io, int fd, void *watched);
void io_watch_again(struct io *io, int fd, void *watched); /* after client_ended was called */
void io_unwatch(struct io *io, int fd);                    /* before the descriptor is closed */

/* Ends the thread, then closes all its connections. Valid for a zeroed io. */
void io_stop(struct io *io);

#endif
