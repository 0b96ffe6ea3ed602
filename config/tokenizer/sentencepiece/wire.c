/* wire: varints, tags and lengths. */
#include "config/tokenizer/sentencepiece/wire.h"

#include <math.h>
#include <string.h>

static bool refuse(size_t at, const char *why, struct error *e) {
  error_set(e, STATUS_CONFIG, "byte %zu: %s", at, why);
  return false;
}

/* Seven bits a byte, the lowest first; the highest bit says that another byte follows. */
static bool read_varint(struct wire *w, uint64_t *out, struct error *e) {
  enum { BITS = 7, MOST = 10, LAST = 1 };
  const size_t begin = w->at;
  *out = 0;
  for (unsigned i = 0; w->at < w->end; i++) {
    const unsigned char byte = w->file[w->at++];
    if (i + 1 == MOST && byte > LAST) return refuse(begin, "a number of more than 64 bits", e);
    *out |= (uint64_t)(byte & 0x7f) << (BITS * i);
    if (!(byte & 0x80)) return true;
  }
  return refuse(begin, "the message ends within a number", e);
}

static bool read_fixed(struct wire *w, size_t size, uint64_t *out, struct error *e) {
  enum { BITS = 8 };
  if (w->end - w->at < size) return refuse(w->at, "the message ends within a number", e);
  *out = 0;
  for (size_t i = 0; i < size; i++) *out |= (uint64_t)w->file[w->at + i] << (BITS * i);
  w->at += size;
  return true;
}

static bool read_bytes(struct wire *w, struct wire *out, struct error *e) {
  const size_t begin = w->at;
  uint64_t length;
  if (!read_varint(w, &length, e)) return false;
  if (length > w->end - w->at) {
    error_set(e, STATUS_CONFIG, "byte %zu: a field of %llu bytes, but the message has %zu left",
              begin, (unsigned long long)length, w->end - w->at);
    return false;
  }
  *out = (struct wire){w->file, w->at, w->at + (size_t)length};
  w->at += (size_t)length;
  return true;
}

bool wire_next(struct wire *w, struct wire_field *f, struct error *e) {
  enum { TYPE_BITS = 3, TYPES = 7, NUMBER_MOST = (1 << 29) - 1 };
  uint64_t tag;
  if (e->status || w->at == w->end) return false;
  *f = (struct wire_field){.at = w->at};
  if (!read_varint(w, &tag, e)) return false;
  if (tag >> TYPE_BITS == 0 || tag >> TYPE_BITS > NUMBER_MOST)
    return refuse(f->at, "a field whose number is not from 1 to 536870911", e);
  f->number = (uint32_t)(tag >> TYPE_BITS);
  f->type = (enum wire_type)(tag & TYPES);
  switch (f->type) {
  case WIRE_VARINT:
    return read_varint(w, &f->value, e);
  case WIRE_FIXED64:
    return read_fixed(w, sizeof(uint64_t), &f->value, e);
  case WIRE_FIXED32:
    return read_fixed(w, sizeof(uint32_t), &f->value, e);
  case WIRE_BYTES:
    return read_bytes(w, &f->bytes, e);
  }
  error_set(e, STATUS_CONFIG, "byte %zu: wire type %u is not supported", f->at, (unsigned)f->type);
  return false;
}

/* --- values --- */

static bool has_type(const struct wire_field *f, enum wire_type type, const char *name,
                     struct error *e) {
  if (f->type == type) return true;
  error_set(e, STATUS_CONFIG, "byte %zu: %s: wire type %u instead of %u", f->at, name,
            (unsigned)f->type, (unsigned)type);
  return false;
}

struct wire wire_bytes(const struct wire_field *f, const char *name, struct error *e) {
  return has_type(f, WIRE_BYTES, name, e) ? f->bytes : (struct wire){0};
}

float wire_float(const struct wire_field *f, const char *name, struct error *e) {
  const uint32_t bits = (uint32_t)f->value;
  float value;
  if (!has_type(f, WIRE_FIXED32, name, e)) return 0;
  memcpy(&value, &bits, sizeof value);
  if (isfinite(value)) return value;
  error_set(e, STATUS_CONFIG, "byte %zu: %s: is not finite", f->at, name);
  return 0;
}

bool wire_bool(const struct wire_field *f, const char *name, struct error *e) {
  return has_type(f, WIRE_VARINT, name, e) && f->value != 0;
}

/* A negative number has ten bytes. */
int32_t wire_int(const struct wire_field *f, const char *name, struct error *e) {
  const int64_t value = (int64_t)f->value;
  if (!has_type(f, WIRE_VARINT, name, e)) return 0;
  if (value >= INT32_MIN && value <= INT32_MAX) return (int32_t)value;
  error_set(e, STATUS_CONFIG, "byte %zu: %s: %lld is outside 32 bits", f->at, name,
            (long long)value);
  return 0;
}
