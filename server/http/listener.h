/* listener: a listening socket. */
#ifndef SERVER_LISTENER_H
#define SERVER_LISTENER_H

#include "config/settings/address.h"
#include "core/base/status.h"

enum { LISTENER_TEXT_SIZE = 64 };

struct listener {
  int fd;         /* accepts without blocking */
  bool inherited; /* a supervisor has it open, too: connections wait in it between two runs */
};

/* Binds the address that `setting` names. STATUS_CONFIG: the host is unknown. STATUS_SYSTEM: the
 * address cannot be bound. */
enum status listener_open(struct listener *l, const char *setting, const struct address *a,
                          struct error *e);

/* Uses a descriptor that the process was started with. STATUS_CONFIG: it is not a listening TCP
 * socket. */
enum status listener_inherit(struct listener *l, int fd, struct error *e);

/* A socket's own address as text, "127.0.0.1:8080". */
void listener_text(int fd, char text[LISTENER_TEXT_SIZE]);

#endif
