/* signals: SIGTERM, SIGINT and SIGHUP, collected for main. */
#include "server/life/signals.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { KINDS = 3 };

static const int number[KINDS] = {SIGTERM, SIGINT, SIGHUP}; /* the order of signals_next */

/* SIGPIPE, SIGXFSZ: a write to a closed socket, or to a log file at its limit, fails with an error
 * instead. SIGUSR1, SIGUSR2: orders to other servers, such as to open their logs again, must not
 * end this one. */
static const int ignored[] = {SIGPIPE, SIGXFSZ, SIGUSR1, SIGUSR2};

/* Static, since a handler has no argument of ours; the handlers are static, too. */
static atomic_uint came[KINDS];
static int wake = -1; /* eventfd; written once, before the handlers are set */

void signals_wake(void) { (void)!write(wake, &(uint64_t){1}, sizeof(uint64_t)); }

static void count_signal(int got) {
  const int before = errno;
  for (unsigned i = 0; i < KINDS; i++)
    if (number[i] == got) atomic_fetch_add(&came[i], 1);
  signals_wake();
  errno = before;
}

enum status signals_open(struct error *e) {
  struct sigaction action = {.sa_handler = count_signal, .sa_flags = SA_RESTART};
  sigset_t set;
  wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) return error_set(e, STATUS_SYSTEM, "eventfd: %s", strerror(errno));
  for (unsigned i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_IGN);
  sigemptyset(&set);
  for (unsigned i = 0; i < KINDS; i++) {
    sigaddset(&set, number[i]);
    sigaction(number[i], &action, NULL);
  }
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  return STATUS_OK;
}

int signals_next(const struct timespec *within) {
  static const struct timespec none = {0};
  struct pollfd p = {.fd = wake, .events = POLLIN};
  uint64_t count;
  sigset_t open;
  pthread_sigmask(SIG_BLOCK, NULL, &open);
  for (unsigned i = 0; i < KINDS; i++) {
    sigdelset(&open, number[i]);
    if (atomic_load(&came[i])) within = &none;
  }
  /* Also if one is counted: a pending one, not delivered yet, may precede it. */
  ppoll(&p, 1, within, &open);
  (void)!read(wake, &count, sizeof count);
  for (unsigned i = 0; i < KINDS; i++) {
    if (!atomic_load(&came[i])) continue;
    if (number[i] == SIGHUP)
      atomic_store(&came[i], 0); /* all of them at once */
    else
      atomic_fetch_sub(&came[i], 1);
    return number[i];
  }
  return 0;
}
