/* request_id: the identifier that a request has in its answer and in the log: the client's own, or
 * one made here. */
#ifndef SERVER_REQUEST_ID_H
#define SERVER_REQUEST_ID_H

#include <stdbool.h>
#include <stdint.h>

enum { REQUEST_ID_SIZE = 129 }; /* at most 128 characters, and the NUL */

/* Is this a client's identifier that may be repeated in a header field and in a log? Letters,
 * digits, '.', '_' and '-', at most 128 of them. */
bool request_id_is_valid(const char *id);

/* Makes the identifier of request `number` on a connection. */
void request_id_make(char id[REQUEST_ID_SIZE], uint32_t process, uint64_t connection,
                     unsigned number);

/* Makes a random one, for an answer to bytes that never became a request. Returns `id`. */
const char *request_id_make_random(char id[REQUEST_ID_SIZE]);

/* A random number; made of time and process where the system has no randomness yet. */
uint64_t request_id_random(void);

#endif
