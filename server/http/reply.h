/* reply: an answer, from its status or its bytes to libmicrohttpd's queue.
 *
 * Holds the one table status -> HTTP status, slug, title. What is queued borrows the caller's
 * bytes until the request has ended, unless it says otherwise. */
#ifndef SERVER_REPLY_H
#define SERVER_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "core/run/status.h"

struct MHD_Connection;

/* Room for a problem whose every character needs an escape. */
enum {
  REPLY_PROBLEM_SIZE = 6 * (ERROR_DETAIL_SIZE + ERROR_POINTER_SIZE) + 512,
  REPLY_RAW_SIZE = REPLY_PROBLEM_SIZE + 1024
};

/* How an error is written: as a problem (RFC 9457), or as the Open Inference Protocol has it, which
 * is one sentence. */
enum reply_errors { REPLY_PROBLEM, REPLY_V2 };

unsigned reply_code(enum status status);    /* its HTTP status */
const char *reply_slug(enum status status); /* the last word of its problem type */

/* The error as one sentence, with all that is known of where it is. Returns its length. */
enum { REPLY_SENTENCE_SIZE = ERROR_DETAIL_SIZE + ERROR_POINTER_SIZE + 128 };
size_t reply_sentence(const struct error *e, char sentence[REPLY_SENTENCE_SIZE]);

/* The body of an error. Returns its length. */
size_t reply_error_text(const struct error *e, enum reply_errors form,
                        char text[REPLY_PROBLEM_SIZE]);

/* A whole HTTP message, for a connection that libmicrohttpd does not answer: says
 * Connection: close. Without a `request_id` it gets a new one; `origin`, of the page that may read
 * it, may be NULL. Returns its length. */
size_t reply_raw(const struct error *e, enum reply_errors form, const char *request_id,
                 const char *origin, char text[REPLY_RAW_SIZE]);

/* One header field of an answer. A list of them ends with an empty one. */
struct reply_field {
  const char *name, *value;
};

/* The header of an answer, field by field. */
enum { REPLY_FIELDS = 24 };
struct reply {
  struct MHD_Connection *to;
  unsigned code;
  enum reply_errors errors;
  size_t fields;
  struct reply_field field[REPLY_FIELDS];
};

/* Adds a field, or those of a list; both are borrowed until the answer is queued. */
void reply_add(struct reply *r, const char *name, const char *value);
void reply_add_all(struct reply *r, const struct reply_field *list);

/* Queue an answer. False: it could not be queued, and the connection has to be closed. */
bool reply_pieces(const struct reply *r, const struct iovec *piece, size_t pieces);
bool reply_bytes(const struct reply *r, const char *bytes, size_t length);
bool reply_take(const struct reply *r, char *bytes, size_t length); /* frees `bytes`, always */

/* Fills `r` with what the error says and queues its body, which is written to `text`; `*length`
 * gets its length. */
bool reply_error(struct reply *r, const struct error *e, char text[REPLY_PROBLEM_SIZE],
                 size_t *length);

#endif
