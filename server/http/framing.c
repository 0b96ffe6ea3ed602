/* framing: looks at a request's target before libmicrohttpd cuts it, and walks its header again
 * afterwards. */
#include "server/http/framing.h"

#include <ctype.h>
#include <errno.h>
#include <microhttpd.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#define HTTP_2_PREFACE "PRI * HTTP/2.0\r\n"
#define HTTP_2_WHY     "this server supports only HTTP/1.1: use a proxy for HTTP/2"

enum framing_first framing_look(int fd) {
  char first[sizeof HTTP_2_PREFACE - 1];
  const ssize_t got = recv(fd, first, sizeof first, MSG_PEEK | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return FRAMING_NOTHING;
  if (got <= 0 || memcmp(first, HTTP_2_PREFACE, (size_t)got) != 0) return FRAMING_OTHER;
  return got == sizeof first ? FRAMING_HTTP_2 : FRAMING_PART;
}

/* Sends empty SETTINGS, as the first frame has to be, and GOAWAY: no stream was looked at, the code
 * is HTTP_1_1_REQUIRED, and a sentence is its data, which some clients show (RFC 9113, 6.8). */
void framing_refuse_http2(int fd) {
  enum { GOAWAY_BYTES = 8 + sizeof HTTP_2_WHY - 1 };
  static const char frames[] = {0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, GOAWAY_BYTES, 7, 0, 0,
                                0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 13};
  char text[sizeof frames + sizeof HTTP_2_WHY - 1];
  memcpy(text, frames, sizeof frames);
  memcpy(text + sizeof frames, HTTP_2_WHY, sizeof HTTP_2_WHY - 1);
  (void)!send(fd, text, sizeof text, MSG_DONTWAIT | MSG_NOSIGNAL);
  shutdown(fd, SHUT_WR);
}

/* The end of the letters, digits and `others` at `at`. */
static const char *skip_characters(const char *at, const char *others) {
  while (isalnum((unsigned char)*at) || (*at && strchr(others, *at))) at++;
  return at;
}

const char *framing_skip_host(const char *at) {
  if (*at == '[') {
    const char *end = skip_characters(at + 1, "-._~%:");
    if (end == at + 1 || *end != ']') return NULL;
    at = end + 1;
  } else {
    at = skip_characters(at, "-._~%!$&'()*+;=");
  }
  if (*at == ':')
    for (at++; isdigit((unsigned char)*at);) at++;
  return at;
}

bool framing_is_needed(void) { return MHD_get_version()[0] == '0'; }

/* A sentence about a target that a proxy may have understood in another way than the routes do: cut
 * at a '#', of another host, or with other characters. NULL: no fault. */
static const char *find_fault(const char *target, const char *end) {
  if (*end == ' ') return "the target has a space: send it as %20";
  const char *scheme = *target == '/' ? NULL : memmem(target, (size_t)(end - target), "://", 3);
  if (scheme) {
    const char *host = scheme + 3, *at = host, *host_end = framing_skip_host(host);
    while (at < end && !strchr("/?@", *at)) at++;
    if (at < end && *at == '@') return "the target must not have a user (user@host)";
    if (!host_end || host_end == host || *host == ':' ||
        (host_end != end && !strchr("/?#", *host_end)))
      return "the target's host is not a host with an optional port";
  } else if (*target != '/' && !(*target == '*' && end == target + 1)) {
    return "the target is neither a path, which begins with /, nor an absolute URI";
  }
  for (const char *at = target; at < end; at++) {
    if (*at == '#') return "the target must not have a fragment (#)";
    if ((unsigned char)*at >= 0x80)
      return "the target has a byte that is not ASCII: send it as %XX";
  }
  return NULL;
}

struct framing_target framing_target(const char *target) {
  const char *end = target;
  while (*end != ' ' && !framing_is_control(*end)) end++;
  const struct framing_target found = {.end = end, .fault = find_fault(target, end)};
  char *query = strchr(target, '?');
  if (query && framing_is_needed()) query[1] = 0; /* libmicrohttpd is about to write there, too */
  return found;
}

/* --- the header, walked again --- */

/* A walk through a header: `at` is after the text of a line and before the line's end. */
struct framing_walk {
  const char *at;
  bool whole; /* so far every byte was accounted for */
};

/* Whether there are only NULs from `from` to `to`, at least `least` and at most `most`. False if
 * the two are not in this order, or not in the same buffer: that makes `size` huge. */
static bool is_nuls(const char *from, const char *to, size_t least, size_t most) {
  size_t size = (uintptr_t)to - (uintptr_t)from;
  if (size < least || size > most) return false;
  for (size_t i = 0; i < size; i++)
    if (from[i]) return false;
  return true;
}

/* Walks over the end of the line before (CR and LF, or LF; NULs now), a name, a colon (a NUL now),
 * blanks, and the value. A folded value was put together in other memory, or begins its second line
 * with a blank. A CR in a value would be the end of a line to some proxies. */
static enum MHD_Result walk_field(void *of, enum MHD_ValueKind kind, const char *name,
                                  size_t name_size, const char *value, size_t value_size) {
  (void)kind;
  struct framing_walk *w = of;
  const char *text = name + name_size + 1;
  w->whole = value && is_nuls(w->at, name, 1, 2) && !name[name_size] &&
             value == text + strspn(text, " \t") && !memchr(value, '\r', value_size);
  if (!w->whole) return MHD_NO;
  w->at = value + value_size;
  return MHD_YES;
}

bool framing_header_is_whole(struct MHD_Connection *c, const char *method, const char *url,
                             const char *version, const char *target_end) {
  if (!framing_is_needed()) return true;
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(c, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  /* `POST /path HTTP/1.1`, whose blanks are NULs now. libmicrohttpd allows several blanks before
   * the target. */
  const char *target = method + strlen(method) + 1;
  struct framing_walk w = {.at = version + strlen(version),
                           .whole = info && url == target + strspn(target, " ") &&
                                    version == target_end + 1};
  if (w.whole) MHD_get_connection_values_n(c, MHD_HEADER_KIND, walk_field, &w);
  /* The ends of the last field and of the empty line follow. */
  return w.whole && is_nuls(w.at, method + info->header_size, 2, 4);
}

bool framing_has_trailer(struct MHD_Connection *c) {
  return MHD_get_connection_values_n(c, MHD_FOOTER_KIND, NULL, NULL) > 0;
}
