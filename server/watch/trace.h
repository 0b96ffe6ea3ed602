/* trace: the header field traceparent (W3C Trace Context, level 1): the trace a request belongs to.
 */
#ifndef SERVER_TRACE_H
#define SERVER_TRACE_H

#include <stdbool.h>

enum { TRACE_ID_SIZE = 32, TRACE_PARENT_SIZE = 16 };

/* Is the value `version-traceid-parentid-flags` as in the standard? A version later than 00 may
 * have more parts, which are ignored; version ff and identifiers of zeros are invalid. */
bool trace_is_valid(const char *value);

/* Parts of a valid value: TRACE_ID_SIZE and TRACE_PARENT_SIZE lower-case hexadecimal digits, with
 * no NUL behind them. */
static inline const char *trace_id(const char *value) { return value + 3; }
static inline const char *trace_parent(const char *value) { return value + 36; }

#endif
