/* address: "127.0.0.1:8080", "[::1]:8080", "localhost:0": where to listen or to connect. */
#ifndef CONFIG_ADDRESS_H
#define CONFIG_ADDRESS_H

#include <stdbool.h>

enum { ADDRESS_HOST_SIZE = 256 };

struct address {
  char host[ADDRESS_HOST_SIZE]; /* without brackets; empty: every address of the machine */
  char port[8];
};

/* HOST:PORT or [IPv6]:PORT, where an IPv6 address may name its zone: [fe80::1%eth0]:80. A host is a
 * number, a name, or "*" or nothing for every address; whether a name exists is found out only when
 * it is used. False where the text is none of these. */
bool address_parse(struct address *a, const char *text);

/* Turns an address to listen on into the one where a client on this machine connects: a wildcard
 * becomes the loopback address. */
void address_reach(struct address *a);

/* Is the host a number that only this machine reaches? False for names. */
bool address_is_loopback(const struct address *a);

#endif
