/* address: "127.0.0.1:8080", "[::1]:8080", "localhost:0": where to listen or to connect, as text.
 */
#ifndef CONFIG_ADDRESS_H
#define CONFIG_ADDRESS_H

#include <stdbool.h>

enum { ADDRESS_HOST_SIZE = 256 };

struct address {
  char host[ADDRESS_HOST_SIZE]; /* without brackets; empty: every address of the machine */
  char port[8];
};

/* HOST:PORT or [IPv6]:PORT, where an IPv6 address may name its zone: [fe80::1%eth0]:80. A host is
 * a number, a name, or "*" or nothing for every address; that a name exists is found out when it
 * is used. False: the text is none of these. */
bool address_parse(struct address *a, const char *text);

/* Where a client on this machine reaches what listens on the address: a wildcard becomes the
 * loopback address. */
void address_reach(struct address *a);

#endif
