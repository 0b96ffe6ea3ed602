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

/* Empty SETTINGS, as the first frame has to be, and GOAWAY: no stream was looked at, the code is
 * HTTP_1_1_REQUIRED, and a sentence is its data, which some clients show (RFC 9113, 6.8). */
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

/* A walk through a header: `at` is after the text of a line and before the line's end. */
struct framing_walk {
  const char *at;
  bool whole; /* so far every byte was accounted for */
};

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

/* The authority of a target that is a whole URI; NULL: it is a path, or something else. */
static const char *find_authority(const char *target, const char *end) {
  const char *at = *target == '/' ? NULL : memmem(target, (size_t)(end - target), "://", 3);
  return at ? at + 3 : NULL;
}

static bool names_user(const char *authority, const char *end) {
  while (authority < end && !strchr("/?@", *authority)) authority++;
  return authority < end && *authority == '@';
}

static bool is_authority(const char *at, const char *end) {
  const char *behind = framing_skip_host(at);
  return behind && behind > at && *at != ':' && (behind == end || strchr("/?#", *behind));
}

/* A proxy that takes such a target may have asked its rules about another one than the routes see:
 * about what comes before the '#', about another host, or about other characters. */
static const char *find_fault(const char *target, const char *end) {
  if (*end == ' ') return "the target has a space: send it as %20";
  const char *authority = find_authority(target, end);
  if (authority && names_user(authority, end)) return "the target must not have a user (user@host)";
  if (authority && !is_authority(authority, end))
    return "the target's host is not a host with an optional port";
  if (!authority && *target != '/' && !(*target == '*' && end == target + 1))
    return "the target is neither a path, which begins with /, nor an absolute URI";
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

/* Are there only NULs from `from` to `to`, at least `least` and at most `most`? False if the two
 * are not in this order, or not in the same buffer: that makes `size` huge. */
static bool is_nuls(const char *from, const char *to, size_t least, size_t most) {
  size_t size = (uintptr_t)to - (uintptr_t)from;
  if (size < least || size > most) return false;
  for (size_t i = 0; i < size; i++)
    if (from[i]) return false;
  return true;
}

/* Is this all the end of a line: CR and LF, or LF? */
static bool is_line_end(const char *from, const char *to) { return is_nuls(from, to, 1, 2); }

/* Walks on over the end of the line before, a name, a colon (a NUL now), blanks, and the value. A
 * folded value was put together in other memory, or begins its second line with a blank. */
static bool walk_field(struct framing_walk *w, const char *name, size_t name_size,
                       const char *value, size_t value_size) {
  if (!value || !is_line_end(w->at, name) || name[name_size]) return false;
  const char *text = name + name_size + 1;
  if (value != text + strspn(text, " \t")) return false;
  w->at = value + value_size;
  return !memchr(value, '\r', value_size); /* which some proxies take for the end of a line */
}

static enum MHD_Result on_field(void *of, enum MHD_ValueKind kind, const char *name,
                                size_t name_size, const char *value, size_t value_size) {
  (void)kind;
  struct framing_walk *w = of;
  w->whole = walk_field(w, name, name_size, value, value_size);
  return w->whole ? MHD_YES : MHD_NO;
}

/* Walks over `POST /path HTTP/1.1`, whose blanks are NULs now. libmicrohttpd allows several blanks
 * before the target. */
static bool walk_request_line(struct framing_walk *w, const char *method, const char *url,
                              const char *version, const char *target_end) {
  const char *target = method + strlen(method) + 1;
  w->at = version + strlen(version);
  return url == target + strspn(target, " ") && version == target_end + 1;
}

bool framing_header_is_whole(struct MHD_Connection *c, const char *method, const char *url,
                             const char *version, const char *target_end) {
  if (!framing_is_needed()) return true;
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(c, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  struct framing_walk w = {0};
  w.whole = info && walk_request_line(&w, method, url, version, target_end);
  if (w.whole) MHD_get_connection_values_n(c, MHD_HEADER_KIND, on_field, &w);
  /* Left are the ends of the last field and of the empty line. */
  return w.whole && is_nuls(w.at, method + info->header_size, 2, 4);
}

bool framing_has_trailer(struct MHD_Connection *c) {
  return MHD_get_connection_values_n(c, MHD_FOOTER_KIND, NULL, NULL) > 0;
}
