/* request_id: identifiers of requests that bring none of their own. */
#ifndef SERVER_REQUEST_ID_H
#define SERVER_REQUEST_ID_H

#include <stdint.h>

enum { REQUEST_ID_SIZE = 129 }; /* a client's own has at most 128 characters */

/* Of the process, the connection, and the request on it. */
void request_id_make(char id[REQUEST_ID_SIZE], uint32_t process, uint64_t connection,
                     unsigned number);

/* A random one, for an answer to what never became a request. Returns `id`. */
const char *request_id_new(char id[REQUEST_ID_SIZE]);

/* Random, or made of the time where the system has no random numbers yet. */
uint64_t request_id_random(void);

#endif
