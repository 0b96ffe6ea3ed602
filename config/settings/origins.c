/* origins: checks web origins as strictly as they are compared later. */
#include "config/settings/origins.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

#include "config/document/text.h"

enum { ORIGIN_MOST = 255 };

static const char small[] = "abcdefghijklmnopqrstuvwxyz";
static const char digits[] = "0123456789";
static const char scheme_more[] = "abcdefghijklmnopqrstuvwxyz0123456789+-.";
static const char host_letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-._";

const char *origins_next(const char *at, const char **origin, size_t *size) {
  if (!at || !*at) return NULL;
  const char *end = at + strcspn(at, ",");
  const char *next = *end ? end + 1 : end;
  at += strspn(at, " \t");
  while (end > at && strchr(" \t", end[-1])) end--;
  *origin = at;
  *size = (size_t)(end - at);
  return next;
}

/* Returns the end of a host: a name, an IPv4 address, or an IPv6 address in brackets as browsers
 * write it. NULL: there is no host. */
static const char *skip_host(const char *at) {
  if (*at != '[') {
    const char *end = at + strspn(at, host_letters);
    return end == at || *at == '-' || *at == '.' ? NULL : end;
  }
  struct in6_addr address;
  char text[INET6_ADDRSTRLEN], again[INET6_ADDRSTRLEN];
  const size_t size = strcspn(at + 1, "]");
  if (!at[1 + size] || size >= sizeof text) return NULL;
  memcpy(text, at + 1, size);
  text[size] = '\0';
  if (inet_pton(AF_INET6, text, &address) != 1) return NULL;
  inet_ntop(AF_INET6, &address, again, sizeof again);
  return strcmp(text, again) == 0 ? at + size + 2 : NULL;
}

/* Returns the mistake in an origin; NULL: it is correct. */
static const char *origin_fault(const char *origin) {
  static const char shape[] = "is not an origin such as https://a.example or http://127.0.0.1:8080";
  if (!*origin) return "is empty: there is a comma too many";
  if (strcmp(origin, "*") == 0) return "means every origin and cannot be in a list";
  if (strcmp(origin, "null") == 0)
    return "is sent by pages without an origin, and anybody can make one";
  if (strpbrk(origin, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    return "has capital letters, where browsers send small ones";
  const char *at = origin + strspn(origin, scheme_more);
  if (!strspn(origin, small) || strncmp(at, "://", 3) != 0) return shape;
  at = skip_host(at + 3);
  if (!at) return shape;
  if (*at == '/') return "ends with a path; an origin has none, not even a '/'";
  if (*at != ':') return *at ? shape : NULL;
  const char *port = at + 1;
  uint64_t number;
  if (strspn(port, digits) != strlen(port) || *port == '0' || !text_decimal(port, &number) ||
      number > UINT16_MAX)
    return "has no port from 1 to 65535 after its colon";
  if ((number == 80 && strncmp(origin, "http:", 5) == 0) ||
      (number == 443 && strncmp(origin, "https:", 6) == 0))
    return "names the default port of its scheme, which browsers leave out";
  return NULL;
}

enum status origins_check(const char *list, const char *where, struct error *e) {
  const char *origin, *next = list;
  char copy[ORIGIN_MOST + 1];
  size_t size;
  if (!*list || strcmp(list, "*") == 0) return STATUS_OK;
  if (list[strlen(list) - 1] == ',')
    return error_set(e, STATUS_CONFIG, "%s: ends with a comma", where);
  while ((next = origins_next(next, &origin, &size))) {
    if (size > ORIGIN_MOST)
      return error_set(e, STATUS_CONFIG, "%s: \"%.40s...\" is longer than %d characters", where,
                       origin, ORIGIN_MOST);
    memcpy(copy, origin, size);
    copy[size] = '\0';
    const char *fault = origin_fault(copy);
    if (fault) return error_set(e, STATUS_CONFIG, "%s: \"%s\" %s", where, copy, fault);
  }
  return STATUS_OK;
}
