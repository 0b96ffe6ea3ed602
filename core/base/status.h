/* status: the one error value of the whole program: the kind of a failure, its place, and a
 * message.
 *
 * All modules fill it, so it is in the lowest one and knows more than core/ does. Its kinds are all
 * that a client or an operator can meet, including those of HTTP and JSON. Its place is a byte or a
 * JSON Pointer of a request's body, or the name of a setting. core/ sets nine of the kinds (too
 * large, not finite, overloaded, queue full, draining, out of memory, deadline, gone, system) and
 * names two of the settings. With one error value per layer of the program, every call across
 * layers would have to translate.
 *
 * A function that can fail for reasons outside the program returns `enum status` and fills the
 * `struct error` it was given; the first failure is kept. Our own bugs are found by
 * `must(condition)`, which ends the process. An error is plain data: it can be copied, and need not
 * be freed. */
#ifndef CORE_STATUS_H
#define CORE_STATUS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* server/route/problems.c has the HTTP status and the title of each kind. */
enum status {
  STATUS_OK = 0,
  STATUS_INVALID_JSON,    /* not JSON, at `offset` */
  STATUS_INVALID_REQUEST, /* JSON, but not as the contract requires, at `pointer` */
  STATUS_BAD_FRAMING,     /* the HTTP message is not well-formed */
  STATUS_UNAUTHORIZED,    /* no API key, or an unknown one */
  STATUS_NOT_FOUND,
  STATUS_UNKNOWN_MODEL,
  STATUS_METHOD_NOT_ALLOWED,
  STATUS_NOT_ACCEPTABLE,
  STATUS_TOO_SLOW,
  STATUS_TOO_LARGE, /* `limit` names the setting */
  STATUS_UNSUPPORTED_MEDIA_TYPE,
  STATUS_NOT_FINITE, /* a projection, score or result exceeds the float32 range */
  STATUS_OVERLOADED, /* the memory budget is full */
  STATUS_QUEUE_FULL, /* the queue is full; a client sees the same as with STATUS_OVERLOADED */
  STATUS_UNSUPPORTED_TRANSFER_ENCODING,
  STATUS_DRAINING,
  STATUS_NOT_READY,
  STATUS_OUT_OF_MEMORY,
  STATUS_DEADLINE,
  STATUS_GONE,   /* the client has disconnected */
  STATUS_CONFIG, /* a setting, a model definition or a checkpoint is wrong */
  STATUS_SYSTEM, /* the operating system refused */
  STATUS_COUNT
};

enum { ERROR_DETAIL_SIZE = 640, ERROR_POINTER_SIZE = 96 };

struct error {
  enum status status;
  bool has_offset;
  size_t offset;                    /* byte of the body, if has_offset */
  const char *limit;                /* name of the exceeded setting; static text or NULL */
  char pointer[ERROR_POINTER_SIZE]; /* JSON Pointer of the offending value, or empty */
  char detail[ERROR_DETAIL_SIZE];   /* a sentence without a full stop */
};

/* Sets the error unless `e` has one already; returns e->status. */
enum status error_set(struct error *e, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum status error_set_v(struct error *e, enum status status, const char *format, va_list args);
enum status error_no_memory(struct error *e); /* STATUS_OUT_OF_MEMORY, "out of memory" */

/* The same, with the place: a JSON Pointer, a byte of the body, or the setting that is exceeded. */
enum status error_at(struct error *e, const char *pointer, const char *format, ...)
    __attribute__((format(printf, 3, 4))); /* always STATUS_INVALID_REQUEST */
enum status error_at_v(struct error *e, const char *pointer, const char *format, va_list args);
enum status error_json(struct error *e, size_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4))); /* always STATUS_INVALID_JSON */
enum status error_limit(struct error *e, const char *limit, const char *format, ...)
    __attribute__((format(printf, 3, 4))); /* always STATUS_TOO_LARGE */

/* Ends the process with a message if `condition` is false, which only a bug can cause. */
#define must(condition) ((condition) ? (void)0 : must_failed(#condition, __FILE__, __LINE__))
_Noreturn void must_failed(const char *condition, const char *file, int line);

#endif
