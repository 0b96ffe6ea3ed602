/* framing: walks a request's head again where libmicrohttpd has cut it. */
#include "server/http/framing.h"

#include <microhttpd.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Where the walk is: behind the text of a line, before its end. */
struct walk {
  const char *at;
  bool whole; /* so far */
};

/* Is the linked libmicrohttpd one of those that have to be watched? */
static bool is_needed(void) { return MHD_get_version()[0] == '0'; }

static bool is_control(char c) { return (unsigned char)c < ' ' || c == 0x7f; }

const char *framing_target(const char *target) {
  const char *end = target;
  while (*end != ' ' && !is_control(*end)) end++;
  char *query = strchr(target, '?');
  if (query && is_needed()) query[1] = 0; /* in a buffer that is about to be cut anyway */
  return end;
}

/* Nothing but `least` to `most` NULs from `from` to `to`; false if they are not in this order, or
 * not in the same buffer: then there is more between them. */
static bool only_nuls(const char *from, const char *to, size_t least, size_t most) {
  size_t size = (uintptr_t)to - (uintptr_t)from; /* huge if `to` is before `from` */
  if (size < least || size > most) return false;
  for (size_t i = 0; i < size; i++)
    if (from[i]) return false;
  return true;
}

/* The end of a line: CR and LF, or LF. */
static bool is_line_end(const char *from, const char *to) { return only_nuls(from, to, 1, 2); }

/* Behind the end of the line before it: name, colon (a NUL now), blanks, value. A folded field
 * was put together elsewhere, or leaves the blank that its second line begins with. */
static bool walk_field(struct walk *w, const char *name, size_t name_size, const char *value,
                       size_t value_size) {
  if (!value || !is_line_end(w->at, name) || name[name_size]) return false;
  const char *text = name + name_size + 1;
  if (value != text + strspn(text, " \t")) return false;
  w->at = value + value_size;
  return !memchr(value, '\r', value_size); /* some take it for the end of a line */
}

static enum MHD_Result on_field(void *of, enum MHD_ValueKind kind, const char *name,
                                size_t name_size, const char *value, size_t value_size) {
  (void)kind;
  struct walk *w = of;
  w->whole = walk_field(w, name, name_size, value, value_size);
  return w->whole ? MHD_YES : MHD_NO;
}

/* `POST /path HTTP/1.1`, its blanks now NULs. libmicrohttpd bears several before the target. */
static bool walk_request_line(struct walk *w, const char *method, const char *url,
                              const char *version, const char *target_end) {
  const char *target = method + strlen(method) + 1;
  w->at = version + strlen(version);
  return url == target + strspn(target, " ") && version == target_end + 1;
}

bool framing_head_is_whole(struct MHD_Connection *c, const char *method, const char *url,
                           const char *version, const char *target_end) {
  if (!is_needed()) return true;
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(c, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  struct walk w = {0};
  w.whole = info && walk_request_line(&w, method, url, version, target_end);
  if (w.whole) MHD_get_connection_values_n(c, MHD_HEADER_KIND, on_field, &w);
  /* The ends of the last field and of the empty line behind it. */
  return w.whole && only_nuls(w.at, method + info->header_size, 2, 4);
}

bool framing_has_trailer(struct MHD_Connection *c) {
  return MHD_get_connection_values_n(c, MHD_FOOTER_KIND, NULL, NULL) > 0;
}
