/* framing: nothing stands in a request's head, or behind its body, that libmicrohttpd did not tell.
 *
 * Before its release 1.0, libmicrohttpd drops parts of a head without a word: what follows a NUL,
 * folded lines, lines without a name (which it even takes for the end of the head). Whoever stands
 * before us may have read them, and taken another length for the body. It cuts the head in place:
 * the names and values that it reports point into its buffer, in order, and the ends of lines have
 * become NULs. So the head can be walked again, and every byte has to be accounted for. From 1.0 on
 * libmicrohttpd judges all that itself, and everything here says yes.
 *
 * What leaves no trace there: `:` or NUL before a bare LF, which looks like CR and LF afterwards;
 * and behind a chunked body, a first trailer line that begins with NUL. */
#ifndef SERVER_FRAMING_H
#define SERVER_FRAMING_H

#include <stdbool.h>

struct MHD_Connection;

/* The target of a request as it came, in libmicrohttpd's buffer, before it is parsed. Returns its
 * end and removes what follows the '?': nobody here reads arguments, and libmicrohttpd falls
 * silent over more of them than its memory for a connection holds. */
const char *framing_target(const char *target);

/* In the first call of the access handler, with its arguments and what framing_target returned: is
 * the head as it came exactly the request line, the fields that are reported, and an empty line? */
bool framing_head_is_whole(struct MHD_Connection *c, const char *method, const char *url,
                           const char *version, const char *target_end);

/* After a chunked body: did fields follow it? Where such fields end cannot be checked, so nothing
 * that comes behind them may be taken for a request. */
bool framing_has_trailer(struct MHD_Connection *c);

#endif
