/* status: the error value. What went wrong, where, and in words; the first one wins.
 *
 * A function that can fail for reasons outside the program returns `enum status` and fills the
 * `struct error` it was given. A fault of our own is `must(condition)`: it ends the process.
 * An error is plain data: copy it, keep it, no one frees it. */
#ifndef CORE_STATUS_H
#define CORE_STATUS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Each kind is one row of the table in server/http/reply.c, which gives it a number and a title. */
enum status {
  STATUS_OK = 0,
  STATUS_INVALID_JSON,    /* not JSON: `offset` says where */
  STATUS_INVALID_REQUEST, /* JSON, but not the contract: `pointer` says where */
  STATUS_BAD_FRAMING,     /* the HTTP message contradicts itself */
  STATUS_UNAUTHORIZED,    /* no key, or not one that is taken */
  STATUS_NOT_FOUND,
  STATUS_UNKNOWN_MODEL,
  STATUS_METHOD_NOT_ALLOWED,
  STATUS_NOT_ACCEPTABLE,
  STATUS_TOO_SLOW,
  STATUS_TOO_LARGE, /* `limit` names the setting */
  STATUS_UNSUPPORTED_MEDIA_TYPE,
  STATUS_NOT_FINITE, /* a projection, score or result is beyond float32 */
  STATUS_OVERLOADED, /* the memory budget is full */
  STATUS_QUEUE_FULL, /* so is the queue: the same to a client */
  STATUS_UNSUPPORTED_TRANSFER_ENCODING,
  STATUS_DRAINING,
  STATUS_NOT_READY,
  STATUS_OUT_OF_MEMORY,
  STATUS_DEADLINE,
  STATUS_GONE,   /* the client left: nobody reads the answer */
  STATUS_CONFIG, /* a setting, a model definition or a checkpoint is wrong */
  STATUS_SYSTEM, /* the operating system said no */
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
