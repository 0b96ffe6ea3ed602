/* address: the grammar of addresses. */
#include "config/settings/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "config/document/text.h"

#define LETTERS_AND_DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static bool is_name(const char *text) {
  return text[strspn(text, LETTERS_AND_DIGITS ".-_")] == '\0';
}

static bool is_ipv6(const char *text) {
  char number[INET6_ADDRSTRLEN];
  unsigned char parsed[sizeof(struct in6_addr)];
  const size_t length = strcspn(text, "%");
  if (length >= sizeof number) return false;
  if (text[length] == '%' && (!text[length + 1] || !is_name(text + length + 1))) return false;
  memcpy(number, text, length);
  number[length] = '\0';
  return inet_pton(AF_INET6, number, parsed) == 1;
}

bool address_parse(struct address *a, const char *text) {
  const char *colon = strrchr(text, ':');
  uint64_t port;
  if (!colon || !text_decimal(colon + 1, &port) || port > UINT16_MAX) return false;
  size_t length = (size_t)(colon - text);
  const bool brackets = length >= 2 && text[0] == '[' && colon[-1] == ']';
  if (brackets) {
    text++;
    length -= 2;
  }
  if (length >= sizeof a->host) return false;
  memcpy(a->host, text, length);
  a->host[length] = '\0';
  snprintf(a->port, sizeof a->port, "%u", (unsigned)port);
  if (brackets) return is_ipv6(a->host);
  if (strcmp(a->host, "*") == 0) a->host[0] = '\0';
  return is_name(a->host);
}

void address_reach(struct address *a) {
  if (!a->host[0] || !strcmp(a->host, "0.0.0.0"))
    snprintf(a->host, sizeof a->host, "127.0.0.1");
  else if (!strcmp(a->host, "::"))
    snprintf(a->host, sizeof a->host, "::1");
}

bool address_is_loopback(const struct address *a) {
  enum { LOOPBACK_NET = 127 };
  struct in_addr four;
  struct in6_addr six;
  if (inet_pton(AF_INET, a->host, &four) == 1) return ntohl(four.s_addr) >> 24 == LOOPBACK_NET;
  if (inet_pton(AF_INET6, a->host, &six) != 1) return false;
  return IN6_IS_ADDR_LOOPBACK(&six) ||
         (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == LOOPBACK_NET);
}
