/* status: the one error value of the whole program. */
#include "core/base/status.h"

#include <stdio.h>
#include <stdlib.h>

enum status error_set_v(struct error *e, enum status status, const char *format, va_list args) {
  if (e->status != STATUS_OK) return e->status;
  e->status = status;
  vsnprintf(e->detail, sizeof e->detail, format, args);
  return status;
}

enum status error_set(struct error *e, enum status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  error_set_v(e, status, format, args);
  va_end(args);
  return e->status;
}

enum status error_no_memory(struct error *e) {
  return error_set(e, STATUS_OUT_OF_MEMORY, "out of memory");
}

enum status error_at_v(struct error *e, const char *pointer, const char *format, va_list args) {
  if (e->status != STATUS_OK) return e->status;
  snprintf(e->pointer, sizeof e->pointer, "%s", pointer);
  return error_set_v(e, STATUS_INVALID_REQUEST, format, args);
}

enum status error_at(struct error *e, const char *pointer, const char *format, ...) {
  va_list args;
  va_start(args, format);
  error_at_v(e, pointer, format, args);
  va_end(args);
  return e->status;
}

enum status error_json(struct error *e, size_t offset, const char *format, ...) {
  if (e->status != STATUS_OK) return e->status;
  va_list args;
  va_start(args, format);
  error_set_v(e, STATUS_INVALID_JSON, format, args);
  va_end(args);
  e->has_offset = true;
  e->offset = offset;
  return e->status;
}

enum status error_limit(struct error *e, const char *limit, const char *format, ...) {
  if (e->status != STATUS_OK) return e->status;
  va_list args;
  va_start(args, format);
  error_set_v(e, STATUS_TOO_LARGE, format, args);
  va_end(args);
  e->limit = limit;
  return e->status;
}

_Noreturn void must_failed(const char *condition, const char *file, int line) {
  fprintf(stderr, "attend: internal error: %s (%s:%d)\n", condition, file, line);
  abort();
}
