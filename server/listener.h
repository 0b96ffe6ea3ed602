/* address: "127.0.0.1:8080", "[::1]:8080", "localhost:0": where to listen or to connect. */
#ifndef SERVER_ADDRESS_H
#define SERVER_ADDRESS_H

#include <sys/socket.h>

#include "core/status.h"

enum { ADDRESS_HOST_SIZE = 256, ADDRESS_TEXT_SIZE = 64 };

struct address {
  char host[ADDRESS_HOST_SIZE]; /* without brackets; empty: every address of the machine */
  char port[8];
};

/* STATUS_CONFIG if the text has no port or is none of the forms above. */
enum status address_parse(struct address *a, const char *text, struct error *e);

/* Where a client on this machine reaches what listens on the address: a wildcard becomes the
 * loopback address. */
void address_reach(struct address *a);

/* A listening socket, ready to accept without blocking. -1 with an error: STATUS_CONFIG if the host
 * is unknown, STATUS_SYSTEM if the address cannot be had. */
int address_listen(const struct address *a, struct error *e);

/* A socket's own address as text, "127.0.0.1:8080". */
void address_text(int fd, char text[ADDRESS_TEXT_SIZE]);

#endif
