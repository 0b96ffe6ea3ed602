/* framing: finds faults of a request that libmicrohttpd does not report: of its target, and bytes
 * of its header or trailer. (server/docs/errors.md lists what no check here can see.)
 *
 * Before its release 1.0, libmicrohttpd drops parts of a header silently: bytes after a NUL, folded
 * lines, lines without a name (which it even takes for the end of the header). A proxy before the
 * server may have read them, and found another length of the body: that is request smuggling.
 * libmicrohttpd cuts the header in place: the names and values that it reports point into its
 * buffer, in order, and NULs have replaced the ends of lines. So the header can be walked again,
 * and every byte must be accounted for. From 1.0 on libmicrohttpd refuses such headers itself, and
 * all checks here pass.
 *
 * Two things leave no trace in the buffer: `:` or NUL before a bare LF, which looks like CR and LF
 * afterwards; and, after a chunked body, a first trailer line that begins with NUL. */
#ifndef SERVER_FRAMING_H
#define SERVER_FRAMING_H

#include <stdbool.h>

struct MHD_Connection;

/* Whether the linked libmicrohttpd is older than 1.0, so that the checks here are needed. Its own
 * strict checks are no help then: a target with blanks merely closes the connection, and a missing
 * Host gets a response that has its header twice. */
bool framing_is_needed(void);

static inline bool framing_is_control(char c) { return (unsigned char)c < ' ' || c == 0x7f; }

/* The end of the host at `at`, and perhaps a port (RFC 9112, 3.2); the host may be empty. NULL:
 * brackets without an address. Commas end the host, although a name may have them: more likely a
 * proxy has joined two hosts. */
const char *framing_skip_host(const char *at);

/* The first bytes of a connection. */
enum framing_first {
  FRAMING_NOTHING, /* none have arrived */
  FRAMING_PART,    /* too few: HTTP/2 may begin so */
  FRAMING_HTTP_2,
  FRAMING_OTHER /* or the end of the connection */
};
enum framing_first framing_look(int fd); /* leaves the bytes in the socket */

/* Sends frames of HTTP/2 that require HTTP/1.1, and ends the sending half. */
void framing_refuse_http2(int fd);

/* The target of a request as it came. */
struct framing_target {
  const char *end;   /* in libmicrohttpd's buffer */
  const char *fault; /* a sentence: why no request may have it; NULL: none */
};

/* To be called with the target of a request in libmicrohttpd's buffer, before it is parsed. Removes
 * what follows the '?': arguments have no meaning here, and libmicrohttpd sends no answer if it has
 * no room for all of them. */
struct framing_target framing_target(const char *target);

/* Whether the header, as it arrived, is exactly the request line, the reported fields and an empty
 * line. To be called in the first call of the access handler, with its arguments and the end that
 * framing_target has found. */
bool framing_header_is_whole(struct MHD_Connection *c, const char *method, const char *url,
                             const char *version, const char *target_end);

/* Whether header fields follow the chunked body. Their end cannot be checked, so the bytes after
 * them must not be read as a request. */
bool framing_has_trailer(struct MHD_Connection *c);

#endif
