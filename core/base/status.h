/* status: the one error value of the whole program: what went wrong, where, and in words.
 *
 * Functions of all floors fill it, so it lies on the lowest and knows more than core/ does. Its
 * kinds are all that a client or an operator can meet, those of HTTP and JSON among them, and its
 * place is a byte or a JSON Pointer of a request's body, or the name of a setting. core/ sets nine
 * of the kinds (too large, not finite, overloaded, queue full, draining, out of memory, deadline,
 * gone, system) and names two of the settings. With an error value of its own on each floor, every
 * call across floors would have to translate.
 *
 * A function that can fail for reasons outside the program returns `enum status` and fills the
 * `struct error` it was given; the first failure is kept. A fault of our own is `must(condition)`:
 * it ends the process. An error is plain data: it can be copied and kept, and need not be freed. */
#ifndef CORE_STATUS_H
#define CORE_STATUS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* server/route/problems.c has the HTTP status and the title of each kind. */
enum status {
  STATUS_OK = 0,
  STATUS_INVALID_JSON,    /* not JSON: `offset` says where */
  STATUS_INVALID_REQUEST, /* JSON, but not the contract: `pointer` says where */
  STATUS_BAD_FRAMING,     /* the HTTP message is not well-formed */
  STATUS_UNAUTHORIZED,    /* no API key, or one that is not known */
  STATUS_NOT_FOUND,
  STATUS_UNKNOWN_MODEL,
  STATUS_METHOD_NOT_ALLOWED,
  STATUS_NOT_ACCEPTABLE,
  STATUS_TOO_SLOW,
  STATUS_TOO_LARGE, /* `limit` names the setting */
  STATUS_UNSUPPORTED_MEDIA_TYPE,
  STATUS_NOT_FINITE, /* a projection, score or result exceeds the float32 range */
  STATUS_OVERLOADED, /* the memory budget is full */
  STATUS_QUEUE_FULL, /* the queue is full: to a client the same */
  STATUS_UNSUPPORTED_TRANSFER_ENCODING,
  STATUS_DRAINING,
  STATUS_NOT_READY,
  STATUS_OUT_OF_MEMORY,
  STATUS_DEADLINE,
  STATUS_GONE,   /* the client has left: its answer will not be read */
  STATUS_CONFIG, /* a setting, a model definition or a checkpoint is wrong */
  STATUS_SYSTEM, /* the operating system refused */
  STATUS_COUNT
};

enum { ERROR_DETAIL_SIZE = 640, ERROR_POINTER_SIZE = 96 };

struct error {
  enum status status;
  bool has_offset;
  size_t offset;                    /* byte of the body, where has_offset */
  const char *limit;                /* setting that was exceeded; static text or NULL */
  char pointer[ERROR_POINTER_SIZE]; /* JSON Pointer of the offending value, or empty */
  char detail[ERROR_DETAIL_SIZE];   /* a sentence without a full stop */
};

/* Records a failure unless `e` holds one already; returns the status that `e` then holds. */
enum status error_set(struct error *e, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum status error_set_v(struct error *e, enum status status, const char *format, va_list args);
enum status error_no_memory(struct error *e); /* STATUS_OUT_OF_MEMORY, "out of memory" */

/* The same, and where: at a JSON Pointer, at a byte of the body, or by which setting's limit. */
enum status error_at(struct error *e, const char *pointer, const char *format, ...)
    __attribute__((format(printf, 3, 4))); /* always STATUS_INVALID_REQUEST */
enum status error_at_v(struct error *e, const char *pointer, const char *format, va_list args);
enum status error_json(struct error *e, size_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4))); /* always STATUS_INVALID_JSON */
enum status error_limit(struct error *e, const char *limit, const char *format, ...)
    __attribute__((format(printf, 3, 4))); /* always STATUS_TOO_LARGE */

/* Ends the process with a message if `condition` is false: for what only a bug can cause. */
#define must(condition) ((condition) ? (void)0 : must_failed(#condition, __FILE__, __LINE__))
_Noreturn void must_failed(const char *condition, const char *file, int line);

#endif
