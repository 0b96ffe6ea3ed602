/* reply: a response, from its status or its bytes to libmicrohttpd's queue.
 *
 * Bytes that are queued stay the caller's, and must live until the request has ended, except in
 * reply_and_free. */
#ifndef SERVER_REPLY_H
#define SERVER_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "core/base/status.h"
#include "server/route/elsewhere.h"

struct MHD_Connection;

/* Room for a problem of which every character has to be escaped; for one that also has the member
 * `error`; and for that with a header. */
enum {
  REPLY_PROBLEM_SIZE = 6 * (ERROR_DETAIL_SIZE + ERROR_POINTER_SIZE) + 512,
  REPLY_ERROR_SIZE = 2 * REPLY_PROBLEM_SIZE,
  REPLY_RAW_SIZE = REPLY_ERROR_SIZE + 1024
};

unsigned reply_code(enum status status);    /* the HTTP status */
const char *reply_slug(enum status status); /* the last word of the problem type */

/* Writes the error as one sentence, with its pointer, offset and limit. Returns the length. */
enum { REPLY_SENTENCE_SIZE = ERROR_DETAIL_SIZE + ERROR_POINTER_SIZE + 128 };
size_t reply_sentence(const struct error *e, char sentence[REPLY_SENTENCE_SIZE]);

/* Writes the body of an error. Returns the length. */
size_t reply_error_text(const struct error *e, enum error_form form, char text[REPLY_ERROR_SIZE]);

/* Writes a complete HTTP message with Connection: close, for a connection to which libmicrohttpd
 * sends no response. `request_id` may be NULL: it gets a new one. `origin` may be NULL: no page may
 * read the response. Returns the length. */
size_t reply_raw(const struct error *e, enum error_form form, const char *request_id,
                 const char *origin, char text[REPLY_RAW_SIZE]);

/* One header field of a response. A list of them ends with an empty one. */
struct reply_field {
  const char *name, *value;
};

/* The header of a response, field by field. */
enum { REPLY_FIELDS = 24 };
struct reply {
  struct MHD_Connection *to;
  unsigned code;
  enum error_form errors;
  size_t fields;
  struct reply_field field[REPLY_FIELDS];
};

/* Add a field, or those of a list. Their texts must live until the response is queued. */
void reply_add(struct reply *r, const char *name, const char *value);
void reply_add_all(struct reply *r, const struct reply_field *list);

/* These queue a response. False: that failed, and the connection has to be closed. */
bool reply_pieces(const struct reply *r, const struct iovec *piece, size_t pieces);
bool reply_bytes(const struct reply *r, const char *bytes, size_t length);
bool reply_and_free(const struct reply *r, char *bytes, size_t length); /* always frees `bytes` */

/* Queues a body that `read` returns piece by piece (MHD_ContentReaderCallback). */
enum { REPLY_STREAM_ROOM = 32 * 1024 };
bool reply_stream(const struct reply *r,
                  ssize_t (*read)(void *of, uint64_t at, char *out, size_t room), void *of);

/* Queues an error, with its code and fields. Its body is written to `text`, its length to
 * `*length`. */
bool reply_error(struct reply *r, const struct error *e, char text[REPLY_ERROR_SIZE],
                 size_t *length);

#endif
