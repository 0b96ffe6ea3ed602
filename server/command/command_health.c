/* command_health: `attend health [URL]`, a client of one request over a plain socket. */
#include "server/command/command.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "config/settings/address.h"
#include "core/base/clock.h"
#include "core/base/status.h"

enum { TOTAL_MS = 3000, PATH_SIZE = 512 };

struct command_health_target {
  struct address address;
  char path[PATH_SIZE];
};

static enum status parse_url(struct command_health_target *t, const char *url, struct error *e) {
  char authority[ADDRESS_HOST_SIZE + 16];
  if (strncasecmp(url, "http://", 7))
    return error_set(e, STATUS_CONFIG, "'%.100s' does not begin with http://", url);
  url += 7;
  size_t n = strcspn(url, "/?#");
  if (n + 4 >= sizeof authority || strlen(url + n) >= sizeof t->path || strpbrk(url, " \t\r\n"))
    return error_set(e, STATUS_CONFIG, "'%.100s' is no URL of a server", url);
  memcpy(authority, url, n);
  authority[n] = 0;
  const char *colon = strrchr(authority, ':'), *bracket = strrchr(authority, ']');
  bool has_port = colon && !(bracket && colon < bracket);
  if (!has_port) snprintf(authority + n, sizeof authority - n, ":80");
  snprintf(t->path, sizeof t->path, "%s", url[n] == '/' ? url + n : "/healthz");
  if (!strcmp(t->path, "/")) snprintf(t->path, sizeof t->path, "/healthz");
  if (address_parse(&t->address, authority)) return STATUS_OK;
  return error_set(e, STATUS_CONFIG, "'%.100s' is not an address and a port", authority);
}

/* Waits until the socket is ready; false: the time is over. */
static bool wait_for_socket(int fd, short events, uint64_t until) {
  uint64_t now = clock_now();
  struct pollfd p = {.fd = fd, .events = events};
  return now < until && poll(&p, 1, (int)((until - now) / CLOCK_MS) + 1) > 0;
}

static int connect_to(const struct address *a, uint64_t until, struct error *e) {
  struct addrinfo *found = NULL;
  const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
  int failed = getaddrinfo(a->host, a->port, &wanted, &found), fd = -1;
  if (failed) {
    error_set(e, STATUS_SYSTEM, "%.100s: %s", a->host, gai_strerror(failed));
    return -1;
  }
  int why = ETIMEDOUT;
  for (const struct addrinfo *at = found; at && fd < 0; at = at->ai_next) {
    socklen_t size = sizeof why;
    fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    why = connect(fd, at->ai_addr, at->ai_addrlen) ? errno : 0;
    if (why == EINPROGRESS && wait_for_socket(fd, POLLOUT, until))
      getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &size);
    if (why == 0) break;
    close(fd);
    fd = -1;
  }
  freeaddrinfo(found);
  if (fd < 0)
    error_set(e, STATUS_SYSTEM, "cannot connect to %.100s:%s: %s", a->host, a->port,
              strerror(why == EINPROGRESS ? ETIMEDOUT : why));
  return fd;
}

static bool send_request(int fd, const struct command_health_target *t, uint64_t until) {
  char text[PATH_SIZE + ADDRESS_HOST_SIZE + 128];
  bool six = strchr(t->address.host, ':') != NULL;
  size_t size =
      (size_t)snprintf(text, sizeof text,
                       "GET %s HTTP/1.1\r\nHost: %s%s%s:%s\r\nConnection: close\r\n\r\n", t->path,
                       six ? "[" : "", t->address.host, six ? "]" : "", t->address.port);
  for (size_t done = 0; done < size;) {
    ssize_t n = send(fd, text + done, size - done, MSG_NOSIGNAL);
    if (n > 0)
      done += (size_t)n;
    else if (errno != EAGAIN || !wait_for_socket(fd, POLLOUT, until))
      return false;
  }
  return true;
}

/* Reads "HTTP/1.x NNN", the start of the status line; -1: it does not arrive. Interim responses
 * (1xx) are sent only to a client that asks for them. */
static int read_status_code(int fd, uint64_t until) {
  char line[16] = "";
  for (size_t have = 0; have < 12;) {
    ssize_t n = recv(fd, line + have, 12 - have, 0);
    if (n > 0)
      have += (size_t)n;
    else if (n == 0 || errno != EAGAIN || !wait_for_socket(fd, POLLIN, until))
      return -1;
  }
  int code = -1;
  return sscanf(line, "HTTP/1.%*1d %3d", &code) == 1 ? code : -1;
}

int command_health(const char *url, const char *listen) {
  struct command_health_target t = {.path = "/healthz"};
  struct error e = {0};
  uint64_t until = clock_now() + TOTAL_MS * (uint64_t)CLOCK_MS;
  int fd = -1, code = -1;
  if (!url) must(address_parse(&t.address, listen)); /* config_read has checked it */
  if (url && parse_url(&t, url, &e)) {
    fprintf(stderr, "attend: %s\n", e.detail);
    return COMMAND_MISUSED;
  }
  address_reach(&t.address);
  fd = connect_to(&t.address, until, &e);
  if (fd >= 0 && send_request(fd, &t, until)) code = read_status_code(fd, until);
  if (fd >= 0) close(fd);
  if (code == 200) return COMMAND_DONE;
  if (e.status)
    fprintf(stderr, "attend: %s\n", e.detail);
  else if (code < 0)
    fprintf(stderr, "attend: no answer from %s:%s\n", t.address.host, t.address.port);
  else
    fprintf(stderr, "attend: %s says %d\n", t.path, code);
  return COMMAND_FAILED;
}
