/* trace: the header field traceparent (W3C Trace Context, level 1): which trace a request is of. */
#ifndef SERVER_TRACE_H
#define SERVER_TRACE_H

#include <stdbool.h>

enum { TRACE_ID_SIZE = 32, TRACE_PARENT_SIZE = 16 };

/* Is the value `version-traceid-parentid-flags` as the standard has it? Of a later version than 00
 * only these four parts are looked at; version ff and identifiers of zeros are invalid. */
bool trace_is_valid(const char *value);

/* The parts of a valid value: so many lower-case hexadecimal digits, without a NUL behind them. */
static inline const char *trace_id(const char *value) { return value + 3; }
static inline const char *trace_parent(const char *value) { return value + 36; }

#endif
