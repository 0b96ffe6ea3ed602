/* listener: a listening socket. */
#ifndef SERVER_LISTENER_H
#define SERVER_LISTENER_H

#include "config/address.h"
#include "core/status.h"

enum { LISTENER_TEXT_SIZE = 64 };

/* A listening socket, ready to accept without blocking. -1 with an error: STATUS_CONFIG if the host
 * is unknown, STATUS_SYSTEM if the address cannot be had. */
int listener_open(const struct address *a, struct error *e);

/* A socket's own address as text, "127.0.0.1:8080". */
void listener_text(int fd, char text[LISTENER_TEXT_SIZE]);

#endif
