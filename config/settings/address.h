/* address: an address to listen on or to connect to: "127.0.0.1:8080", "[::1]:8080",
 * "localhost:0". */
#ifndef CONFIG_ADDRESS_H
#define CONFIG_ADDRESS_H

#include <stdbool.h>

enum { ADDRESS_HOST_SIZE = 256 };

struct address {
  char host[ADDRESS_HOST_SIZE]; /* without brackets; empty: every address of the machine */
  char port[8];
};

/* Parses HOST:PORT or [IPv6]:PORT, where an IPv6 address may name its zone: [fe80::1%eth0]:80. A
 * host is a number, a name (which is not resolved here), or "*" or nothing for every address. False
 * if the text is something else. */
bool address_parse(struct address *a, const char *text);

/* Turns an address to listen on into the one that a client on this machine connects to: a wildcard
 * becomes the loopback address. */
void address_reach(struct address *a);

/* Is the host a number that only this machine reaches? False for names. */
bool address_is_loopback(const struct address *a);

#endif
