/* listener: a listening socket. */
#include "server/http/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int listen_on(const struct addrinfo *at) {
  int one = 1, zero = 0;
  int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  /* Accepted sockets inherit it, so that small responses leave at once without a call for each. */
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (at->ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
  if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0) return fd;
  int why = errno;
  close(fd);
  errno = why;
  return -1;
}

enum status listener_open(struct listener *l, const char *setting, const struct address *a,
                          struct error *e) {
  struct addrinfo *found = NULL;
  const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
  int failed = getaddrinfo(a->host[0] ? a->host : "0.0.0.0", a->port, &wanted, &found);
  if (failed) {
    const bool ours = failed == EAI_MEMORY || failed == EAI_AGAIN || failed == EAI_SYSTEM;
    return error_set(e, ours ? STATUS_SYSTEM : STATUS_CONFIG, "%s: %.100s: %s", setting, a->host,
                     gai_strerror(failed));
  }
  const bool six = strchr(a->host, ':');
  int fd = -1;
  for (const struct addrinfo *at = found; at && fd < 0; at = at->ai_next) fd = listen_on(at);
  const int fault = errno;
  if (fd < 0)
    error_set(e, STATUS_SYSTEM, "%s: cannot listen on %s%.100s%s:%s: %s%s", setting, six ? "[" : "",
              a->host, six ? "]" : "", a->port, strerror(fault),
              fault != EADDRINUSE ? ""
              : strcmp(setting, "listen") == 0
                  ? "; choose another port: --listen 127.0.0.1:9000"
                  : "; choose another port: --admin-listen 127.0.0.1:9001");
  freeaddrinfo(found);
  *l = (struct listener){.fd = fd};
  return e->status;
}

static int socket_option(int fd, int which) {
  int value = -1;
  socklen_t size = sizeof value;
  return getsockopt(fd, SOL_SOCKET, which, &value, &size) ? -1 : value;
}

enum status listener_inherit(struct listener *l, int fd, struct error *e) {
  const int domain = socket_option(fd, SO_DOMAIN), one = 1;
  if ((domain != AF_INET && domain != AF_INET6) || socket_option(fd, SO_TYPE) != SOCK_STREAM ||
      socket_option(fd, SO_ACCEPTCONN) != 1)
    return error_set(e, STATUS_CONFIG,
                     "LISTEN_FDS: descriptor %d is no TCP socket that listens: use ListenStream "
                     "with an address and a port, and Accept=no",
                     fd);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  *l = (struct listener){.fd = fd, .inherited = true};
  return STATUS_OK;
}

void listener_text(int fd, char text[LISTENER_TEXT_SIZE]) {
  struct sockaddr_storage a = {0};
  socklen_t size = sizeof a;
  char host[INET6_ADDRSTRLEN] = "?";
  if (getsockname(fd, (struct sockaddr *)&a, &size)) a.ss_family = AF_UNSPEC;
  if (a.ss_family == AF_INET6) {
    const struct sockaddr_in6 *six = (const void *)&a;
    inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
    snprintf(text, LISTENER_TEXT_SIZE, "[%s]:%u", host, ntohs(six->sin6_port));
  } else {
    const struct sockaddr_in *four = (const void *)&a;
    inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
    snprintf(text, LISTENER_TEXT_SIZE, "%s:%u", host, ntohs(four->sin_port));
  }
}
