/* request_id: the identifiers that a request has in its response and in the log: X-Request-Id, the
 * client's own or one made here, and those of traceparent (W3C Trace Context, level 1). */
#ifndef SERVER_REQUEST_ID_H
#define SERVER_REQUEST_ID_H

#include <stdbool.h>
#include <stdint.h>

enum {
  REQUEST_ID_SIZE = 129, /* at most 128 characters, and the NUL */
  TRACEPARENT_TRACE_SIZE = 32,
  TRACEPARENT_PARENT_SIZE = 16
};

/* Whether a client's identifier may be repeated in a header field and in a log: letters, digits,
 * '.', '_' and '-', at most 128 of them. */
bool request_id_is_valid(const char *id);

/* Makes the identifier of request `number` on a connection. */
void request_id_make(char id[REQUEST_ID_SIZE], uint32_t process, uint64_t connection,
                     unsigned number);

/* Makes a random one, for a response to bytes that never became a request. Returns `id`. */
const char *request_id_make_random(char id[REQUEST_ID_SIZE]);

/* A random number; made of time and process if the system has no randomness yet. */
uint64_t request_id_random(void);

/* Whether the value is `version-traceid-parentid-flags` as in the standard. A version later than 00
 * may have more parts, which are ignored; version ff and identifiers of zeros are invalid. */
bool traceparent_is_valid(const char *value);

/* Parts of a valid value: TRACEPARENT_TRACE_SIZE and TRACEPARENT_PARENT_SIZE lower-case hexadecimal
 * digits, without a NUL at their end. */
static inline const char *traceparent_trace(const char *value) { return value + 3; }
static inline const char *traceparent_parent(const char *value) { return value + 36; }

#endif
