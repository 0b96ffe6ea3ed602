/* traceparent: the header field traceparent (W3C Trace Context, level 1). */
#ifndef SERVER_TRACEPARENT_H
#define SERVER_TRACEPARENT_H

#include <stdbool.h>

enum { TRACEPARENT_TRACE_SIZE = 32, TRACEPARENT_PARENT_SIZE = 16 };

/* Is the value `version-traceid-parentid-flags` as in the standard? A version later than 00 may
 * have more parts, which are ignored; version ff and identifiers of zeros are invalid. */
bool traceparent_is_valid(const char *value);

/* Parts of a valid value: TRACEPARENT_TRACE_SIZE and TRACEPARENT_PARENT_SIZE lower-case hexadecimal
 * digits, with no NUL behind them. */
static inline const char *traceparent_trace(const char *value) { return value + 3; }
static inline const char *traceparent_parent(const char *value) { return value + 36; }

#endif
