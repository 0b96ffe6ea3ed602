/* base64_text: a JSON string of base64, chunk by chunk. */
#include "server/body/base64_text.h"

#include "core/base/size.h"
#include "server/json/json_skim.h"

enum { PIECE = 4096 }; /* characters whose bytes are converted at a time */

void base64_text_init(struct base64_text *t, struct tensor_bytes *bytes, const char *pointer) {
  *t = (struct base64_text){.bytes = bytes, .pointer = pointer};
}

static size_t bytes_missing(const struct base64_text *t) {
  return t->bytes->expected - t->bytes->came;
}

static bool refuse_text(const struct base64_text *t, size_t offset, const char *why,
                        struct error *e) {
  error_at(e, t->pointer, "%s", why);
  e->has_offset = true;
  e->offset = offset;
  return false;
}

static bool refuse_more(const struct base64_text *t, size_t offset, struct error *e) {
  return refuse_text(t, offset, "more bytes than dtype and shape require", e);
}

/* Reads groups straight into the array. */
static bool place_bytes(struct base64_text *t, const char *text, size_t length, size_t *read,
                        struct error *e) {
  const size_t room = length / BASE64_GROUP * 3 + BASE64_READ_MARGIN;
  unsigned char *out = tensor_bytes_room(t->bytes, room, e);
  if (!out) return false;
  *read = base64_read(text, length, out);
  tensor_bytes_wrote(t->bytes, size_min(*read / BASE64_GROUP * 3, bytes_missing(t)));
  return true;
}

/* Reads groups whose bytes are converted: a piece at a time, which stays in the cache. */
static bool convert_bytes(struct base64_text *t, const char *text, size_t length, size_t *read,
                          struct error *e) {
  unsigned char bytes[PIECE / BASE64_GROUP * 3 + BASE64_READ_MARGIN];
  for (size_t n = PIECE; n == PIECE && *read < length; *read += n) {
    n = base64_read(text + *read, size_min(length - *read, PIECE), bytes);
    const size_t size = size_min(n / BASE64_GROUP * 3, bytes_missing(t));
    if (tensor_bytes_feed(t->bytes, bytes, size, e) < size) return false;
  }
  return true;
}

/* Reads whole groups and stops before anything else. Most of the time is spent here. */
static bool read_groups(struct base64_text *t, const char *text, size_t length, size_t offset,
                        size_t *read, struct error *e) {
  const size_t missing = bytes_missing(t);
  if (missing / 3 < length / BASE64_GROUP) length = (missing + 2) / 3 * BASE64_GROUP;
  *read = 0;
  if (length < BASE64_GROUP) return true;
  const bool converts = tensor_bytes_converts(t->bytes);
  if (!(converts ? convert_bytes : place_bytes)(t, text, length, read, e)) return false;
  return *read / BASE64_GROUP * 3 <= missing || refuse_more(t, offset + *read - BASE64_GROUP, e);
}

/* Ends a group, whose last character is at `offset`. */
static bool end_group(struct base64_text *t, size_t offset, struct error *e) {
  unsigned char bytes[3 + BASE64_READ_MARGIN];
  size_t size = 3;
  t->group_length = 0;
  t->padded = t->group[BASE64_GROUP - 1] == '=';
  if (t->padded)
    size = base64_read_last(t->group, bytes);
  else
    base64_read(t->group, BASE64_GROUP, bytes);
  if (size == 0) return refuse_text(t, offset, "the bits after the last byte must be zero", e);
  if (size > bytes_missing(t)) return refuse_more(t, t->group_offset, e);
  return tensor_bytes_feed(t->bytes, bytes, size, e) == size;
}

/* Reads one character: part of a group that a chunk cuts, of an escape, of the padding, or the end.
 */
static bool read_character(struct base64_text *t, char byte, size_t offset, bool *complete,
                           struct error *e) {
  const int c = json_string_byte(&t->string, byte);
  switch (c) {
  case JSON_STRING_BAD:
    json_bad_string(e, offset, byte);
    return false;
  case JSON_STRING_WITHIN:
    return true;
  case JSON_STRING_END:
    *complete = true;
    return t->group_length == 0 ||
           refuse_text(t, offset, "incomplete base64: the length must be a multiple of 4", e);
  default:
    break;
  }
  if (t->padded) return refuse_text(t, offset, "characters after the padding", e);
  const bool pads = c == '=', after_pad = t->group_length == 3 && t->group[2] == '=';
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  if (!pads && !letter && !(c >= '0' && c <= '9') && c != '+' && c != '/')
    return refuse_text(t, offset, "not a base64 character", e);
  if (pads ? t->group_length < 2 : after_pad)
    return refuse_text(t, offset, "base64 padding must be \"=\" or \"==\" at the end", e);
  if (t->group_length == 0) t->group_offset = offset;
  t->group[t->group_length++] = (char)c;
  return t->group_length < BASE64_GROUP || end_group(t, offset, e);
}

const char *base64_text_feed(struct base64_text *t, const char *text, size_t length, size_t offset,
                             bool *complete, struct error *e) {
  size_t at = 0;
  while (at < length && !*complete) {
    size_t read = 0;
    const bool whole = t->group_length == 0 && !t->padded && !json_string_is_within(&t->string);
    if (whole && !read_groups(t, text + at, length - at, offset + at, &read, e)) return NULL;
    at += read;
    if (at == length) break;
    if (!read_character(t, text[at], offset + at, complete, e)) return NULL;
    at++;
  }
  return text + at;
}
