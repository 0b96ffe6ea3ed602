/* wire: reads the fields of a message in protobuf's wire format.
 *
 * Nothing is copied, and no byte beyond the message is read. */
#ifndef CONFIG_WIRE_H
#define CONFIG_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

/* A message, or a part of one, within a file. */
struct wire {
  const unsigned char *file;
  size_t at, end; /* offsets in the file: of the next field, and of the first byte after all */
};

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct wire_field {
  uint32_t number;
  enum wire_type type;
  size_t at;         /* offset of the field in the file */
  uint64_t value;    /* of a number */
  struct wire bytes; /* of WIRE_BYTES */
};

/* Reads the next field. False: there is none, or `e` says STATUS_CONFIG and the offset of the byte
 * at fault. */
bool wire_next(struct wire *w, struct wire_field *f, struct error *e);

/* The content of a field, which `name` says in a failure: with another type, or a value outside its
 * range, `e` says STATUS_CONFIG and the offset, and the result is 0. */
struct wire wire_bytes(const struct wire_field *f, const char *name, struct error *e);
float wire_float(const struct wire_field *f, const char *name, struct error *e); /* finite */
bool wire_bool(const struct wire_field *f, const char *name, struct error *e);
int32_t wire_int(const struct wire_field *f, const char *name, struct error *e);

#endif
